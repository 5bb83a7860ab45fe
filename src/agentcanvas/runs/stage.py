"""The engine's Stage: the verbs of a pattern, with replay, limits and parallelism.

It decides when something is asked, how often and in which order, and remembers what came of it. How
an ask becomes messages, sandboxes and verdicts is the ``Desk``'s work.

An ask that was settled before takes no slot; what it cost is counted again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import StageEnded
from agentcanvas.pattern import (
    Answer,
    Ask,
    Cast,
    Ends,
    Entry,
    Fate,
    Measure,
    Outcome,
    Pattern,
    Work,
    choice_schema,
    read_choice,
)
from agentcanvas.protocol.records import FailureClass, ProposalRef
from agentcanvas.runs.batch import Batch
from agentcanvas.runs.board import Posted
from agentcanvas.runs.budget import Meter, Spent
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.steps import Done, Effect, Steps, first_of

__all__ = ["Desk", "Done", "RunStage", "Scene", "Scope", "Settled"]

T = TypeVar("T")


class Settled(msgspec.Struct, frozen=True):
    """What came of one ask; ``value`` is the typed part of the answer, unchecked.

    ``turns`` and ``messages`` are all it took, reviews and revisions included, so that a replay
    counts them again; the stage fills in what was charged meanwhile. ``ended`` is the limit of time
    that interrupted it.
    """

    text: str
    fate: Fate = Fate.DONE
    reason: str = ""
    value: msgspec.Raw | UnsetType = UNSET
    proposal: ProposalRef | None = None
    failure: FailureClass | None = None
    turns: int = 1
    messages: int = 2
    ended: str = ""


class Desk(Protocol):
    """Where asks are carried out.

    One turn and its two messages are charged before ``ask`` is called; what a step costs beyond
    that, the Desk charges to the run's ``Meter`` as it happens.
    """

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        """Carry out one ask until it is settled; the result is a ``Settled``."""
        ...

    async def land(self, step: str, candidate: ProposalRef) -> Done:
        """Have a candidate judged and maybe applied; the result is a ``Settled``.

        Nothing was charged before; its ``turns`` and ``messages`` are what the verdict cost.
        """
        ...

    async def confirm(
        self, step: str, title: str, value: msgspec.Raw, schema: dict[str, Any]
    ) -> Done:
        """Put a value before the person, if the run wants that.

        The result is a ``Settled`` with the value, changed or not; REJECTED when it was declined.
        """
        ...

    async def tell(self, step: str, to: str, message: str) -> Done:
        """Say something that needs no answer."""
        ...

    async def measure(self, step: str, metric: str) -> Done:
        """Measure the work as it stands; the result is a ``Measure``."""
        ...

    async def recall(self, step: str, query: str) -> Done:
        """Look something up in the memory; the result is a ``tuple[str, ...]``."""
        ...

    async def note(self, step: str, entry: str, sources: Sequence[str]) -> Done:
        """Put something on record."""
        ...

    async def discard(self, step: str, candidates: Sequence[ProposalRef]) -> Done:
        """Let go of candidates that were never landed, at the end of an interaction."""
        ...


class Scope(msgspec.Struct, frozen=True):
    """What all stages of one run share."""

    desk: Desk
    journal: Journal
    meter: Meter
    slots: Slots
    clock: Clock


class RunStage:
    """One place in a run; a round is a place below."""

    def __init__(self, scope: Scope, scene: Scene, path: str | None = None) -> None:
        self._scope = scope
        self._scene = scene
        self._desk = scope.desk
        self._steps = Steps(scope.journal, scope.meter, scene)
        self._path = scene.id if path is None else path
        self._counts: dict[str, int] = {}

    @property
    def ends(self) -> Ends:
        """When the flow wants the interaction to end."""
        return self._scene.ends

    def words(self, name: str, **facts: object) -> str:
        """A prompt, filled in."""
        return self._scene.words.fill(name, facts)

    async def play(self, pattern: Pattern, cast: Cast, request: str, options: Any) -> Outcome:
        """Have a pattern played here to its end, which may be a limit; all is on disk then."""
        try:
            outcome = await pattern.run(self, cast, request, options)
        except StageEnded as limit:
            outcome = Outcome(str(limit), done=False)
        await self.close()
        return outcome

    # -- asking ----------------------------------------------------------------------------------

    async def ask(
        self,
        to: str,
        message: str,
        *,
        work: Work | None = None,
        land: bool = True,
        on: Sequence[ProposalRef] = (),
    ) -> Answer[None]:
        """Ask one agent, now or in an earlier life of this run."""
        ask = self._scene.numbered(Ask(to, message, work, land, tuple(on)))
        return _answer(to, await self._settled(self._step("ask"), ask))

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Ask for a typed answer; a breach is asked for once more, then it is a failure."""
        step, schema = self._step("ask_for"), msgspec.json.schema(form)

        async def put(step: str, message: str) -> Answer[T]:
            ask = self._scene.numbered(Ask(to, message))
            return _read(form, to, await self._settled(step, ask, schema))

        return await _twice(put, step, message)

    async def decide(self, to: str, question: str, choices: Sequence[str]) -> Answer[str]:
        """Have one of the choices made; anything else is asked for once more."""
        step, schema = self._step("decide"), choice_schema(choices)

        async def put(step: str, message: str) -> Answer[str]:
            ask = self._scene.numbered(Ask(to, message))
            said = await self._settled(step, ask, schema)
            choice = read_choice(said.text if said.value is UNSET else said.value, choices)
            breach = f"Answer with one of: {', '.join(choices)}."
            return _typed(to, said, choice, breach)

        return await _twice(put, step, question)

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask many, each as soon as what it depends on is settled.

        A limit lets those that have begun come to their end, unless it is one of time.
        """
        step = self._step("ask_all")
        batch = Batch([self._scene.numbered(ask) for ask in asks])
        for key, ask in batch:
            with batch.hearing(key):
                known = self._known(f"{step}/{key}", ask)
                if known is not None:
                    batch.settle(key, _answer(ask.to, known))

        async def one(key: str, ask: Ask) -> None:
            if await batch.ready(key):
                with batch.hearing(key):
                    settled = await self._turn(f"{step}/{key}", ask, rank=batch.rank(key))
                    batch.settle(key, _answer(ask.to, settled))

        if batch.ended is None:
            await _all_of(one, batch.open())
        if batch.ended is not None:
            raise batch.ended
        return batch.answers()

    async def confirm(self, form: type[T], proposal: T, title: str) -> Answer[T]:
        """Put a value before the person, if the run wants that; a breach is told them once."""
        step = self._step("confirm")
        value, schema = msgspec.Raw(msgspec.json.encode(proposal)), msgspec.json.schema(form)

        async def put(step: str, title: str) -> Answer[T]:
            settled = await self._steps.once(
                step,
                [title, value],
                Settled,
                lambda: self._desk.confirm(step, title, value, schema),
            )
            return _read(form, "", settled)

        return await _twice(put, step, title)

    async def land(self, candidate: ProposalRef) -> Answer[None]:
        """Have a candidate judged, and applied if the verdict says so."""
        step = self._step("land")
        settled = self._recalled(step, candidate)
        if settled is None:
            settled = await self._settle(
                step, candidate, lambda: self._desk.land(step, candidate), candidate.agent_id
            )
        self._scene.candidates.pop(candidate.proposal_id, None)
        return _answer(candidate.agent_id, settled)

    # -- saying, keeping and looking ---------------------------------------------------------------

    async def tell(self, to: str, message: str) -> None:
        """Say something that needs no answer."""
        step = self._step("tell")
        request = [to, message]
        if self._scope.journal.recall(step, request, bool) is not None:
            self._scope.meter.count(messages=1)
            return
        self._scope.meter.spend_message()
        await self._steps.carry_out(step, request, lambda: self._desk.tell(step, to, message))

    async def post(self, topic: str, text: str, *, by: str = "") -> Entry:
        """Put something on the board."""
        step = self._step("post")
        board = self._scene.board

        async def effect() -> Done:
            return Done(board.next(topic, text, by, self._scope.clock.now_ms()))

        posted = await self._steps.once(step, [topic, text, by], Posted, effect)
        board.put(posted)
        return posted.entry

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """What is on the board, the oldest first."""
        return self._scene.board.read(topic)

    async def check(self, metric: str) -> Measure:
        """Measure the work as it stands now, against the gate that the flow sets."""
        step = self._step("check")
        measure = await self._steps.once(
            step, metric, Measure, lambda: self._desk.measure(step, metric)
        )
        gates = [gate for gate in self.ends.gates if gate.metric == metric]
        if not gates:
            return measure
        holds = any(gate.holds(measure.value) for gate in gates)
        return msgspec.structs.replace(measure, holds=holds)

    async def recall(self, query: str) -> tuple[str, ...]:
        """What the memory knows about something."""
        step = self._step("recall")
        return await self._steps.once(
            step, query, tuple[str, ...], lambda: self._desk.recall(step, query)
        )

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put something on record for those who read later."""
        step = self._step("note")
        request = [entry, list(sources)]
        await self._steps.once(step, request, bool, lambda: self._desk.note(step, entry, sources))

    async def rounds(self, most: int) -> AsyncIterator[RunStage]:
        """At most so many rounds, and never more than the flow's ``max_rounds``."""
        prefix = self._step("rounds")
        allowed = most if self.ends.rounds is None else min(most, self.ends.rounds)
        for number in range(1, allowed + 1):
            yield RunStage(self._scope, self._scene, f"{prefix}/round:{number}")

    async def close(self) -> None:
        """End the interaction: let go of what was never landed; all is on disk afterwards."""
        left = [ref for _, ref in sorted(self._scene.candidates.items())]
        if left:
            step = self._step("discard")
            await self._steps.once(
                step, left, bool, lambda: self._desk.discard(step, left), timed=False
            )
            self._scene.candidates.clear()
        await self._scope.journal.flush()

    # -- turns -----------------------------------------------------------------------------------

    async def _settled(self, step: str, ask: Ask, schema: dict[str, Any] | None = None) -> Settled:
        """What comes of an ask, or came of it in an earlier life."""
        known = self._known(step, ask, schema)
        return await self._turn(step, ask, schema) if known is None else known

    def _known(self, step: str, ask: Ask, schema: dict[str, Any] | None = None) -> Settled | None:
        known = self._recalled(step, [ask, schema])
        if known is not None:
            self._keep_candidate(ask, known)
        return known

    async def _turn(
        self, step: str, ask: Ask, schema: dict[str, Any] | None = None, *, rank: int = 0
    ) -> Settled:
        def effect() -> Awaitable[Done]:
            self._scope.meter.spend_turn()
            return self._desk.ask(step, ask, schema)

        # Only work has a sandbox, which is the agent's until the ask is settled.
        agent = ask.to if ask.work is not None else None
        settled = await self._settle(step, [ask, schema], effect, agent, rank)
        self._keep_candidate(ask, settled)
        return settled

    def _recalled(self, step: str, request: object) -> Settled | None:
        """What is on record, counted again; a time limit that struck then strikes again."""
        known = self._scope.journal.recall(step, request, Settled)
        if known is not None:
            self._scope.meter.count(turns=known.turns, messages=known.messages)
            if known.ended:
                raise StageEnded(known.ended)
        return known

    async def _settle(
        self, step: str, request: object, effect: Effect, agent: str | None, rank: int = 0
    ) -> Settled:
        """Carry something out as soon as there is a place, and record with it what it cost."""
        spent = Spent()

        def charged(settled: Settled) -> Settled:
            return msgspec.structs.replace(settled, turns=spent.turns, messages=spent.messages)

        async def in_a_slot() -> Done:
            async with self._scope.slots.hold(agent, rank=rank):
                with self._scope.meter.told_apart(spent):
                    done = await effect()
            return Done(charged(done.result), done.also)

        def cut_short(end: StageEnded) -> Settled:
            return charged(Settled("", Fate.TIMED_OUT, str(end), ended=str(end)))

        settled: Settled = await self._steps.carry_out(
            step, request, in_a_slot, cut_short=cut_short
        )
        return settled

    def _keep_candidate(self, ask: Ask, settled: Settled) -> None:
        if not ask.land and settled.proposal is not None:
            self._scene.candidates[settled.proposal.proposal_id] = settled.proposal

    def _step(self, verb: str) -> str:
        """The name of the next use of a verb here.

        A pattern is one coroutine and meets concurrency only inside ``ask_all``, so the count is
        the same in every life of the run.
        """
        count = self._counts[verb] = self._counts.get(verb, 0) + 1
        return f"{self._path}/{verb}:{count}"


