"""A Stage for tests: answers are written down before, and every verb is on record.

It keeps the promises of the real one that a pattern can see: rounds end at their limit, a task
whose hard dependency failed is not asked, an answer that breaks its form is asked for once more, a
board forgets what is over its retention, a gate is held to the value the flow sets, and a limit of
turns ends whatever verb meets it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import (
    Answer,
    Ask,
    Ends,
    Entry,
    Fate,
    Measure,
    Work,
    read_choice,
)
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.protocol.plan import DependencyType
from agentcanvas.protocol.records import ProposalRef

T = TypeVar("T")

Reply = str | Answer[None]
Script = Callable[[str, str], Reply]
"""Who is asked what, and the reply: text, or an answer with its fate."""

Person = Callable[[str, bytes], bytes | None]
"""What a person makes of a title and a value as JSON: the same, another one, or None: declined."""


class Said(msgspec.Struct, frozen=True):
    """One verb as it was used, and what came back."""

    verb: str
    round: int
    to: str = ""
    text: str = ""
    reply: str = ""
    fate: Fate = Fate.DONE


class ScriptedStage:
    """Plays the script; ``measures`` are handed out in order.

    ``verdicts`` are the fates of candidates by their id, DONE if not named; ``memory`` is what
    ``recall`` looks through; ``turns`` is a limit after which nothing more is asked.
    """

    def __init__(
        self,
        script: Script,
        *,
        measures: Iterable[Measure] = (),
        ends: Ends | None = None,
        person: Person | None = None,
        verdicts: Mapping[str, Fate] | None = None,
        memory: Sequence[str] = (),
        keep_last_n: int = 100,
        turns: int | None = None,
        words: Wording = WORDING,
    ) -> None:
        self._script = script
        self._measures = list(measures)
        self._ends = ends or Ends()
        self._person = person
        self._verdicts = verdicts or {}
        self._memory = memory
        self._keep_last_n = keep_last_n
        self._turns_left = turns
        self._words = words
        self._round = 0
        self._posts: list[Entry] = []
        self._candidates = 0
        self.record: list[Said] = []

    @property
    def ends(self) -> Ends:
        """When the interaction ends, as the test says."""
        return self._ends

    def words(self, name: str, **facts: object) -> str:
        """A prompt, filled in."""
        return self._words.fill(name, facts)

    async def ask(
        self,
        to: str,
        message: str,
        *,
        work: Work | None = None,
        land: bool = True,
        on: Sequence[ProposalRef] = (),
    ) -> Answer[None]:
        """Answer as the script says; work that does not land comes back as a candidate."""
        del on
        if self._turns_left == 0:
            raise StageEnded("budget: no more turns")
        if self._turns_left is not None:
            self._turns_left -= 1
        reply = self._script(to, message)
        answer: Answer[None] = Answer(to, reply) if isinstance(reply, str) else reply
        verb = "ask" if work is None else "task"
        self.record.append(Said(verb, self._round, to, message, answer.text, answer.fate))
        if land or work is None or answer.proposal is not None:
            return answer
        return msgspec.structs.replace(answer, proposal=self._candidate(to))

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Read the reply as ``form``; a breach is asked for once more, then it is a failure."""

        async def put(message: str) -> Answer[T]:
            answer = await self.ask(to, message)
            return _read(form, answer) if answer.done else _without_value(answer)

        return await _twice(put, message)

    async def decide(self, to: str, question: str, choices: Sequence[str]) -> Answer[str]:
        """Read the reply as one of the choices; a breach is asked for once more."""

        async def put(message: str) -> Answer[str]:
            answer = await self.ask(to, message)
            if not answer.done:
                return _without_value(answer)
            choice = read_choice(answer.text, choices)
            breach = "" if choice else f"Answer with one of: {', '.join(choices)}."
            return Answer(to, answer.text, reason=breach, value=choice)

        return await _twice(put, question)

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask in the order the dependencies allow."""
        fates: dict[str, Fate] = {}
        answers: dict[int, Answer[None]] = {}
        waiting = dict(enumerate(asks))
        while waiting:
            index, ask = next(
                (i, a) for i, a in waiting.items() if all(d in fates for d in _hard(a, asks))
            )
            del waiting[index]
            failed = [other for other in _hard(ask, asks) if fates[other] is not Fate.DONE]
            if failed:
                reason = f"{', '.join(failed)} did not end well"
                answers[index] = Answer(ask.to, "", Fate.SKIPPED, reason)
            else:
                answers[index] = await self.ask(
                    ask.to, ask.message, work=ask.work, land=ask.land, on=ask.on
                )
            if ask.work is not None:
                fates[ask.work.task_id] = answers[index].fate
        return tuple(answers[index] for index in range(len(asks)))

    async def confirm(self, form: type[T], proposal: T, title: str) -> Answer[T]:
        """Have the test's person look at it, if there is one."""
        if self._person is None:
            return Answer("", title, value=proposal)
        person = self._person

        async def put(title: str) -> Answer[T]:
            self._note("confirm", text=title)
            made = person(title, msgspec.json.encode(proposal))
            if made is None:
                return Answer("", title, Fate.REJECTED, "declined")
            return _read(form, Answer("", made.decode()))

        return await _twice(put, title)

    async def land(self, candidate: ProposalRef) -> Answer[None]:
        """Give the verdict the test names."""
        self._note("land", candidate.agent_id, candidate.proposal_id)
        fate = self._verdicts.get(candidate.proposal_id, Fate.DONE)
        reason = "" if fate is Fate.DONE else "the verdict"
        return Answer(candidate.agent_id, "", fate, reason, proposal=candidate)

    async def tell(self, to: str, message: str) -> None:
        """Put it on record."""
        self._note("tell", to, message)

    async def post(self, topic: str, text: str, *, by: str = "") -> Entry:
        """Put it on the board."""
        self._note("post", topic, text)
        entry = Entry(len(self._posts) + 1, topic, text, by)
        self._posts.append(entry)
        return entry

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """The latest entries of a topic."""
        self._note("read", topic)
        return tuple(entry for entry in self._posts if entry.topic == topic)[-self._keep_last_n :]

    async def check(self, metric: str) -> Measure:
        """Hand out the next measure, held to the gates."""
        self._note("check", text=metric)
        measure = self._measures.pop(0)
        gates = [gate for gate in self._ends.gates if gate.metric == metric]
        holds = any(gate.holds(measure.value) for gate in gates) if gates else measure.holds
        return msgspec.structs.replace(measure, holds=holds)

    async def recall(self, query: str) -> tuple[str, ...]:
        """Whatever in the memory holds the query's words."""
        self._note("recall", text=query)
        return tuple(entry for entry in self._memory if query.casefold() in entry.casefold())

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put it on record."""
        del sources
        self._note("note", text=entry)

    async def rounds(self, most: int) -> AsyncIterator[ScriptedStage]:
        """Count."""
        allowed = most if self._ends.rounds is None else min(most, self._ends.rounds)
        for number in range(1, allowed + 1):
            self._round = number
            yield self

    def _candidate(self, agent: str) -> ProposalRef:
        self._candidates += 1
        return ProposalRef(
            run_id="run",
            agent_id=agent,
            proposal_id=f"c{self._candidates}",
            generation=0,
            patch=f"c{self._candidates}.patch",
        )

    def _note(self, verb: str, to: str = "", text: str = "") -> None:
        self.record.append(Said(verb, self._round, to, text))


async def _twice(put: Callable[[str], Awaitable[Answer[T]]], text: str) -> Answer[T]:
    first = await put(text)
    if first.value is not None or not first.done:
        return first
    second = await put(f"{text}\n\n{first.reason}")
    if second.value is not None or not second.done:
        return second
    return msgspec.structs.replace(second, fate=Fate.FAILED)


def _read(form: type[T], answer: Answer[None]) -> Answer[T]:
    try:
        value = msgspec.json.decode(answer.text, type=form)
    except msgspec.MsgspecError as error:
        breach = f"Your answer does not have the form that was asked for: {error}"
        return Answer(answer.agent, answer.text, reason=breach)
    return Answer(answer.agent, answer.text, value=value)


def _without_value(answer: Answer[None]) -> Answer[T]:
    return Answer(answer.agent, answer.text, answer.fate, answer.reason, failure=answer.failure)


def _hard(ask: Ask, asks: Sequence[Ask]) -> list[str]:
    """The tasks among these that it waits for."""
    known = {other.work.task_id for other in asks if other.work is not None}
    after = ask.work.after if ask.work is not None else ()
    hard = [other.task_id for other in after if other.type is DependencyType.HARD]
    return [other for other in hard if other in known]
