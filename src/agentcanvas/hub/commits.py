"""Many callers, one transaction: mail that comes while the last batch is written goes together.

What a batch has changed is applied to the memory of the hub in the order it was done, after it is
on disk, and before anybody is told, also when the caller has stopped waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Generic, TypeVar

import anyio

from agentcanvas.errors import StoreClosed, StoreFull
from agentcanvas.hub import intake, mailbox
from agentcanvas.hub.broker import Outcome, Post, Receipt, Record
from agentcanvas.hub.delivery import TOP_BAND, DeliveryRules
from agentcanvas.hub.mailbox import Kept
from agentcanvas.hub.router import key_of
from agentcanvas.store import Store, Transaction

T = TypeVar("T")

_PATIENCE_S = 0.1
_SHORT = 64
"""Messages in a batch that urgent ones may have to wait for."""

_WATCHFUL_S = 1.0
"""For how long after an urgent message another one is expected."""


@dataclass(slots=True)
class Changes:
    """What became of mail: letters that came, and numbers and recipients of those that went."""

    kept: list[Kept] = field(default_factory=list)
    gone: list[tuple[int, str]] = field(default_factory=list)


class Mail:
    """The mail within one transaction (``broker.Unit``)."""

    def __init__(self, transaction: Transaction, rules: DeliveryRules, now_ms: int) -> None:
        self.transaction = transaction
        self.rules = rules
        self.now_ms = now_ms
        self.changes = Changes()

    def put(self, post: Post) -> Receipt:
        """Keep a message, or raise why not."""
        (outcome,) = self.put_all([post])
        if isinstance(outcome, Receipt):
            return outcome
        raise outcome

    def put_all(self, posts: Sequence[Post]) -> list[Outcome]:
        """Keep messages; return a receipt or a refusal for each."""
        outcomes, kept = intake.put(self.transaction, posts, self.rules, self.now_ms)
        self.changes.kept += kept
        return outcomes

    def take_over(self, number: int) -> bool:
        """Acknowledge a parcel; tell whether that was news."""
        return bool(self.take_over_all([number]))

    def withdraw(self, session: str, sender: str, message_id: str) -> bool:
        """Take back a message that nobody has taken over; tell whether it was still there."""
        key = key_of(message_id)
        gone = mailbox.withdraw(self.transaction, session, sender, key, message_id)
        self.changes.gone += gone
        return bool(gone)

    def take_over_all(self, numbers: Sequence[int]) -> set[int]:
        """Acknowledge parcels; return those for which it was news."""
        taken = mailbox.take_over(self.transaction, numbers)
        self.changes.gone += taken
        return {number for number, _ in taken}


class _Step(Generic[T]):
    """Something a caller wants done."""

    def __init__(self) -> None:
        self.promise: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.result: T
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.promise.done():
            return
        if self.error is None:
            self.promise.set_result(self.result)
        else:
            self.promise.set_exception(self.error)


class _Posting(_Step[list[Outcome]]):
    def __init__(self, posts: Sequence[Post]) -> None:
        super().__init__()
        self.posts = posts
        self.is_urgent = all(post.band == TOP_BAND for post in posts)


class _Taking(_Step[int]):
    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__()
        self.numbers = numbers


class _Working(_Step[Any]):
    def __init__(self, work: Callable[[Mail], Any], then: Callable[[Any], None] | None) -> None:
        super().__init__()
        self.work = work
        self.then = then


class _Recording(_Step[None]):
    then = None

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record

    def work(self, mail: Mail) -> None:
        """Write it alone."""
        record = self.record
        mail.transaction.append_many(record.events)
        if record.post is not None:
            mail.put(record.post)
        if record.taken:
            mail.take_over_all(record.taken)


class Commits:
    """Runs steps in order, as many as wait in one transaction of the store.

    ``apply`` is called on the event loop with what a part of the batch has changed.
    """

    def __init__(
        self,
        store: Store,
        rules: DeliveryRules,
        now_ms: Callable[[], int],
        apply: Callable[[Changes], None],
    ) -> None:
        self._store = store
        self._rules = rules
        self._now_ms = now_ms
        self._apply = apply
        self._steps: list[_Recording | _Working] = []
        self._postings: list[_Posting] = []
        self._takings: list[_Taking] = []
        self._wake = asyncio.Event()
        self._patience: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
        self._closed = False
        self._went_ahead = False
        self._urgent_at = float("-inf")

    def post(self, posts: Sequence[Post]) -> asyncio.Future[list[Outcome]]:
        """Keep messages."""
        step = _Posting(posts)
        self._add(self._postings, step)
        return step.promise

    def take_over(self, numbers: Sequence[int]) -> asyncio.Future[int]:
        """Acknowledge parcels."""
        step = _Taking(numbers)
        self._add(self._takings, step)
        return step.promise

    def work(
        self, work: Callable[[Mail], T], then: Callable[[T], None] | None = None
    ) -> asyncio.Future[T]:
        """Run any function on the mail, all of it or nothing; ``then`` on the loop, afterwards."""
        step = _Working(work, then)
        self._add(self._steps, step)
        return step.promise

    def record(self, record: Record, *, patient: bool = False) -> asyncio.Future[None]:
        """Keep events and mail, in order with whatever is worked.

        What is ``patient`` waits a moment for others to share a commit with.
        """
        step = _Recording(record)
        self._add(self._steps, step, patient=patient)
        return step.promise

    async def run(self) -> None:
        """Write whatever comes, until closed; whoever is cancelled meanwhile, mail is not lost."""
        with anyio.CancelScope(shield=True):
            try:
                while self._waiting or not self._closed:
                    await self._wake.wait()
                    while self._wake.is_set():
                        self._wake.clear()
                        if self._waiting:
                            await self._write_what_waits()
            finally:
                self._ended.set()

    async def close(self) -> None:
        """Refuse what comes from now on; return when all that came is written."""
        self._closed = True
        self._wake.set()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    @property
    def _waiting(self) -> bool:
        return bool(self._steps or self._postings or self._takings)

    def _add(self, to: list[Any], step: _Step[Any], *, patient: bool = False) -> None:
        if self._closed:
            raise StoreClosed("The hub is closed; nothing more can be sent or acknowledged.")
        to.append(step)
        if not patient:
            self._wake.set()
        elif self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(_PATIENCE_S, self._wake.set)

    async def _write_what_waits(self) -> None:
        steps, self._steps = self._steps, []
        postings, takings = self._next()
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        batch = _Batch(steps, postings, takings, self._rules, self._now_ms)
        try:
            await self._store.transact(batch.run)
        except Exception as error:  # noqa: BLE001 - handed to each caller, whatever it is
            for step in (*steps, *postings, *takings):
                step.error = copy(error)  # an exception grows a traceback wherever it is raised
        else:
            for changes, then in batch.effects:
                self._apply(changes)
                if then is not None:
                    then()
        for step in (*steps, *postings, *takings):
            step.settle()

    def _next(self) -> tuple[list[_Posting], list[_Taking]]:
        """Choose what is written next: whatever waits, or what is urgent alone.

        What is urgent then waits for the batch that is being written and not for a second one, and
        while such mail keeps coming that batch is kept short. It goes ahead every other time at
        most, so that a flood of it holds up nobody for long; of different bands, order was never
        promised (D29).
        """
        now = asyncio.get_running_loop().time()
        urgent = [step for step in self._postings if step.is_urgent]
        others = [step for step in self._postings if not step.is_urgent]
        if urgent:
            self._urgent_at = now
        if urgent and others and not self._went_ahead:
            self._went_ahead = True
            self._postings = others
            self._wake.set()
            return urgent, []
        self._went_ahead = False
        postings, self._postings = self._postings, []
        takings, self._takings = self._takings, []
        if now - self._urgent_at < _WATCHFUL_S:
            room = _SHORT
            for index, step in enumerate(postings):
                if room <= 0:
                    postings, self._postings = postings[:index], postings[index:]
                    self._wake.set()
                    break
                room -= len(step.posts)
        return postings, takings


class _Batch:
    """What is done in one transaction; its effects are kept for afterwards."""

    def __init__(
        self,
        steps: Sequence[_Recording | _Working],
        postings: Sequence[_Posting],
        takings: Sequence[_Taking],
        rules: DeliveryRules,
        now_ms: Callable[[], int],
    ) -> None:
        self.effects: list[tuple[Changes, Callable[[], None] | None]] = []
        self._steps = steps
        self._postings = postings
        self._takings = takings
        self._rules = rules
        self._now_ms = now_ms

    def run(self, transaction: Transaction) -> None:
        """Do everything, in the writer's thread."""
        now_ms = self._now_ms()
        for kind, group in groupby(self._steps, key=type):
            steps = list(group)
            if kind is _Recording and self._recorded(Mail(transaction, self._rules, now_ms), steps):
                continue
            for step in steps:
                self._work(Mail(transaction, self._rules, now_ms), step)
        if self._postings:
            self._post(Mail(transaction, self._rules, now_ms), self._postings)
        if self._takings:
            self._take_over(Mail(transaction, self._rules, now_ms))

    def _recorded(self, mail: Mail, steps: Sequence[Any]) -> bool:
        """Write records together; tell whether none of them has to be told apart from the rest."""
        records = [step.record for step in steps]
        posts = [record.post for record in records if record.post is not None]
        taken = [number for record in records for number in record.taken]
        try:
            with mail.transaction.savepoint():
                mail.transaction.append_many([each for record in records for each in record.events])
                if posts:
                    _raise_refusal(mail.put_all(posts))
                if taken:
                    mail.take_over_all(taken)
        except StoreFull:
            raise
        except Exception:  # noqa: BLE001 - whose it is comes out when each is written alone
            return False
        for step in steps:
            step.result = None
        self.effects.append((mail.changes, None))
        return True

    def _post(self, mail: Mail, steps: Sequence[_Posting]) -> None:
        outcomes = mail.put_all([post for step in steps for post in step.posts])
        done = 0
        for step in steps:
            step.result = outcomes[done : done + len(step.posts)]
            done += len(step.posts)
        self.effects.append((mail.changes, None))

    def _work(self, mail: Mail, step: _Working | _Recording) -> None:
        try:
            with mail.transaction.savepoint():
                step.result = step.work(mail)
        except StoreFull:
            raise
        except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
            step.error = error
        else:
            then = partial(step.then, step.result) if step.then else None
            self.effects.append((mail.changes, then))

    def _take_over(self, mail: Mail) -> None:
        numbers = [number for step in self._takings for number in step.numbers]
        news = mail.take_over_all(numbers)
        for step in self._takings:
            step.result = sum(number in news for number in step.numbers)
            news.difference_update(step.numbers)
        self.effects.append((mail.changes, None))


def _raise_refusal(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if not isinstance(outcome, Receipt):
            raise outcome