async def _all_of(
    one: Callable[[str, Ask], Coroutine[Any, Any, None]], asks: Sequence[tuple[str, Ask]]
) -> None:
    try:
        async with anyio.create_task_group() as group:
            for key, ask in asks:
                group.start_soon(one, key, ask)
    except BaseExceptionGroup as several:
        raise first_of(several) from None


async def _twice(
    put: Callable[[str, str], Awaitable[Answer[T]]], step: str, text: str
) -> Answer[T]:
    """Put something; an answer without the right form is asked for once more, then it fails."""
    first = await put(f"{step}/try:1", text)
    if first.value is not None or not first.done:
        return first
    second = await put(f"{step}/try:2", f"{text}\n\n{first.reason}")
    if second.value is not None or not second.done:
        return second
    return msgspec.structs.replace(second, fate=Fate.FAILED)


def _read(form: type[T], to: str, settled: Settled) -> Answer[T]:
    if settled.value is UNSET:
        breach = "Your answer holds no JSON; answer with the form that was asked for."
        return _typed(to, settled, None, breach)
    try:
        value = msgspec.json.decode(settled.value, type=form)
    except msgspec.MsgspecError as error:
        breach = f"Your answer does not have the form that was asked for: {error}"
        return _typed(to, settled, None, breach)
    return _typed(to, settled, value, "")


def _typed(to: str, settled: Settled, value: T | None, breach: str) -> Answer[T]:
    """The answer with its value; a turn that went wrong says so itself."""
    if settled.fate is not Fate.DONE:
        return Answer(to, settled.text, settled.fate, settled.reason, failure=settled.failure)
    return Answer(to, settled.text, reason=breach if value is None else "", value=value)


def _answer(to: str, settled: Settled) -> Answer[None]:
    return Answer(
        to,
        settled.text,
        settled.fate,
        settled.reason,
        proposal=settled.proposal,
        failure=settled.failure,
    )
