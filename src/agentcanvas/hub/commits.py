"""Many callers, one transaction: mail that comes while the last batch is written goes together.

What a batch has changed is applied to the memory of the hub in the order it was done, after it is
on disk, and before anybody is told, also when the caller has stopped waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain, groupby
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

import anyio

from agentcanvas.errors import AgentCanvasError, StoreClosed, StoreFull
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

_WATCHFUL_MS = 1000
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


_AnyStep: TypeAlias = _Recording | _Working | _Posting | _Taking


@dataclass(slots=True)
class _Waiting:
    """Steps by the order they are done in; it is iterated in that order too."""

    steps: list[_Recording | _Working] = field(default_factory=list)
    postings: list[_Posting] = field(default_factory=list)
    takings: list[_Taking] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.steps or self.postings or self.takings)

    def __iter__(self) -> Iterator[_AnyStep]:
        return chain(self.steps, self.postings, self.takings)

    def add(self, step: _AnyStep) -> None:
        """Let a step wait with its like."""
        match step:
            case _Posting():
                self.postings.append(step)
            case _Taking():
                self.takings.append(step)
            case _:
                self.steps.append(step)


class Commits:
    """Runs steps in order, as many as wait in one transaction of the store.

    What goes together is chosen when the writer comes to it, not before: while one batch is on its
    way to the disk the next one fills, and the writer need not wait for the loop to hand it over.
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
        self._lock = Lock()
        """Of what follows, down to ``_unfilled``: the writer's thread takes what waits."""
        self._waiting = _Waiting()
        self._in_hurry = False
        """Whether any of them is not content to wait for company."""
        self._unfilled = 0
        """Batches that were handed to the store and have not been begun."""
        self._on_way = 0
        self._wake = asyncio.Event()
        self._patience: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
        self._closed = False
        self._went_ahead = False
        self._urgent_at = float("-inf")

    def post(self, posts: Sequence[Post]) -> asyncio.Future[list[Outcome]]:
        """Keep messages."""
        step = _Posting(posts)
        self._add(step)
        return step.promise

    def take_over(self, numbers: Sequence[int]) -> asyncio.Future[int]:
        """Acknowledge parcels."""
        step = _Taking(numbers)
        self._add(step)
        return step.promise

    def work(
        self, work: Callable[[Mail], T], then: Callable[[T], None] | None = None
    ) -> asyncio.Future[T]:
        """Run any function on the mail, all of it or nothing; ``then`` on the loop, afterwards."""
        step = _Working(work, then)
        self._add(step)
        return step.promise

    def record(self, record: Record, *, patient: bool = False) -> asyncio.Future[None]:
        """Keep events and mail, in order with whatever is worked.

        What is ``patient`` waits a moment for others to share a commit with.
        """
        step = _Recording(record)
        self._add(step, patient=patient)
        return step.promise

    async def run(self) -> None:
        """Write whatever comes, until closed; whoever is cancelled meanwhile, mail is not lost."""
        with anyio.CancelScope(shield=True):
            try:
                while self._is_waited_for or not self._closed:
                    await self._wake.wait()
                    self._wake.clear()
                    if self._in_hurry and not self._unfilled:
                        await self._begin()
            finally:
                self._ended.set()

    async def close(self) -> None:
        """Refuse what comes from now on; return when all that came is written."""
        self._closed = True
        self._hurry()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    @property
    def _is_waited_for(self) -> bool:
        return bool(self._on_way or self._waiting)

    def _add(self, step: _AnyStep, *, patient: bool = False) -> None:
        if self._closed:
            raise StoreClosed("The hub is closed; nothing more can be sent or acknowledged.")
        with self._lock:
            self._waiting.add(step)
            self._in_hurry |= not patient
        if not patient:
            self._wake.set()
        elif self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(_PATIENCE_S, self._hurry)

    def _hurry(self) -> None:
        """Write what waits, patient or not."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        with self._lock:
            self._in_hurry = bool(self._waiting)
        self._wake.set()

    async def _begin(self) -> None:
        with self._lock:
            self._unfilled += 1
        self._on_way += 1
        batch = _Batch(self._fill, self._rules, self._now_ms)
        try:
            written = await self._store.transact_soon(batch.run, at_once=True)
        except AgentCanvasError as refusal:
            self._end(batch, refusal)
        else:
            written.add_done_callback(lambda done: self._end(batch, done.exception()))

    def _end(self, batch: _Batch, error: BaseException | None) -> None:
        """Take note of what a batch has changed, and tell those who wait for it."""
        self._on_way -= 1
        if error is None:
            for changes, then in batch.effects:
                self._apply(changes)
                if then is not None:
                    then()
        else:
            for step in batch.filled():  # also when the writer has not come to it
                step.error = copy(error)  # an exception grows a traceback wherever it is raised
        for step in batch.filled():
            step.settle()
        self._wake.set()

    def _fill(self) -> _Waiting:
        """Choose what goes into a batch, in the writer's thread: what waits, or what is urgent.

        What is urgent waits for the batch that is being written and not for a second one, and while
        such mail keeps coming that batch is kept short. It goes ahead every other time at most, so
        that a flood of it holds up nobody for long; of different bands, order was never promised
        (D29).
        """
        with self._lock:
            self._unfilled -= 1
            chosen, self._waiting = self._waiting, _Waiting()
            left = self._waiting
            now = self._now_ms()
            urgent = [step for step in chosen.postings if step.is_urgent]
            if urgent:
                self._urgent_at = now
            self._went_ahead = 0 < len(urgent) < len(chosen.postings) and not self._went_ahead
            if self._went_ahead:
                left.postings = [step for step in chosen.postings if not step.is_urgent]
                left.takings, chosen.takings = chosen.takings, []
                chosen.postings = urgent
            elif now - self._urgent_at < _WATCHFUL_MS:
                kept = _up_to(chosen.postings, _SHORT)
                chosen.postings, left.postings = chosen.postings[:kept], chosen.postings[kept:]
            self._in_hurry = bool(left)
            return chosen


def _up_to(postings: Sequence[_Posting], most: int) -> int:
    """Return how many of these have at least ``most`` messages together."""
    total = accumulate(len(step.posts) for step in postings)
    return next((index for index, so_far in enumerate(total, 1) if so_far >= most), len(postings))


class _Batch:
    """What is done in one transaction; its effects are kept for afterwards."""

    def __init__(
        self, choose: Callable[[], _Waiting], rules: DeliveryRules, now_ms: Callable[[], int]
    ) -> None:
        self.effects: list[tuple[Changes, Callable[[], None] | None]] = []
        self._choose = choose
        self._chosen: _Waiting | None = None
        self._rules = rules
        self._now_ms = now_ms

    def filled(self) -> _Waiting:
        """Return what is in it; chosen when it is asked for the first time."""
        if self._chosen is None:
            self._chosen = self._choose()
        return self._chosen

    def run(self, transaction: Transaction) -> None:
        """Do everything, in the writer's thread."""
        now_ms, chosen = self._now_ms(), self.filled()
        for kind, group in groupby(chosen.steps, key=type):
            steps = list(group)
            if kind is _Recording and self._recorded(Mail(transaction, self._rules, now_ms), steps):
                continue
            for step in steps:
                self._work(Mail(transaction, self._rules, now_ms), step)
        if chosen.postings:
            self._post(Mail(transaction, self._rules, now_ms), chosen.postings)
        if chosen.takings:
            self._take_over(Mail(transaction, self._rules, now_ms), chosen.takings)

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

    def _take_over(self, mail: Mail, steps: Sequence[_Taking]) -> None:
        numbers = [number for step in steps for number in step.numbers]
        news = mail.take_over_all(numbers)
        for step in steps:
            step.result = sum(number in news for number in step.numbers)
            news.difference_update(step.numbers)
        self.effects.append((mail.changes, None))


def _raise_refusal(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if not isinstance(outcome, Receipt):
            raise outcome
