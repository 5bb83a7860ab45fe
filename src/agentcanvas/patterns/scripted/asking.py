"""Questions on a ``ScriptedStage``: who answers what, when, and what of it counts.

Several that are asked together begin at the same moment, as far as they do not wait for each other;
each is answered at once, and its answer comes when its time has passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Answer, Ask, Fate
from agentcanvas.patterns.scripted.place import Place
from agentcanvas.patterns.scripted.script import (
    Reply,
    failed_without_value,
    hard_ones,
    read,
)
from agentcanvas.protocol.records import ProposalRef

T = TypeVar("T")


class _Coming(msgspec.Struct):
    """An answer on its way, to the ask as the pattern made it and as it was put."""

    told: Ask
    put: Ask
    answer: Answer[Any]
    at_ms: int
    ended: StageEnded | None
    form: type[Any] | None = None
    last: bool = False


class Asking:
    """The questions of one interaction; with ``first_come`` answers are collected as they come."""

    def __init__(self, place: Place, *, first_come: bool = False) -> None:
        self._place = place
        self._world = place.world
        self._first_come = first_come
        self._coming: list[_Coming] = []

    # -- one question ------------------------------------------------------------------------------

    def one(self, ask: Ask, due_ms: int | None = None) -> Answer[None]:
        """Answer as the script says; work that does not land comes back as a candidate."""
        place, world = self._place, self._world
        place.require_open()
        place.limits.spend(turns=1, messages=2)
        begun = world.now_ms
        over_ms = begun + round(world.seconds(ask.to, ask.message) * 1000)
        verb = "ask" if ask.work is None else "task"
        limit = place.limits.due()
        if limit is not None and over_ms > limit[0] and (due_ms is None or limit[0] < due_ms):
            world.now_ms = round(limit[0])
            place.note(verb, ask.to, ask.message, fate=Fate.TIMED_OUT, at_ms=begun)
            raise limit[1]
        if due_ms is not None and over_ms > due_ms:
            world.now_ms = due_ms
            place.note(verb, ask.to, ask.message, "late", fate=Fate.TIMED_OUT, at_ms=begun)
            return Answer(ask.to, "", Fate.TIMED_OUT, "late")
        world.now_ms = over_ms
        reply = self._reply(ask)
        answer: Answer[None] = Answer(ask.to, reply) if isinstance(reply, str) else reply
        self._stream(ask, answer)
        place.note(verb, ask.to, ask.message, answer.text, fate=answer.fate, at_ms=begun)
        if ask.land or ask.work is None or answer.proposal is not None or not answer.done:
            return answer
        return msgspec.structs.replace(answer, proposal=self._candidate(ask.to))

    def _reply(self, ask: Ask) -> Reply:
        world = self._world
        if world.typed is not None and world.form is not None:
            return world.typed(ask.to, ask.message, world.form)
        return world.script(ask.to, ask.message)

    def _stream(self, ask: Ask, answer: Answer[None]) -> None:
        """Where answers are streamed, what of it could be heard before all of it."""
        if self._world.streams:
            *parts, _ = answer.text.split("\n\n")
            for part in parts:
                self._place.note("part", text=part, by=ask.to)

    def _candidate(self, agent: str) -> ProposalRef:
        self._world.candidates += 1
        name = f"c{self._world.candidates}"
        return ProposalRef(
            run_id="run", agent_id=agent, proposal_id=name, generation=0, patch=f"{name}.patch"
        )

    @contextmanager
    def in_form(self, form: object) -> Iterator[None]:
        """Nothing here waits, so whatever is asked inside is asked in this form."""
        self._world.form = form
        try:
            yield
        finally:
            self._world.form = None

    # -- several -----------------------------------------------------------------------------------

    def all_of(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask in the order the dependencies allow, and wait for all."""
        coming = self._set_going(asks)
        self._world.now_ms = max([self._world.now_ms, *(each.at_ms for each in coming)])
        self._place.ended = next((each.ended for each in coming if each.ended), self._place.ended)
        return self.as_far_as_it_came([each.answer for each in coming])

    def all_in_form(self, form: type[T], asks: Sequence[Ask]) -> tuple[Answer[T], ...]:
        """Read each reply as ``form``; those that broke it are asked once more afterwards."""
        with self.in_form(form):
            answers = [read(form, answer) for answer in self.all_of(asks)]
        broken = [i for i, each in enumerate(answers) if each.done and each.value is None]
        if broken and self._place.ended is None:
            again = [_again(asks[i], answers[i]) for i in broken]
            with self.in_form(form):
                second = self.all_of(again)
            for index, answer in zip(broken, second, strict=True):
                answers[index] = read(form, answer)
        return tuple(map(failed_without_value, answers))

    def bids(
        self, form: type[T], to: Sequence[str], call: str, within_ms: int
    ) -> tuple[Answer[T], ...]:
        """Ask all at once; whoever takes longer than that is late."""
        begun, longest = self._world.now_ms, self._world.now_ms
        answers: list[Answer[T]] = []
        for each in to:
            self._world.now_ms = begun
            with self.in_form(form):
                answer, ended = self._one_of_many(Ask(each, call), begun + within_ms)
            self._place.ended = self._place.ended or ended
            answers.append(read(form, answer))
            longest = max(longest, self._world.now_ms)
        self._world.now_ms = longest
        return self.as_far_as_it_came([failed_without_value(answer) for answer in answers])

    def as_far_as_it_came(self, answers: Sequence[Answer[T]]) -> tuple[Answer[T], ...]:
        """What came before a limit; the limit, if nothing did."""
        self._place.ended = self._place.ended or self._place.is_over()
        if self._place.ended is not None and not any(answer.done for answer in answers):
            raise self._place.ended
        return tuple(answers)

    def _set_going(self, asks: Sequence[Ask]) -> list[_Coming]:
        """What comes of each, and when; time stays what it is."""
        begun = self._world.now_ms
        waiting = dict(enumerate(asks))
        coming: dict[int, _Coming] = {}
        named: dict[str, _Coming] = {}
        ended: StageEnded | None = None
        while waiting:
            index, ask = next(
                (i, a) for i, a in waiting.items() if all(d in named for d in hard_ones(a, asks))
            )
            del waiting[index]
            before = {other: named[other] for other in hard_ones(ask, asks)}
            self._world.now_ms = max([begun, *(each.at_ms for each in before.values())])
            failed = [other for other, each in before.items() if not each.answer.done]
            answer: Answer[None]
            if failed:
                reason = f"{', '.join(failed)} did not end well"
                answer = Answer(ask.to, "", Fate.SKIPPED, reason)
            else:
                answer, ended = self._one_of_many(ask, ended=ended)
            coming[index] = _Coming(ask, ask, answer, self._world.now_ms, ended)
            if ask.work is not None:
                named[ask.work.task_id] = coming[index]
        self._world.now_ms = begun
        return [coming[index] for index in range(len(asks))]

    def _one_of_many(
        self, ask: Ask, due_ms: int | None = None, ended: StageEnded | None = None
    ) -> tuple[Answer[None], StageEnded | None]:
        """One of several, and the limit that struck, after which nothing more is asked."""
        ended = ended or self._place.ended
        if ended is not None:
            return Answer(ask.to, "", Fate.SKIPPED, str(ended)), ended
        try:
            return self.one(ask, due_ms), None
        except StageEnded as limit:
            if self._place.is_over() is not None:  # for this one; others may have been quicker
                return Answer(ask.to, "", Fate.TIMED_OUT, str(limit)), None
            return Answer(ask.to, "", Fate.SKIPPED, str(limit)), limit

    # -- handed over -------------------------------------------------------------------------------

    def hand_over(self, asks: Sequence[Ask], form: type[Any] | None, *, last: bool = False) -> None:
        """Set them going; each comes when its time has passed."""
        with self.in_form(form):
            for each in self._set_going(asks):
                each.form, each.last = form, last
                self._coming.append(each)

    def collect(self) -> tuple[tuple[Ask, Answer[Any]], ...]:
        """What has come: all of it, or what came first."""
        came: list[tuple[Ask, Answer[Any]]] = []
        while self._coming and not (came and self._first_come):
            for each in self._next():
                self._place.ended = self._place.ended or each.ended
                answer = each.answer if each.form is None else read(each.form, each.answer)
                broken = each.form is not None and answer.done and answer.value is None
                if broken and not each.last and self._place.ended is None:
                    self.hand_over([_again(each.put, answer)], each.form, last=True)
                    self._coming[-1].told = each.told
                else:
                    told = failed_without_value(answer) if broken else answer
                    came.append((each.told, told))
        if came:
            self.as_far_as_it_came([answer for _, answer in came])
        return tuple(came)

    def _next(self) -> list[_Coming]:
        """Those that are waited for next; it is as late then as the last of them came."""
        now = self._world.now_ms
        if self._first_come:
            now = max(now, min(each.at_ms for each in self._coming))
            there = sorted(
                (each for each in self._coming if each.at_ms <= now), key=lambda each: each.at_ms
            )
        else:
            there = list(self._coming)
            now = max(now, *(each.at_ms for each in there))
        self._world.now_ms = now
        self._coming = [each for each in self._coming if each not in there]
        return there

    def wait_for_the_rest(self) -> None:
        """What nobody collected has come when the interaction ends."""
        for each in self._coming:
            self._world.now_ms = max(self._world.now_ms, each.at_ms)
            self._place.ended = self._place.ended or each.ended


def _again(ask: Ask, answer: Answer[Any]) -> Ask:
    return msgspec.structs.replace(ask, message=f"{ask.message}\n\n{answer.reason}")
