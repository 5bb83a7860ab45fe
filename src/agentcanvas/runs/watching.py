"""Watching a run wait: for people, for moments, or for nothing that anybody knows of (D25).

Its clock stands still while only a person or a moment can make it go on. What is waited for is
counted in ``attendance``; here it is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentcanvas.clock import Clock
from agentcanvas.runs import events as e
from agentcanvas.runs.attendance import Attendance
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.stall import On, Standing, Wait, standing

_SYSTEM = e.Provenance.SYSTEM
_LOOK_AFTER_S = 60.0


class Watch:
    """Watches one run; each of its tasks goes on until it is cancelled."""

    def __init__(self, attendance: Attendance, logbook: Logbook, clock: Clock) -> None:
        self._attendance = attendance
        self._logbook = logbook
        self._clock = clock

    def standing(self, turns: Sequence[Wait]) -> Standing:
        """For whom or what the run waits now; ``turns`` are those under way."""
        now = self._clock.monotonic()
        people = [
            Wait(
                who=ask.scope,
                on=On.PERSON,
                names=(ask.person,),
                since=now,
                about=_headline(ask.text),
            )
            for ask in self._attendance.people.values()
        ]
        limits = [
            Wait(who=key, on=On.MOMENT, names=(what,), since=now)
            for key, what in self._attendance.limits.items()
        ]
        return standing([*turns, *people, *limits], now, last_event=self._logbook.last_written)

    async def stalls(self, look: Callable[[], Standing]) -> None:
        """Say it once when nothing happens any more, and for whom the run waits."""
        said = 0.0
        while True:
            await self._clock.sleep(_LOOK_AFTER_S)
            now = look()
            if now.stalled and self._logbook.last_written > said:
                warned = e.Warned(f"Nothing has happened for a while: it {now.sentence}")
                await self._logbook.write(
                    e.WarningGiven(actor="engine", provenance=_SYSTEM, payload=warned)
                )
                said = self._logbook.last_written

    async def limits(self, meter: Meter) -> None:
        """Stop the clock while nothing can go on before the limit of a service ends."""
        while True:
            if self._attendance.is_held_up:
                meter.pause()
            elif not self._attendance.is_parked:
                meter.resume()
            await self._attendance.changed()

    async def parking(self, meter: Meter) -> None:
        """Say when nothing can go on before a person answers; the clock stops meanwhile."""
        while True:
            await self._attendance.parked()
            ask = next(iter(self._attendance.people.values()))
            meter.pause()
            waiting = e.Waiting(ask.person, _headline(ask.text))
            await self._logbook.write(
                e.RunParked(actor="engine", provenance=_SYSTEM, payload=waiting)
            )
            await self._attendance.awake()
            meter.resume()
            await self._logbook.write(e.RunResumed(actor="engine", provenance=_SYSTEM))


def _headline(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")
