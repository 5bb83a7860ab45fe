"""The broker on the store: durable, in one process, nothing to install.

Rows say what there is (``mailbox``), memory says what happens next for those who are connected
(``inbox``); the first is written before the second is changed. Times are steady: the wall clock at
the start, moved on by the monotonic one, so that a clock that is set makes nothing expire.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from random import Random
from typing import Self, TypeVar

import anyio

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, Disconnected, Replaced, StoreDamaged
from agentcanvas.hub import deadletters, mailbox
from agentcanvas.hub.alarm import Alarm
from agentcanvas.hub.background import beside
from agentcanvas.hub.broker import (
    BrokerStatistics,
    DeadLetter,
    Outcome,
    Parcel,
    Post,
    Receipt,
    Record,
    Settlement,
    Unit,
)
from agentcanvas.hub.commits import Changes, Commits, Mail
from agentcanvas.hub.deadletters import Cause
from agentcanvas.hub.delivery import DeliveryRules, Letter
from agentcanvas.hub.inbox import Content, Contents, Hands, LiveInbox
from agentcanvas.hub.mailbox import Waiting
from agentcanvas.hub.router import key_of
from agentcanvas.hub.tries import Tries
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.store import Snapshot, Store

T = TypeVar("T")

_FORGET_EVERY_S = 3600.0
_DEFAULTS = DeliveryRules()


class EmbeddedBroker:
    """Mail in the store of this process: ``async with EmbeddedBroker.open(store) as broker``."""

    def __init__(self, store: Store, clock: Clock, rules: DeliveryRules, chance: Random) -> None:
        """Prepare; ``open`` is the door."""
        self.clock = clock
        self.rules = rules
        self.commits = Commits(store, rules, self._now_ms, self._apply)
        self.alarm = Alarm(clock)
        self.counts: Counter[str] = Counter()
        self.tries = Tries(self.commits, self.alarm, clock, rules=rules, chance=chance)
        self._store = store
        self._epoch_ms = clock.now_ms() - clock.monotonic() * 1000
        self._inboxes: dict[str, LiveInbox] = {}
        self._contents = Contents()
        self._connected: Counter[str] = Counter()
        self._links: dict[tuple[str, str], EmbeddedInbox] = {}
        self._gone = 0
        self._next_expiry: float | None = None
        self._next_forgetting = clock.monotonic()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        store: Store,
        *,
        clock: Clock,
        rules: DeliveryRules = _DEFAULTS,
        chance: Random | None = None,
    ) -> AsyncIterator[Self]:
        """Work on a store until the block ends; what is on its way then is written first."""
        # Chance only spreads retries over time; nobody gains by guessing it.
        broker = cls(store, clock, rules, chance or Random())  # noqa: S311 - see above
        broker._expect_expiry(await store.transact(mailbox.recover))
        broker.alarm.ring_by(broker._next_forgetting)
        async with beside(broker.commits.run, broker._keep_time, ending=broker._close):
            yield broker

    async def _close(self) -> None:
        for link in list(self._links.values()):
            with suppress(AgentCanvasError):
                await link.close()
        await self.commits.close()

    # -- the broker's promises -------------------------------------------------------------------

    async def post(self, posts: Sequence[Post]) -> list[Outcome]:
        """Keep messages; return, once they are on disk, a receipt or a refusal for each."""
        outcomes = await self.commits.post(posts)
        for outcome in outcomes:
            if not isinstance(outcome, Receipt):
                self.counts["refused"] += 1
            elif outcome.repeated:
                self.counts["repeated"] += 1
        return outcomes

    async def connect(self, agent: str, *, instance: str = "", window: int = 64) -> EmbeddedInbox:
        """Connect a recipient; a second connection of the same instance ends the first (D36)."""
        # As long as there is one: another may come while one is being closed.
        while (before := self._links.get((agent, instance))) is not None:
            await before.close(
                Replaced(f"Another connection of {agent} has taken the place of this one.")
            )
        link = EmbeddedInbox(self, agent, instance, window)
        self._links[agent, instance] = link
        self._connected[agent] += 1
        try:
            await self.commits.work(
                lambda mail: mailbox.open_inbox(mail.transaction, agent),
                partial(self._enter, link),
            )
        except BaseException:
            with anyio.CancelScope(shield=True):
                await link.close()
            raise
        return link

    async def dead_letters(self, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """List what could not be delivered, oldest first."""
        return await self._store.read(
            lambda look: deadletters.listed(look, after=after, limit=limit)
        )

    async def resend(self, number: int) -> None:
        """Put a dead letter back into its inbox, as if it had come now."""

        def work(mail: Mail) -> None:
            mail.changes.kept.append(
                deadletters.resend(mail.transaction, number, mail.rules, mail.now_ms)
            )

        await self.commits.work(work)

    async def delete(self, number: int) -> None:
        """Give a dead letter up for good; its id is still remembered (M5)."""
        await self.commits.work(lambda mail: deadletters.delete(mail.transaction, number))

    async def since(
        self,
        agent: str,
        *,
        after: int = 0,
        later_than_ms: int | None = None,
        limit: int = 100,
        only_waiting: bool = False,
    ) -> list[Parcel]:
        """Read what came for an agent, taken over or not, and take nothing."""
        return await self._store.read(
            lambda look: _received(
                look,
                agent,
                after=after,
                later_than_ms=later_than_ms or -1,
                limit=limit,
                only_waiting=only_waiting,
            )
        )

    async def numbers_of(self, agent: str, message_ids: Sequence[str]) -> list[int]:
        """Find an agent's waiting letters by the ids of their messages, for each the oldest."""

        def find(look: Snapshot) -> list[int]:
            found = [mailbox.numbers_of(look, agent, key_of(id_), id_) for id_ in message_ids]
            return [numbers[0] for numbers in found if numbers]

        return await self._store.read(find)

    async def acknowledge(self, agent: str, numbers: Sequence[int]) -> int:
        """Take over an agent's letters without a connection; return for how many that was news."""
        return await self.commits.work(
            lambda mail: len(mail.take_over_all(mailbox.of_agent(mail.transaction, agent, numbers)))
        )

    async def transact(self, work: Callable[[Unit], T]) -> T:
        """Run ``work`` in the writer's thread, all or nothing; return its result."""
        return await self.commits.work(work)

    def submit(self, work: Callable[[Unit], T]) -> asyncio.Future[T]:
        """Queue the same without waiting; what is queued is written in this order."""
        return self.commits.work(work)

    def record(self, record: Record, *, patient: bool = False) -> asyncio.Future[None]:
        """Queue events and mail in the same order, for less."""
        return self.commits.record(record, patient=patient)

    async def waiting(self, agent: str) -> list[tuple[int, Envelope]]:
        """Read what waits for an agent, each with its number, without taking any of it."""
        return await self._store.read(lambda look: mailbox.waiting_for(look, agent))

    def statistics(self) -> BrokerStatistics:
        """Tell what has been done, and how it stands."""
        return BrokerStatistics(
            **self.counts + self.tries.counts,
            taken=self._gone - self.counts["dead"] - self.tries.counts["dead"],
            inboxes=len(self._inboxes),
            in_flight=sum(inbox.schedule.in_flight for inbox in self._inboxes.values()),
        )

    # -- what connections need -------------------------------------------------------------------

    async def contents(self, letters: Sequence[Letter]) -> list[Content]:
        """Find the messages of letters, in memory or in the store."""
        found = {letter.number: self._contents.get(letter.number) for letter in letters}
        missing = [number for number, content in found.items() if content is None]
        if missing:
            found.update(await self._store.read(partial(_contents, numbers=missing)))
        return [content for content in found.values() if content is not None]

    async def unreadable(self, numbers: Sequence[int]) -> set[int]:
        """Tell which messages are damaged in the store."""
        return await self._store.read(partial(_unreadable, numbers=numbers))

    async def leave(self, link: EmbeddedInbox) -> None:
        """Write what a connection has seen, and put back what it did not settle."""
        agent, in_hand = link.agent, set(link.hands.numbers)
        if self._links.get((agent, link.instance)) is link:
            del self._links[agent, link.instance]
        self._connected[agent] -= 1
        is_last = self._connected[agent] == 0
        if is_last:
            del self._connected[agent]

        def put_back() -> None:
            inbox = link.inbox
            if inbox is None:
                return
            inbox.connections.discard(link.hands)
            for number in in_hand:
                inbox.put_back(number)
            if not inbox.connections and self._inboxes.get(agent) is inbox:
                del self._inboxes[agent]
                inbox.forget()

        try:
            await self.commits.work(
                lambda mail: mailbox.close_inbox(mail.transaction, agent, in_hand, is_last=is_last),
                lambda _: put_back(),
            )
        except AgentCanvasError:  # it stays marked as open, so that nothing passes for unseen
            put_back()
            raise

    def _enter(self, link: EmbeddedInbox, waiting: Sequence[Waiting]) -> None:
        inbox = self._inboxes.get(link.agent)
        if inbox is None:
            now = self.clock.monotonic()
            inbox = LiveInbox(waiting, self._contents, self._seconds, now)
            self._inboxes[link.agent] = inbox
        inbox.connections.add(link.hands)
        link.inbox = inbox

    # -- time ------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return round(self._epoch_ms + self.clock.monotonic() * 1000)

    def _seconds(self, ms: int) -> float:
        return (ms - self._epoch_ms) / 1000

    async def _keep_time(self) -> None:
        while True:
            now = await self.alarm.wait()
            for inbox in list(self._inboxes.values()):
                moment = inbox.schedule.next_moment()
                if moment is not None and moment <= now:
                    inbox.schedule.wake(now)
                    inbox.stir()
                    overdue = inbox.schedule.overdue(now)
                    if overdue:
                        self.tries.fail(inbox, overdue, Cause.UNSETTLED)
                self.alarm.ring_by(inbox.schedule.next_moment())
            if self._next_expiry is not None and self._next_expiry <= now:
                self._next_expiry = None
                await self._expire()
            if self._next_forgetting <= now:
                await self._forget()
            self.alarm.ring_by(self._next_expiry)
            self.alarm.ring_by(self._next_forgetting)

    async def _expire(self) -> None:
        def work(mail: Mail) -> tuple[int, int | None]:
            gone, told = deadletters.expire(mail.transaction, mail.rules, mail.now_ms)
            mail.changes.gone += gone
            mail.changes.kept += told
            return len(gone), mailbox.next_expiry(mail.transaction)

        try:
            dead, next_expiry = await self.commits.work(work)
            self.counts["dead"] += dead
            self._expect_expiry(next_expiry)
        except AgentCanvasError:  # a full disk, most likely: it may have room later
            self._next_expiry = self.clock.monotonic() + self.rules.settle_within_s

    async def _forget(self) -> None:
        self._next_forgetting = self.clock.monotonic() + _FORGET_EVERY_S
        before_ms = self._now_ms() - self.rules.remembered_ms

        def work(mail: Mail) -> int:
            return mailbox.forget(
                mail.transaction, before_ms=before_ms, keep=self.rules.remembered_ids
            )

        with suppress(AgentCanvasError):  # it is tried again in an hour
            while await self.commits.work(work):
                pass

    def _expect_expiry(self, expires_ms: int | None) -> None:
        if expires_ms is None:
            return
        moment = self._seconds(expires_ms)
        if self._next_expiry is None or moment < self._next_expiry:
            self._next_expiry = moment
            self.alarm.ring_by(moment)

    # -- after each commit -----------------------------------------------------------------------

    def _apply(self, changes: Changes) -> None:
        self.counts["posted"] += len(changes.kept)
        self._gone += len(changes.gone)
        now = self.clock.monotonic()
        changed: set[LiveInbox] = set()
        for kept in changes.kept:
            if kept.letter.expires_ms is not None:
                self._expect_expiry(kept.letter.expires_ms)
            inbox = self._inboxes.get(kept.recipient)
            if inbox is not None:
                inbox.add(kept, now)
                changed.add(inbox)
        for number, recipient in changes.gone:
            inbox = self._inboxes.get(recipient)
            if inbox is not None:
                inbox.remove(number)
                changed.add(inbox)
        for inbox in changed:
            inbox.stir()


