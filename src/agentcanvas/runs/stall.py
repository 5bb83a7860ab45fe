"""For whom or what a run waits, in one sentence (D25), and whether it has come to a stand.

Pure: it is given what is under way and the time, in seconds of one clock, and says what it sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

STALLED_AFTER_S = 10 * 60.0
"""How long nothing may happen, while nobody is asked, before a run counts as stalled."""

_MINUTE_S = 60
_SHOWN = 3


class On(StrEnum):
    """What kind of thing is waited for."""

    AGENT = "agent"
    PERSON = "person"
    TASK = "task"
    MOMENT = "moment"
    """The end of a limit, which comes by itself."""
    PLACE = "place"
    """Its agent is busy, or as many work as may at once."""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Something under way that waits.

    ``who`` waits for the ``names``: one agent or person, or the tasks it depends on. ``about`` is
    what a person is asked. ``sign`` is the last sign of life, ``since`` when the wait began.
    """

    who: str
    on: On
    names: tuple[str, ...]
    since: float
    sign: float | None = None
    about: str = ""

    @property
    def last_sign(self) -> float:
        """When it was heard of last."""
        return self.since if self.sign is None else max(self.since, self.sign)


class Standing(msgspec.Struct, frozen=True):
    """How a run stands: whom it waits for, and whether it will get anywhere like that."""

    sentence: str = ""
    stalled: bool = False
    deadlocked: bool = False


def standing(
    waits: Sequence[Wait],
    now: float,
    *,
    last_event: float,
    patience_s: float = STALLED_AFTER_S,
) -> Standing:
    """What to say of a run with these waits.

    Agents at work come first, since they may still go on by themselves; then people. Tasks wait
    for either, so with neither at hand they wait for nobody.
    """
    agents = [wait for wait in waits if wait.on in (On.AGENT, On.PLACE)]
    people = [wait for wait in waits if wait.on is On.PERSON]
    silent_s = now - max([last_event, *(wait.last_sign for wait in agents)])
    moments = [wait for wait in waits if wait.on is On.MOMENT]
    stalled = not people and not moments and silent_s >= patience_s
    at_work = [wait for wait in agents if wait.on is On.AGENT]
    if at_work:
        return Standing(_for_agents(at_work, now), stalled)
    if people or moments:
        return Standing(_for_people(people or moments))
    if waits:
        why = _listed(f"{wait.who} waits for {_names(wait.names)}" for wait in waits)
        return Standing(f"nothing can go on: {why}", stalled=True, deadlocked=True)
    return Standing("nothing is under way" if stalled else "", stalled)


def sentence(wait: Wait, now: float) -> str:
    """For whom or what one thing waits, such as ``t3 waits for t1``."""
    match wait.on:
        case On.AGENT:
            return _for_agents([wait], now)
        case On.PERSON | On.MOMENT:
            return _for_people([wait])
        case On.TASK:
            return f"{wait.who} waits for {_names(wait.names)}"
        case On.PLACE:
            return f"{wait.who} waits until {_names(wait.names)} is free"


def _for_agents(waits: Sequence[Wait], now: float) -> str:
    """The one that was silent longest is what a person would look at."""
    quiet = min(waits, key=lambda wait: wait.last_sign)
    silent = now - quiet.last_sign
    others = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    since = f", silent for {_duration(silent)}" if silent >= _MINUTE_S else ""
    return f"waits for {_names(quiet.names)}{others}{since}"


def _for_people(waits: Sequence[Wait]) -> str:
    first = min(waits, key=lambda wait: wait.since)
    about = f": {first.about}" if first.about else ""
    others = f", and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"waits for {_names(first.names)}{about}{others}"


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def _listed(reasons: Iterable[str]) -> str:
    listed = list(reasons)
    more = f", and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def _duration(seconds: float) -> str:
    minutes = int(seconds // _MINUTE_S)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"
