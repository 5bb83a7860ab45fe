"""The engine's Stage: the verbs of a pattern, with replay, limits and parallelism.

It decides when something is asked, how often and in which order, and remembers what came of it. How
an ask becomes messages, sandboxes and verdicts is the ``Desk``'s work.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
import msgspec
from msgspec import UNSET

from agentcanvas.errors import StageEnded, ValidationError
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
    Play,
    Receipt,
    Work,
    choice_schema,
    read_choice,
)
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs import forms
from agentcanvas.runs.answers import plain, read, twice, typed
from agentcanvas.runs.asking import Asking
from agentcanvas.runs.board import Posted
from agentcanvas.runs.handing import Handing, lot_of
from agentcanvas.runs.offstage import Desk, Drawn, Part, Scope, Settled
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.speech import Speech
from agentcanvas.runs.steps import Done, Steps, first_of

__all__ = ["Desk", "Done", "RunStage", "Scene", "Scope", "Settled"]

T = TypeVar("T")

_MOST_STEPS = 10_000
"""Uses of verbs in one place; a pattern that comes here asks nobody and would never end."""


class RunStage:
    """One place in a run; a round is a place below."""

    def __init__(
        self, scope: Scope, scene: Scene, path: str | None = None, handing: Handing | None = None
    ) -> None:
        self._scope = scope
        self._scene = scene
        self._desk = scope.desk
        self._steps = Steps(scope.journal, scope.meter, scene, scope.desk.give_up)
        self._speech = Speech(scope, scene, self._steps)
        self._asking = Asking(scope, scene, self._steps, self._fill_in)
        self._handing = handing or Handing(self._asking, scene, scope.journal)
        self._path = scene.id if path is None else path
        self._counts: dict[str, int] = {}

    @property
    def ends(self) -> Ends:
        """When the flow wants the interaction to end."""
        return self._scene.ends

    def words(self, name: str, **facts: object) -> str:
        """A prompt, filled in."""
        return self._scene.words.fill(name, facts)

    async def perform(self, pattern: Pattern, cast: Cast, request: str, options: Any) -> Outcome:
        """Have a pattern played here to its end, which may be a limit; all is on disk then."""
        self._scene.looks_itself = bool(getattr(pattern, "looks_at_gates", False))
        async with self._handing.room():
            try:
                outcome = await pattern.run(self, cast, request, options)
                limit = self._scene.ended
            except StageEnded as ended:
                outcome, limit = Outcome("", done=False), ended
        limit = limit or self._handing.ended
        held = self._scene.held
        if held is not None and limit is None and not outcome.done:
            outcome = Outcome(str(held), done=True, result=outcome.result or self._scene.kept)
        if limit is not None:
            result = outcome.result or self._scene.kept
            outcome = Outcome(str(limit), done=False, result=result)
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
        step = self._step("ask")
        ask = Ask(to, message, work, land, tuple(on))
        if forms.is_free(self._scene, [ask]):
            return plain(to, await self._asking.settled(step, self._scene.numbered(ask)))

        async def put(step: str, message: str) -> Answer[bool]:
            asked = self._scene.numbered(msgspec.structs.replace(ask, message=message))
            return forms.formed(self._scene, to, await self._asking.settled(step, asked))

        asked = forms.in_form(self._scene, ask)
        return forms.as_answer(await twice(put, step, asked.message))

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Ask for a typed answer; a breach is asked for once more, then it is a failure."""
        step, schema = self._step("ask_for"), msgspec.json.schema(form)

        async def put(step: str, message: str) -> Answer[T]:
            ask = self._scene.numbered(Ask(to, message))
            return read(form, to, await self._asking.settled(step, ask, schema))

        return await twice(put, step, message)

    async def decide(self, to: str, question: str, choices: Sequence[str]) -> Answer[str]:
        """Have one of the choices made; anything else is asked for once more."""
        step, schema = self._step("decide"), choice_schema(choices)

        async def put(step: str, message: str) -> Answer[str]:
            ask = self._scene.numbered(Ask(to, message))
            said = await self._asking.settled(step, ask, schema)
            choice = read_choice(said.text if said.value is UNSET else said.value, choices)
            breach = f"Answer with one of: {', '.join(choices)}."
            return typed(to, said, choice, breach)

        return await twice(put, step, question)

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask many, each as soon as what it depends on is settled."""
        step = self._step("ask_all")
        if forms.is_free(self._scene, list(asks)):
            return await self._asking.all_of(step, self._numbered(asks), plain)
        asked = [forms.in_form(self._scene, ask) for ask in asks]
        answers = await self._all_twice(step, asked, forms.reader(self._scene, asks))
        return tuple(map(forms.as_answer, answers))

    async def ask_all_for(self, form: type[T], asks: Sequence[Ask]) -> tuple[Answer[T], ...]:
        """Ask many for typed answers; those that broke the form once more, when all are there."""
        step, schema = self._step("ask_all_for"), msgspec.json.schema(form)

        def form_of(to: str, settled: Settled) -> Answer[T]:
            return read(form, to, settled)

        return await self._all_twice(step, asks, form_of, schema)

    async def _all_twice(
        self,
        step: str,
        asks: Sequence[Ask],
        form_of: Callable[[str, Settled], Answer[T]],
        schema: dict[str, Any] | None = None,
    ) -> tuple[Answer[T], ...]:
        """Ask many, and those whose answer has no value once more.

        Only when all have answered, because asks are numbered in an order that must be the same in
        every life.
        """
        many = self._asking.all_of
        answers = list(await many(f"{step}/try:1", self._numbered(asks), form_of, schema))
        broken = [i for i, each in enumerate(answers) if each.done and each.value is None]
        if broken and self._scene.ended is None:
            again = [
                msgspec.structs.replace(
                    asks[i], message=f"{asks[i].message}\n\n{answers[i].reason}"
                )
                for i in broken
            ]
            second = await many(f"{step}/try:2", self._numbered(again), form_of, schema)
            for index, answer in zip(broken, second, strict=True):
                answers[index] = answer
        return tuple(map(_failed_without_value, answers))

    async def hand_over(self, asks: Sequence[Ask], form: type[Any] | None = None) -> None:
        """Ask many and go on."""
        lot = lot_of(self._scene, asks, form)
        await self._handing.hand_over(self._step("hand_over"), asks, lot)

    async def collect(self) -> tuple[tuple[Ask, Answer[Any]], ...]:
        """What has come of it: all, or what came first."""
        return await self._handing.collect(self._step("collect"))

    async def bid(
        self, form: type[T], to: Sequence[str], call: str, *, within_ms: int
    ) -> tuple[Answer[T], ...]:
        """Call for bids, each due so long after it was asked for."""
        asks = self._numbered([Ask(each, call) for each in to])
        answers = await self._asking.all_of(
            self._step("bid"),
            asks,
            lambda to, settled: read(form, to, settled),
            msgspec.json.schema(form),
            within_ms=within_ms,
        )
        return tuple(map(_failed_without_value, answers))

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
            return read(form, "", settled)

        return await twice(put, step, title)

    async def land(self, candidate: ProposalRef) -> Answer[None]:
        """Have a candidate judged, and applied if the verdict says so."""
        return plain(candidate.agent_id, await self._asking.land(self._step("land"), candidate))

    # -- interactions within -----------------------------------------------------------------------

    async def play(self, play: Play) -> Outcome:
        """Play an interaction within this one."""
        (outcome,) = await self.play_all([play])
        return outcome

    async def play_all(self, plays: Sequence[Play]) -> tuple[Outcome, ...]:
        """Play several side by side, each under its own name."""
        step = self._step("play")
        named = {play.name or str(index): play for index, play in enumerate(plays, 1)}
        if len(named) < len(plays):
            raise ValidationError("Interactions side by side need names of their own.")
        outcomes: dict[str, Outcome] = {}

        async def one(name: str, play: Play) -> None:
            outcomes[name] = await self._play(f"{step}/{name}", play)

        try:
            async with anyio.create_task_group() as group:
                for name, play in named.items():
                    group.start_soon(one, name, play)
        except BaseExceptionGroup as several:
            raise first_of(several) from None
        return tuple(outcomes[name] for name in named)

    async def _play(self, path: str, play: Play) -> Outcome:
        pattern = self._scope.parts.pattern(play.pattern)
        ends = play.ends or self._scope.parts.ends(play.pattern)
        scene = self._scene.inner(
            path, ends=ends, cast=play.cast, roles=pattern.roles, share=play.share
        )
        options = msgspec.convert(dict(play.params), pattern.options, from_attributes=True)
        stage = RunStage(self._scope, scene, path)
        return await stage.perform(pattern, play.cast, play.request, options)

    async def _fill_in(self, part: Part, step: str, request: str) -> Outcome:
        """Play the interaction that fills a role."""
        scope = msgspec.structs.replace(self._scope, desk=part.desk)
        stage = RunStage(scope, part.scene(step, self._scene), step)
        return await stage.perform(part.pattern, part.cast, request, part.options)

    # -- saying, keeping and looking ---------------------------------------------------------------

    async def tell(self, to: str, message: str, *, by: str = "") -> Receipt:
        """Say something that needs no answer."""
        return await self._speech.tell(self._step("tell"), to, message, by)

    async def route(self, to: Sequence[str], message: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Deliver one message to those it is meant for."""
        return await self._speech.route(self._step("route"), to, message, by)

    async def subscribe(self, who: str, topic: str, *, replay: int = 0) -> tuple[Entry, ...]:
        """Have somebody told of what is published from now on."""
        return await self._speech.subscribe(self._step("subscribe"), who, topic, replay)

    async def unsubscribe(self, who: str, topic: str) -> None:
        """Tell somebody of nothing more."""
        await self._speech.unsubscribe(self._step("unsubscribe"), who, topic)

    async def publish(self, topic: str, text: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Post something and tell all who subscribed."""
        step = self._step("publish")
        entry = await self._post(f"{step}/post", topic, text, by)
        return await self._speech.notify(step, entry)

    async def post(self, topic: str, text: str, *, by: str = "", replaces: int = 0) -> Entry:
        """Put something on the board."""
        return await self._post(self._step("post"), topic, text, by, replaces)

    async def _post(self, step: str, topic: str, text: str, by: str, replaces: int = 0) -> Entry:
        board = self._scene.board

        async def effect() -> Done:
            return Done(board.next(topic, text, by, self._scope.clock.now_ms(), replaces))

        request = [topic, text, by, *([replaces] if replaces else [])]
        posted = await self._steps.once(step, request, Posted, effect)
        board.put(posted)
        return posted.entry

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """What is on the board, the oldest first."""
        return self._scene.board.read(topic)

    async def check(self, metric: str, *, value: float | None = None, detail: str = "") -> Measure:
        """Measure the work, or take the pattern's word, and hold it to the gate of the flow."""
        step = self._step("check")
        if value is None:
            measure = await self._steps.once(
                step, metric, Measure, lambda: self._desk.measure(step, metric)
            )
        else:
            said = Measure(metric, value, holds=value >= 1, detail=detail)

            async def effect() -> Done:
                return Done(said)

            measure = await self._steps.once(step, said, Measure, effect)
        gates = [gate for gate in self.ends.gates if gate.metric == metric]
        if not gates:
            return measure
        holds = any(gate.holds(measure.value) for gate in gates)
        return msgspec.structs.replace(measure, holds=holds)

    async def draw(self, among: Sequence[str], why: str) -> str:
        """One of these, by the seed."""
        step, seed = self._step("draw"), self._scene.seed
        drawn = Drawn(drawn_of(among, f"{seed}/{step}"), tuple(among), why, seed)
        return await self._steps.once(step, drawn, str, lambda: self._desk.drawn(step, drawn))

    async def now(self) -> int:
        """The time when this was first asked."""

        async def effect() -> Done:
            return Done(self._scope.clock.now_ms())

        return await self._steps.once(self._step("now"), None, int, effect)

    def keep(self, result: str) -> None:
        """What it has come to so far."""
        self._scene.kept = result

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
            yield RunStage(self._scope, self._scene, f"{prefix}/round:{number}", self._handing)
            if await self._is_good_enough(f"{prefix}/round:{number}"):
                return

    async def _is_good_enough(self, step: str) -> bool:
        """Whether a gate holds that the pattern leaves to the Stage; then the rounds are over."""
        gates = () if self._scene.looks_itself else self.ends.gates
        for gate in gates:
            measure = await self._steps.once(
                f"{step}/gate:{gate.metric}",
                gate.metric,
                Measure,
                partial(self._desk.measure, step, gate.metric),
            )
            if gate.holds(measure.value):
                self._scene.held = gate
                return True
        return False

    async def close(self) -> None:
        """End the interaction: let go of what was never landed; all is on disk afterwards."""
        left = [ref for _, ref in sorted(self._scene.candidates.items())]
        if left:
            step = self._named("discard")
            await self._steps.once(
                step, left, bool, lambda: self._desk.discard(step, left), timed=False
            )
            self._scene.candidates.clear()
        await self._scope.journal.flush()

    # ----------------------------------------------------------------------------------------------

    def _numbered(self, asks: Sequence[Ask]) -> list[Ask]:
        return [self._scene.numbered(ask) for ask in asks]

    def _step(self, verb: str) -> str:
        """The name of the next use of a verb here; a limit that struck ends it."""
        if self._scene.ended is not None:
            raise self._scene.ended
        return self._named(verb)

    def _named(self, verb: str) -> str:
        """The verb and the how-manieth use of it.

        A pattern is one coroutine and meets concurrency only inside verbs that ask several, so the
        count is the same in every life of the run.
        """
        count = self._counts[verb] = self._counts.get(verb, 0) + 1
        if count > _MOST_STEPS:
            raise StageEnded(
                f"steps: {verb} was used {_MOST_STEPS:,} times; the pattern never ends"
            )
        return f"{self._path}/{verb}:{count}"


def drawn_of(among: Sequence[str], seed: str) -> str:
    """One of several by a seed: the same in every life and on every machine."""
    if not among:
        raise ValidationError("There is nothing to draw from.")
    digest = hashlib.sha256("\x1f".join([seed, *among]).encode()).digest()
    return among[int.from_bytes(digest) % len(among)]


def _failed_without_value(answer: Answer[T]) -> Answer[T]:
    if answer.done and answer.value is None:
        return msgspec.structs.replace(answer, fate=Fate.FAILED)
    return answer