class EmbeddedInbox:
    """One connection to an agent's mail (``broker.Inbox``)."""

    def __init__(self, broker: EmbeddedBroker, agent: str, instance: str, window: int) -> None:
        self.agent = agent
        self.instance = instance
        self.hands = Hands(window)
        self.inbox: LiveInbox | None = None
        self._broker = broker
        self._closed: Disconnected | None = None

    async def take(self, most: int) -> list[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        broker, hands = self._broker, self.hands
        while True:
            inbox = self._open_inbox()
            hands.stirred.clear()
            now = broker.clock.monotonic()
            settle_by = now + broker.rules.settle_within_s
            letters = inbox.hand_out(hands, most, now, settle_by)
            if letters:
                broker.alarm.ring_by(settle_by)
                parcels = await self._opened(inbox, letters)
                if parcels:
                    return parcels
                continue
            await hands.stirred.wait()

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news, once it is on disk."""
        if how is Settlement.TAKEN:
            return await self.take_over(numbers)
        inbox = self._open_inbox()
        ours = [number for number in numbers if number in self.hands.numbers]
        if how is Settlement.HELD:
            settle_by = self._broker.clock.monotonic() + self._broker.rules.settle_within_s
            for number in ours:
                inbox.schedule.hold(number, settle_by)
            await self._broker.tries.forgive([inbox.schedule[number] for number in ours])
        elif ours:
            await self._broker.tries.fail(inbox, [inbox.schedule[n] for n in ours], Cause.FAILED)
        return len(ours)

    def take_over(self, numbers: Sequence[int]) -> asyncio.Future[int]:
        """Settle parcels as taken without waiting, so that it shares a commit with what follows."""
        inbox = self._open_inbox()
        ours = [number for number in numbers if number in inbox.schedule]
        if ours:
            return self._broker.commits.take_over(ours)
        none: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        none.set_result(0)
        return none

    async def close(self, reason: Disconnected | None = None) -> None:
        """Let go; what was taken and not settled comes again, flagged, and without a try lost."""
        if self._closed is not None:
            return
        self._closed = reason or Disconnected(f"The connection of {self.agent} is closed.")
        self.hands.stirred.set()
        with anyio.CancelScope(shield=True):
            await self._broker.leave(self)

    def _open_inbox(self) -> LiveInbox:
        if self._closed is not None:
            raise type(self._closed)(str(self._closed))
        assert self.inbox is not None, "connect() hands out a connection when it is complete"
        return self.inbox

    async def _opened(self, inbox: LiveInbox, taken: Sequence[Letter]) -> list[Parcel]:
        try:
            letters = await self._broker.tries.hand_out_again(inbox, taken)
            try:
                contents = await self._broker.contents(letters)
            except StoreDamaged:
                await self._put_aside(inbox, letters)
                return []
        except BaseException:
            for letter in taken:
                inbox.put_back(letter.number)
            raise
        counts = self._broker.counts
        counts["delivered"] += len(letters)
        counts["redelivered"] += sum(letter.seen for letter in letters)
        return [
            Parcel(
                letter.number, letter.lane[0], envelope, letter.seen, letter.tries, for_, spelled
            )
            for letter, (envelope, for_, spelled) in zip(letters, contents, strict=True)
        ]

    async def _put_aside(self, inbox: LiveInbox, letters: Sequence[Letter]) -> None:
        """Use up a try of what cannot be read, and let the rest go out without it."""
        numbers = [letter.number for letter in letters]
        damaged = await self._broker.unreadable(numbers)
        for number in numbers:
            if number not in damaged:
                inbox.put_back(number)
        ours = [inbox.schedule[number] for number in damaged if number in inbox.schedule]
        await self._broker.tries.fail(inbox, ours, Cause.UNREADABLE)


def _received(
    look: Snapshot, agent: str, *, after: int, later_than_ms: int, limit: int, only_waiting: bool
) -> list[Parcel]:
    found = mailbox.received(
        look,
        agent,
        after=after,
        later_than_ms=later_than_ms,
        limit=limit,
        only_waiting=only_waiting,
    )
    contents = _contents(look, [letter.number for letter in found])
    return [
        Parcel(
            letter.number,
            letter.session,
            contents[letter.number][0],
            bool(letter.seen),
            letter.tries,
            contents[letter.number][1],
        )
        for letter in found
    ]


def _unreadable(look: Snapshot, numbers: Sequence[int]) -> set[int]:
    found = set()
    for number in numbers:
        try:
            mailbox.content(look, number)
        except StoreDamaged:
            found.add(number)
    return found


def _contents(look: Snapshot, numbers: Sequence[int]) -> dict[int, Content]:
    return {number: (*mailbox.content(look, number), b"") for number in numbers}
