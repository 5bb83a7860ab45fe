"""A Stage for tests: answers are written down before, and every verb is on record.

It keeps the promises of the real one that a pattern can see: rounds end at their limit, a task
whose hard dependency failed is not asked, an answer that breaks its form is asked for once more, a
board forgets what is over its retention, a gate is held to the value the flow sets, a bid after the
deadline is late, and a limit ends whatever verb meets it. Time is virtual: an ask takes as long as
``seconds`` says, and asks made together take as long as the longest.
"""

from __future__ import annotations

import hashlib
from collections.abc import (
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar

import msgspec

from agentcanvas.errors import NotFound, StageEnded
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
    Share,
    Work,
    read_choice,
)
from agentcanvas.patterns.script import (
    MINUTE_MS,
    Limits,
    Person,
    Reply,
    Said,
    Script,
    Seconds,
    Typed,
    World,
    at_once,
    failed_without_value,
    hard_ones,
    read,
    twice,
    without_value,
)
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.protocol.records import ProposalRef

__all__ = ["Person", "Reply", "Said", "Script", "ScriptedStage", "Seconds", "Typed"]

T = TypeVar("T")


class ScriptedStage:
    """Plays the script; ``measures`` are handed out in order.

    ``verdicts`` are the fates of candidates by their id, DONE if not named; ``memory`` is what
    ``recall`` looks through; ``turns`` is a limit after which nothing more is asked. ``patterns``
    are those that ``play`` knows. ``rate_limit_per_min`` counts the messages from one to another
    that need no answer; what is over it waits, or is refused with ``refuse``. ``typed`` answers in
    place of the script where a form is asked for.
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
        seconds: Seconds = at_once,
        seed: int = 0,
        rate_limit_per_min: int | None = None,
        refuse: bool = False,
        patterns: Iterable[Pattern] = (),
        typed: Typed | None = None,
    ) -> None:
        self._world = World(script, seconds, patterns)
        self._world.typed = typed
        self._measures = list(measures)
        self._person = person
        self._verdicts = verdicts or {}
        self._memory = memory
        self._keep_last_n = keep_last_n
        self._words = words
        self._seed = seed
        self._per_minute = rate_limit_per_min
        self._refuse = refuse
        self.begin(ends or Ends(), Share(turns=turns))

    def begin(
        self, ends: Ends, share: Share, *, within: str = "", around: Limits | None = None
    ) -> None:
        """Begin, at the time it is now, with nothing said and nothing on the board."""
        self._ends = ends
        self._within = within
        self._limits = Limits(ends, share, self._world.now_ms, around)
        self._round = 0
        self._posts: list[Entry] = []
        self._count = 0
        self._subscribers: dict[str, dict[str, None]] = {}
        self._sent: dict[tuple[str, str], list[int]] = {}
        self._ended: StageEnded | None = None
        self._kept = ""

    @property
    def record(self) -> list[Said]:
        """Every verb so far, those of interactions within this one included."""
        return self._world.record

    @property
    def ends(self) -> Ends:
        """When the interaction ends, as the test says."""
        return self._ends

    def words(self, name: str, **facts: object) -> str:
        """A prompt, filled in."""
        return self._words.fill(name, facts)

    async def perform(self, pattern: Pattern, cast: Cast, request: str, options: Any) -> Outcome:
        """Have a pattern played to its end, which may be a limit, as the engine does."""
        try:
            outcome = await pattern.run(self, cast, request, options)
            limit = self._ended
        except StageEnded as ended:
            outcome, limit = Outcome("", done=False), ended
        if limit is None:
            return outcome
        return Outcome(str(limit), done=False, result=outcome.result or self._kept)

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
        """Answer as the script says; work that does not land comes back as a candidate."""
        return self._ask(Ask(to, message, work, land, tuple(on)))

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Read the reply as ``form``; a breach is asked for once more, then it is a failure."""

        async def put(message: str) -> Answer[T]:
            with self._in_form(form):
                return read(form, await self.ask(to, message))

        return await twice(put, message)

    async def decide(self, to: str, question: str, choices: Sequence[str]) -> Answer[str]:
        """Read the reply as one of the choices; a breach is asked for once more."""

        async def put(message: str) -> Answer[str]:
            with self._in_form(tuple(choices)):
                answer = await self.ask(to, message)
            if not answer.done:
                return without_value(answer)
            choice = read_choice(answer.text, choices)
            breach = "" if choice else f"Answer with one of: {', '.join(choices)}."
            return Answer(to, answer.text, reason=breach, value=choice)

        return await twice(put, question)

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask in the order the dependencies allow; those without any begin at the same moment."""
        self._require_open()
        begun, longest = self._world.now_ms, self._world.now_ms
        fates: dict[str, Fate] = {}
        answers: dict[int, Answer[None]] = {}
        waiting = dict(enumerate(asks))
        while waiting:
            index, ask = next(
                (i, a) for i, a in waiting.items() if all(d in fates for d in hard_ones(a, asks))
            )
            del waiting[index]
            failed = [other for other in hard_ones(ask, asks) if fates[other] is not Fate.DONE]
            if failed:
                reason = f"{', '.join(failed)} did not end well"
                answers[index] = Answer(ask.to, "", Fate.SKIPPED, reason)
            else:
                self._world.now_ms = longest if hard_ones(ask, asks) else begun
                answers[index] = self._one_of_many(ask)
                longest = max(longest, self._world.now_ms)
            if ask.work is not None:
                fates[ask.work.task_id] = answers[index].fate
        self._world.now_ms = longest
        return self._as_far_as_it_came([answers[index] for index in range(len(asks))])

    async def ask_all_for(self, form: type[T], asks: Sequence[Ask]) -> tuple[Answer[T], ...]:
        """Read each reply as ``form``; those that broke it are asked once more afterwards."""
        with self._in_form(form):
            answers = [read(form, answer) for answer in await self.ask_all(asks)]
        broken = [i for i, each in enumerate(answers) if each.done and each.value is None]
        if broken and self._ended is None:
            again = [
                msgspec.structs.replace(
                    asks[i], message=f"{asks[i].message}\n\n{answers[i].reason}"
                )
                for i in broken
            ]
            with self._in_form(form):
                second = await self.ask_all(again)
            for index, answer in zip(broken, second, strict=True):
                answers[index] = read(form, answer)
        return tuple(map(failed_without_value, answers))

    async def bid(
        self, form: type[T], to: Sequence[str], call: str, *, within_ms: int
    ) -> tuple[Answer[T], ...]:
        """Ask all at once; whoever takes longer than that is late."""
        self._require_open()
        begun, longest = self._world.now_ms, self._world.now_ms
        answers: list[Answer[T]] = []
        for each in to:
            self._world.now_ms = begun
            due_ms = begun + within_ms
            with self._in_form(form):
                answers.append(read(form, self._one_of_many(Ask(each, call), due_ms)))
            longest = max(longest, self._world.now_ms)
        self._world.now_ms = longest
        return self._as_far_as_it_came([failed_without_value(answer) for answer in answers])

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
            return read(form, Answer("", made.decode()))

        return await twice(put, title)

    async def land(self, candidate: ProposalRef) -> Answer[None]:
        """Give the verdict the test names."""
        self._require_open()
        fate = self._verdicts.get(candidate.proposal_id, Fate.DONE)
        self._note("land", candidate.agent_id, candidate.proposal_id, fate=fate)
        reason = "" if fate is Fate.DONE else "the verdict"
        return Answer(candidate.agent_id, "", fate, reason, proposal=candidate)

    # -- interactions within -----------------------------------------------------------------------

    async def play(self, play: Play) -> Outcome:
        """Play an interaction within this one."""
        (outcome,) = await self.play_all([play])
        return outcome

    async def play_all(self, plays: Sequence[Play]) -> tuple[Outcome, ...]:
        """Play several; each begins at the same moment."""
        self._require_open()
        begun, longest = self._world.now_ms, self._world.now_ms
        outcomes = []
        for index, play in enumerate(plays, 1):
            self._world.now_ms = begun
            outcomes.append(await self._play(play, play.name or str(index)))
            longest = max(longest, self._world.now_ms)
        self._world.now_ms = longest
        return tuple(outcomes)

    async def _play(self, play: Play, name: str) -> Outcome:
        if play.pattern not in self._world.patterns:
            raise NotFound(f"There is no pattern {play.pattern} here.")
        pattern = self._world.patterns[play.pattern]
        inner = copy(self)
        path = f"{self._within}/{name}".strip("/")
        inner.begin(play.ends or Ends(), play.share, within=path, around=self._limits)
        self._note("play", text=play.request)
        options = msgspec.convert(dict(play.params), pattern.options, from_attributes=True)
        outcome = await inner.perform(pattern, play.cast, play.request, options)
        self._note("played", text=outcome.reason)
        return outcome

    # -- saying, keeping and looking ---------------------------------------------------------------

    async def tell(self, to: str, message: str, *, by: str = "") -> Receipt:
        """Put it on record, if the rate limit lets it."""
        self._require_open()
        return self._deliver("tell", to, message, by)

    async def route(self, to: Sequence[str], message: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Put it on record for each."""
        self._require_open()
        return tuple(self._deliver("route", each, message, by) for each in dict.fromkeys(to))

    async def subscribe(self, who: str, topic: str, *, replay: int = 0) -> tuple[Entry, ...]:
        """Tell of what is published from now on, and of the last entries at once."""
        self._require_open()
        self._note("subscribe", who, topic)
        self._subscribers.setdefault(topic, {})[who] = None
        missed = self._read(topic)[-replay:] if replay > 0 else ()
        for entry in missed:
            self._deliver("notify", who, entry.text, entry.by)
        return missed

    async def unsubscribe(self, who: str, topic: str) -> None:
        """Tell of nothing more."""
        self._note("unsubscribe", who, topic)
        self._subscribers.get(topic, {}).pop(who, None)

    async def publish(self, topic: str, text: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Put it on the board, and tell those who subscribed."""
        self._require_open()
        entry = self._put("publish", topic, text, by)
        there = [who for who in self._subscribers.get(topic, {}) if who != by]
        return tuple(self._deliver("notify", who, entry.text, by) for who in there)

    async def post(self, topic: str, text: str, *, by: str = "", replaces: int = 0) -> Entry:
        """Put it on the board."""
        self._require_open()
        return self._put("post", topic, text, by, replaces)

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """The latest entries of a topic."""
        self._note("read", topic)
        return self._read(topic)

    async def check(self, metric: str, *, value: float | None = None, detail: str = "") -> Measure:
        """Take the pattern's word, or hand out the next measure; held to the gates."""
        self._require_open()
        said = Measure(metric, value or 0, (value or 0) >= 1, detail)
        measure = self._measures.pop(0) if value is None else said
        gates = [gate for gate in self._ends.gates if gate.metric == metric]
        holds = any(gate.holds(measure.value) for gate in gates) if gates else measure.holds
        self._note("check", text=metric, reply=f"{measure.value:g}")
        return msgspec.structs.replace(measure, holds=holds)

    async def draw(self, among: Sequence[str], why: str) -> str:
        """One of these by the seed."""
        self._world.draws += 1
        words = "\x1f".join([str(self._seed), str(self._world.draws), *among])
        digest = hashlib.sha256(words.encode()).digest()
        choice = among[int.from_bytes(digest) % len(among)]
        self._note("draw", text=why, reply=choice)
        return choice

    async def now(self) -> int:
        """The virtual time."""
        return self._world.now_ms

    def keep(self, result: str) -> None:
        """What it has come to so far."""
        self._kept = result

    async def recall(self, query: str) -> tuple[str, ...]:
        """Whatever in the memory holds the query's words."""
        self._note("recall", text=query)
        return tuple(entry for entry in self._memory if query.casefold() in entry.casefold())

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put it on record, with its sources as the reply."""
        self._note("note", text=entry, reply=", ".join(sources))

    async def rounds(self, most: int) -> AsyncIterator[ScriptedStage]:
        """Count."""
        self._require_open()
        allowed = most if self._ends.rounds is None else min(most, self._ends.rounds)
        for number in range(1, allowed + 1):
            self._round = number
            yield self

    # -- limits ------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        """End here if a limit struck while several were asked, or time is over."""
        ended = self._ended or self._is_over()
        if ended is not None:
            raise ended

    def _is_over(self) -> StageEnded | None:
        due = self._limits.due()
        return due[1] if due is not None and self._world.now_ms >= due[0] else None

    # -- doing it ----------------------------------------------------------------------------------

    def _as_far_as_it_came(self, answers: Sequence[Answer[T]]) -> tuple[Answer[T], ...]:
        """What came before a limit; the limit, if nothing did."""
        self._ended = self._ended or self._is_over()
        if self._ended is not None and not any(answer.done for answer in answers):
            raise self._ended
        return tuple(answers)

    def _one_of_many(self, ask: Ask, due_ms: int | None = None) -> Answer[None]:
        """One of several; a limit is noted and ends the next verb."""
        if self._ended is not None:
            return Answer(ask.to, "", Fate.SKIPPED, str(self._ended))
        try:
            return self._ask(ask, due_ms)
        except StageEnded as ended:
            if self._is_over() is not None:  # for this one; others may have been quicker
                return Answer(ask.to, "", Fate.TIMED_OUT, str(ended))
            self._ended = ended
            return Answer(ask.to, "", Fate.SKIPPED, str(ended))

    def _ask(self, ask: Ask, due_ms: int | None = None) -> Answer[None]:
        self._require_open()
        self._limits.spend(turns=1, messages=2)
        begun = self._world.now_ms
        over_ms = begun + round(self._world.seconds(ask.to, ask.message) * 1000)
        verb = "ask" if ask.work is None else "task"
        limit = self._limits.due()
        if limit is not None and over_ms > limit[0] and (due_ms is None or limit[0] < due_ms):
            self._world.now_ms = round(limit[0])
            self._note(verb, ask.to, ask.message, fate=Fate.TIMED_OUT, at_ms=begun)
            raise limit[1]
        if due_ms is not None and over_ms > due_ms:
            self._world.now_ms = due_ms
            self._note(verb, ask.to, ask.message, "late", fate=Fate.TIMED_OUT, at_ms=begun)
            return Answer(ask.to, "", Fate.TIMED_OUT, "late")
        self._world.now_ms = over_ms
        reply = self._reply(ask)
        answer: Answer[None] = Answer(ask.to, reply) if isinstance(reply, str) else reply
        self._note(verb, ask.to, ask.message, answer.text, fate=answer.fate, at_ms=begun)
        if ask.land or ask.work is None or answer.proposal is not None or not answer.done:
            return answer
        return msgspec.structs.replace(answer, proposal=self._candidate(ask.to))

    def _reply(self, ask: Ask) -> Reply:
        world = self._world
        if world.typed is not None and world.form is not None:
            return world.typed(ask.to, ask.message, world.form)
        return world.script(ask.to, ask.message)

    @contextmanager
    def _in_form(self, form: object) -> Iterator[None]:
        """Nothing here waits, so whatever is asked inside is asked in this form."""
        self._world.form = form
        try:
            yield
        finally:
            self._world.form = None

    def _deliver(self, verb: str, to: str, message: str, by: str) -> Receipt:
        sent = self._sent.setdefault((by, to), [])
        if self._per_minute is not None and len(sent) >= self._per_minute:
            free_ms = sent[-self._per_minute] + MINUTE_MS
            if free_ms > self._world.now_ms and self._refuse:
                reason = f"rate limit: {self._per_minute} a minute"
                self._note(verb, to, message, reason, fate=Fate.REJECTED, by=by)
                return Receipt(to, delivered=False, reason=reason)
            self._world.now_ms = max(self._world.now_ms, free_ms)
            self._require_open()
        self._limits.spend(messages=1)
        sent.append(self._world.now_ms)
        self._note(verb, to, message, by=by)
        return Receipt(to)

    def _put(self, verb: str, topic: str, text: str, by: str, replaces: int = 0) -> Entry:
        there = any(entry.number == replaces for entry in self._read(topic))
        conflict = bool(replaces) and not there
        self._count += 1
        entry = Entry(self._count, topic, text, by, replaces, conflict)
        if there:
            self._posts = [each for each in self._posts if each.number != replaces]
        self._posts.append(entry)
        self._note(verb, topic, text, by=by)
        return entry

    def _read(self, topic: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self._posts if entry.topic == topic)[-self._keep_last_n :]

    def _candidate(self, agent: str) -> ProposalRef:
        self._world.candidates += 1
        name = f"c{self._world.candidates}"
        return ProposalRef(
            run_id="run", agent_id=agent, proposal_id=name, generation=0, patch=f"{name}.patch"
        )

    def _note(
        self,
        verb: str,
        to: str = "",
        text: str = "",
        reply: str = "",
        *,
        fate: Fate = Fate.DONE,
        by: str = "",
        at_ms: int | None = None,
    ) -> None:
        now = self._world.now_ms
        begun = now if at_ms is None else at_ms
        said = Said(verb, self._round, to, text, reply, fate, by, begun, now, self._within)
        self._world.record.append(said)
