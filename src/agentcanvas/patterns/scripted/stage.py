"""The verbs of the Stage for tests.

It keeps the promises of the real one that a pattern can see: rounds end at their limit, a task
whose hard dependency failed is not asked, an answer that breaks its form is asked for once more, a
board forgets what is over its retention, a gate is held to the value the flow sets, a bid after the
deadline is late, what was handed over is collected as it comes, and a limit ends whatever verb
meets it. Time is virtual: an ask takes as long as ``seconds`` says, and asks made together take as
long as the longest.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
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
    Gate,
    Measure,
    Outcome,
    Pattern,
    Play,
    Receipt,
    Share,
    Work,
    read_choice,
)
from agentcanvas.patterns.scripted.asking import Asking
from agentcanvas.patterns.scripted.board import Board
from agentcanvas.patterns.scripted.place import Place
from agentcanvas.patterns.scripted.script import (
    Limits,
    Person,
    Said,
    Script,
    Seconds,
    Typed,
    World,
    at_once,
    read,
    twice,
    without_value,
)
from agentcanvas.patterns.scripted.speech import Speech
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.protocol.records import ProposalRef

T = TypeVar("T")


class ScriptedStage:
    """Plays the script; ``measures`` are handed out in order.

    ``verdicts`` are the fates of candidates by their id, DONE if not named; ``memory`` is what
    ``recall`` looks through; ``turns`` is a limit after which nothing more is asked. ``patterns``
    are those that ``play`` knows. ``rate_limit_per_min`` counts the messages from one to another
    that need no answer; what is over it waits, or is refused with ``refuse``. ``typed`` answers in
    place of the script where a form is asked for. With ``first_come`` what was handed over is
    collected as it comes, as where a flow says ``sync: async``; with ``streams`` the paragraphs of
    an answer are on record as parts before it, as where it says ``streaming``.
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
        first_come: bool = False,
        streams: bool = False,
    ) -> None:
        self._world = World(script, seconds, patterns)
        self._world.typed = typed
        self._world.streams = streams
        self._first_come = first_come
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
        place = Place(self._world, ends, share, within=within, around=around)
        self._place = place
        self._board = Board(self._keep_last_n)
        self._speech = Speech(place, self._per_minute, refuse=self._refuse)
        self._asking = Asking(place, first_come=self._first_come)
        self._kept = ""
        self._looks_itself = True
        self._held: Gate | None = None

    @property
    def record(self) -> list[Said]:
        """Every verb so far, those of interactions within this one included."""
        return self._world.record

    @property
    def ends(self) -> Ends:
        """When the interaction ends, as the test says."""
        return self._place.ends

    def words(self, name: str, **facts: object) -> str:
        """A prompt, filled in."""
        return self._words.fill(name, facts)

    async def perform(self, pattern: Pattern, cast: Cast, request: str, options: Any) -> Outcome:
        """Have a pattern played to its end, which may be a limit, as the engine does."""
        self._looks_itself = bool(getattr(pattern, "looks_at_gates", False))
        try:
            outcome = await pattern.run(self, cast, request, options)
            self._asking.wait_for_the_rest()
            limit = self._place.ended
        except StageEnded as ended:
            outcome, limit = Outcome("", done=False), ended
            self._asking.wait_for_the_rest()
        if limit is None and self._held is not None and not outcome.done:
            return Outcome(str(self._held), done=True, result=outcome.result or self._kept)
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
        return self._asking.one(Ask(to, message, work, land, tuple(on)))

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Read the reply as ``form``; a breach is asked for once more, then it is a failure."""

        async def put(message: str) -> Answer[T]:
            with self._asking.in_form(form):
                return read(form, await self.ask(to, message))

        return await twice(put, message)

    async def decide(self, to: str, question: str, choices: Sequence[str]) -> Answer[str]:
        """Read the reply as one of the choices; a breach is asked for once more."""

        async def put(message: str) -> Answer[str]:
            with self._asking.in_form(tuple(choices)):
                answer = await self.ask(to, message)
            if not answer.done:
                return without_value(answer)
            choice = read_choice(answer.text, choices)
            breach = "" if choice else f"Answer with one of: {', '.join(choices)}."
            return Answer(to, answer.text, reason=breach, value=choice)

        return await twice(put, question)

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask in the order the dependencies allow; those without any begin at the same moment."""
        self._place.require_open()
        return self._asking.all_of(asks)

    async def ask_all_for(self, form: type[T], asks: Sequence[Ask]) -> tuple[Answer[T], ...]:
        """Read each reply as ``form``; those that broke it are asked once more afterwards."""
        self._place.require_open()
        return self._asking.all_in_form(form, asks)

    async def hand_over(self, asks: Sequence[Ask], form: type[Any] | None = None) -> None:
        """Ask many at once and go on."""
        self._place.require_open()
        self._asking.hand_over(asks, form)

    async def collect(self) -> tuple[tuple[Ask, Answer[Any]], ...]:
        """What has come of it: all of it, or with ``first_come`` what came first."""
        self._place.require_open()
        return self._asking.collect()

    async def bid(
        self, form: type[T], to: Sequence[str], call: str, *, within_ms: int
    ) -> tuple[Answer[T], ...]:
        """Ask all at once; whoever takes longer than that is late."""
        self._place.require_open()
        return self._asking.bids(form, to, call, within_ms)

    async def confirm(self, form: type[T], proposal: T, title: str) -> Answer[T]:
        """Have the test's person look at it, if there is one."""
        if self._person is None:
            return Answer("", title, value=proposal)
        person = self._person

        async def put(title: str) -> Answer[T]:
            self._place.note("confirm", text=title)
            made = person(title, msgspec.json.encode(proposal))
            if made is None:
                return Answer("", title, Fate.REJECTED, "declined")
            return read(form, Answer("", made.decode()))

        return await twice(put, title)

    async def land(self, candidate: ProposalRef) -> Answer[None]:
        """Give the verdict the test names."""
        self._place.require_open()
        fate = self._verdicts.get(candidate.proposal_id, Fate.DONE)
        self._place.note("land", candidate.agent_id, candidate.proposal_id, fate=fate)
        reason = "" if fate is Fate.DONE else "the verdict"
        return Answer(candidate.agent_id, "", fate, reason, proposal=candidate)

    # -- interactions within -----------------------------------------------------------------------

    async def play(self, play: Play) -> Outcome:
        """Play an interaction within this one."""
        (outcome,) = await self.play_all([play])
        return outcome

    async def play_all(self, plays: Sequence[Play]) -> tuple[Outcome, ...]:
        """Play several; each begins at the same moment."""
        self._place.require_open()
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
        path = f"{self._place.within}/{name}".strip("/")
        inner.begin(play.ends or Ends(), play.share, within=path, around=self._place.limits)
        self._place.note("play", text=play.request)
        options = msgspec.convert(dict(play.params), pattern.options, from_attributes=True)
        outcome = await inner.perform(pattern, play.cast, play.request, options)
        self._place.note("played", text=outcome.reason)
        return outcome

    # -- saying, keeping and looking ---------------------------------------------------------------

    async def tell(self, to: str, message: str, *, by: str = "") -> Receipt:
        """Put it on record, if the rate limit lets it."""
        self._place.require_open()
        return self._speech.deliver("tell", to, message, by)

    async def route(self, to: Sequence[str], message: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Put it on record for each."""
        self._place.require_open()
        return tuple(self._speech.deliver("route", each, message, by) for each in dict.fromkeys(to))

    async def subscribe(self, who: str, topic: str, *, replay: int = 0) -> tuple[Entry, ...]:
        """Tell of what is published from now on, and of the last entries at once."""
        self._place.require_open()
        missed = self._board.read(topic)[-replay:] if replay > 0 else ()
        self._speech.subscribe(who, topic, missed)
        return missed

    async def unsubscribe(self, who: str, topic: str) -> None:
        """Tell of nothing more."""
        self._speech.unsubscribe(who, topic)

    async def publish(self, topic: str, text: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Put it on the board, and tell those who subscribed."""
        self._place.require_open()
        entry = self._board.put(topic, text, by)
        self._place.note("publish", topic, text, by=by)
        return self._speech.notify(entry)

    async def post(self, topic: str, text: str, *, by: str = "", replaces: int = 0) -> Entry:
        """Put it on the board."""
        self._place.require_open()
        entry = self._board.put(topic, text, by, replaces)
        self._place.note("post", topic, text, by=by)
        return entry

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """The latest entries of a topic."""
        self._place.note("read", topic)
        return self._board.read(topic)

    async def check(self, metric: str, *, value: float | None = None, detail: str = "") -> Measure:
        """Take the pattern's word, or hand out the next measure; held to the gates."""
        self._place.require_open()
        said = Measure(metric, value or 0, (value or 0) >= 1, detail)
        measure = self._measures.pop(0) if value is None else said
        gates = [gate for gate in self._place.ends.gates if gate.metric == metric]
        holds = any(gate.holds(measure.value) for gate in gates) if gates else measure.holds
        self._place.note("check", text=metric, reply=f"{measure.value:g}")
        return msgspec.structs.replace(measure, holds=holds)

    async def draw(self, among: Sequence[str], why: str) -> str:
        """One of these by the seed."""
        self._world.draws += 1
        words = "\x1f".join([str(self._seed), str(self._world.draws), *among])
        digest = hashlib.sha256(words.encode()).digest()
        choice = among[int.from_bytes(digest) % len(among)]
        self._place.note("draw", text=why, reply=choice)
        return choice

    async def now(self) -> int:
        """The virtual time."""
        return self._world.now_ms

    def keep(self, result: str) -> None:
        """What it has come to so far."""
        self._kept = result

    async def recall(self, query: str) -> tuple[str, ...]:
        """Whatever in the memory holds the query's words."""
        self._place.note("recall", text=query)
        return tuple(entry for entry in self._memory if query.casefold() in entry.casefold())

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put it on record, with its sources as the reply."""
        self._place.note("note", text=entry, reply=", ".join(sources))

    async def rounds(self, most: int) -> AsyncIterator[ScriptedStage]:
        """Count."""
        self._place.require_open()
        allowed = most if self.ends.rounds is None else min(most, self.ends.rounds)
        for number in range(1, allowed + 1):
            self._place.round = number
            yield self
            for gate in () if self._looks_itself else self.ends.gates:
                if (await self.check(gate.metric)).holds:
                    self._held = gate
                    return
