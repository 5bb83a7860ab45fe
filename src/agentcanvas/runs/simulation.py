"""Patterns played a thousand times by simulated agents of known accuracy, before anybody pays.

There is one right answer and some wrong ones, each a word of its own. An agent gives the right one
with the accuracy it has; who judges sees which it is, and says so with the same accuracy. It is a
model of noise, not of language: it shows what voting, checking and arguing make of agents that err
independently, and what that costs.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import msgspec
from msgspec import inspect as shape

from agentcanvas.errors import ValidationError
from agentcanvas.pattern import Answer, Cast, Ends, Fate, Measure, Outcome, Pattern
from agentcanvas.patterns.scripted import Reply, Said, ScriptedStage
from agentcanvas.protocol.plan import Plan, PlannedTask
from agentcanvas.runs.manners import FORMS, RIGHT, WORDS, WRONG, Seen, right_among

NONE: Final = "none"
"""It ended without a result."""
OTHER: Final = "other"
"""Its result gives no answer."""
_MESSAGES_A_TURN = 2
_MOST_CHECKS = 100
"""Checks pass: what is simulated is agents, not code."""
_WHAT_EXACTLY = re.compile(r"\s*[:(]")
"""What follows it in a reason are names and figures."""
_SURE = 0.9
_UNSURE = 0.1


class Kind(msgspec.Struct, frozen=True):
    """An agent: how often it is right, how often its turn fails, how many wrong answers it knows.

    Written as ``noisy:0.7``, ``noisy:0.7:3`` (three wrong answers), ``perfect``, ``failing:0.2``.
    """

    accuracy: float = 1.0
    fails: float = 0.0
    wrongs: int = 1

    @classmethod
    def of(cls, words: str) -> Kind:
        """What such words mean."""
        name, *figures = words.split(":")
        try:
            match name, figures:
                case "perfect", []:
                    return cls()
                case "noisy", [accuracy]:
                    return cls(_share(accuracy))
                case "noisy", [accuracy, wrongs] if int(wrongs) > 0:
                    return cls(_share(accuracy), wrongs=int(wrongs))
                case "failing", [fails]:
                    return cls(fails=_share(fails))
        except ValueError:
            pass
        raise ValidationError(
            f"{words} is no simulated agent; say noisy:0.7, noisy:0.7:3, perfect or failing:0.2"
        )


class Simulation(msgspec.Struct, frozen=True, rename="camel"):
    """What came of many runs: counts, and means with the most."""

    runs: int
    results: dict[str, int]
    reasons: dict[str, int]
    done: int
    turns: float
    turns_most: int
    messages: float
    messages_most: int
    minutes: float


class Crowd:
    """The agents of one run of a pattern."""

    def __init__(
        self, pattern: Pattern, cast: Cast, kinds: Mapping[str, Kind], options: Any, seed: int
    ) -> None:
        writing = {role.name for role in pattern.roles if role.writes}
        self._cast = cast
        self._kinds = kinds
        self._options = options
        self._workers = [agent for role in writing for agent in cast.get(role, ())]
        self._words = {
            agent: WORDS[pattern.id, role]
            for role, agents in cast.items()
            if (pattern.id, role) in WORDS
            for agent in agents
        }
        self._random = random.Random(seed)  # noqa: S311 - noise, not a secret
        self._plans = 0

    def say(self, to: str, message: str) -> Reply:
        """A text."""
        failed = self._failure(to)
        if failed is not None:
            return failed
        seen = self._seen(to, message, ok=self._is_right(to))
        return self._words[to](seen) if to in self._words else seen.word

    def fill(self, to: str, message: str, form: object) -> Reply:
        """A form, or one of some choices."""
        failed = self._failure(to)
        if failed is not None:
            return failed
        ok = self._is_right(to)
        if isinstance(form, tuple):
            choice = self._choice(form, message, ok=ok)
            value: Any = {"choice": choice, "reason": self._word(to, ok=ok)}
        elif form is Plan:
            value = self._plan()
        elif form in FORMS:
            value = FORMS[form](self._seen(to, message, ok=ok))
        else:
            value = self._value(shape.type_info(form), to, message, ok=ok)
        return msgspec.json.encode(value).decode()

    def seconds(self, to: str, message: str) -> float:
        """About half a minute a turn."""
        del to, message
        return self._random.uniform(15, 45)

    def _seen(self, to: str, message: str, *, ok: bool) -> Seen:
        word = self._word(to, ok=ok)
        return Seen(message, word, ok, self._options, self._cast, self._random)

    def _is_right(self, to: str) -> bool:
        return self._random.random() < self._kinds[to].accuracy

    def _failure(self, to: str) -> Answer[None] | None:
        if self._random.random() < self._kinds[to].fails:
            return Answer(to, "", Fate.FAILED, "simulated")
        return None

    def _word(self, to: str, *, ok: bool) -> str:
        if ok:
            return RIGHT
        wrongs = self._kinds[to].wrongs
        return WRONG if wrongs == 1 else f"{WRONG}-{self._random.randint(1, wrongs)}"

    def _choice(self, among: tuple[str, ...], message: str, *, ok: bool) -> str:
        right = right_among(among, message)
        others = [each for each in among if each != right]
        return right if ok or not others else self._random.choice(others)

    def _plan(self) -> Plan:
        self._plans += 1
        return Plan(
            tuple(
                PlannedTask(f"t{self._plans}-{number}", who, "do it", scope=(f"part-{number}",))
                for number, who in enumerate(self._workers, 1)
            )
        )

    def _value(self, kind: shape.Type, to: str, message: str, *, ok: bool) -> Any:
        match kind:
            case shape.StructType(fields=fields):
                return {
                    each.encode_name: self._value(each.type, to, message, ok=ok) for each in fields
                }
            case shape.VarTupleType(item_type=item) | shape.ListType(item_type=item):
                return [self._value(item, to, message, ok=ok)]
            case shape.UnionType(types=types):
                return self._value(types[0], to, message, ok=ok)
            case _:
                sound = (WRONG not in message) is ok  # as this agent sees what it is shown
                return self._single(kind, to, message, ok=ok, sound=sound)

    def _single(self, kind: shape.Type, to: str, message: str, *, ok: bool, sound: bool) -> Any:
        match kind:
            case shape.BoolType():
                return sound
            case shape.StrType():
                return self._word(to, ok=ok)
            case shape.LiteralType(values=values):
                return self._choice(tuple(map(str, values)), message, ok=ok)
            case shape.EnumType(cls=members):
                return self._choice(tuple(str(each.value) for each in members), message, ok=ok)
            case shape.FloatType(le=most) if most is not None and most <= 1:
                return _SURE if sound else _UNSURE
            case shape.FloatType() | shape.IntType():
                return self._random.randint(1, 9)
            case _:
                return None


def simulate(
    pattern: Pattern,
    cast: Cast,
    kinds: Mapping[str, Kind],
    options: msgspec.Struct,
    *,
    ends: Ends,
    runs: int,
    seed: int = 0,
    patterns: Sequence[Pattern] = (),
    first_come: bool = False,
) -> Simulation:
    """Play a pattern so often; the same seed gives the same figures.

    With ``first_come`` it goes on with whoever has answered, as with ``sync: async``.
    """
    figures = _Figures()

    async def play_all() -> None:
        for number in range(runs):
            crowd = Crowd(pattern, cast, kinds, options, seed * 1_000_003 + number)
            stage = ScriptedStage(
                crowd.say,
                typed=crowd.fill,
                seconds=crowd.seconds,
                measures=[Measure("tests_passed", 1, holds=True)] * _MOST_CHECKS,
                ends=ends,
                seed=seed + number,
                patterns=patterns,
                first_come=first_come,
            )
            outcome = await stage.perform(pattern, cast, "simulated", options)
            figures.take(outcome, stage.record)

    anyio.run(play_all)
    return figures.over(runs)


class _Figures:
    """What came of the runs so far."""

    def __init__(self) -> None:
        self._results: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._turns = [0]
        self._messages = [0]
        self._done = 0
        self._ms = 0

    def take(self, outcome: Outcome, record: Sequence[Said]) -> None:
        """Count one run."""
        self._results[_found_in(outcome.result)] += 1
        self._reasons[_WHAT_EXACTLY.split(outcome.reason)[0]] += 1
        self._done += outcome.done
        asked = sum(said.verb in ("ask", "task") for said in record)
        told = sum(said.verb in ("tell", "route", "notify") for said in record)
        self._turns.append(asked)
        self._messages.append(_MESSAGES_A_TURN * asked + told)
        self._ms += max((said.until_ms for said in record), default=0)

    def over(self, runs: int) -> Simulation:
        """The means and the most over so many runs."""
        return Simulation(
            runs=runs,
            results=dict(self._results.most_common()),
            reasons=dict(self._reasons.most_common()),
            done=self._done,
            turns=sum(self._turns) / runs,
            turns_most=max(self._turns),
            messages=sum(self._messages) / runs,
            messages_most=max(self._messages),
            minutes=self._ms / runs / 60_000,
        )


def _found_in(result: str) -> str:
    """Which answer a result gives: the one it names first."""
    at = {word: result.find(word) for word in (RIGHT, WRONG)}
    named = {word: place for word, place in at.items() if place >= 0}
    first = min(named, key=lambda word: named[word], default="")
    return {RIGHT: "right", WRONG: "wrong"}.get(first, OTHER if result else NONE)


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share
