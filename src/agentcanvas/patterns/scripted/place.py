"""One interaction of a ``ScriptedStage``: its ends, what it may still spend, and its record."""

from __future__ import annotations

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Ends, Fate, Share
from agentcanvas.patterns.scripted.script import Limits, Said, World


class Place:
    """Where things are said, from the time on at which it begins."""

    def __init__(
        self,
        world: World,
        ends: Ends,
        share: Share,
        *,
        within: str = "",
        around: Limits | None = None,
    ) -> None:
        self.world = world
        self.ends = ends
        self.within = within
        self.limits = Limits(ends, share, world.now_ms, around)
        self.round = 0
        self.ended: StageEnded | None = None
        """The limit that struck while several were asked; the next verb ends."""

    def is_over(self) -> StageEnded | None:
        """Why it is over, if time is."""
        due = self.limits.due()
        return due[1] if due is not None and self.world.now_ms >= due[0] else None

    def require_open(self) -> None:
        """End here if a limit struck while several were asked, or time is over."""
        ended = self.ended or self.is_over()
        if ended is not None:
            raise ended

    def note(
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
        """Put a verb on record."""
        now = self.world.now_ms
        begun = now if at_ms is None else at_ms
        said = Said(verb, self.round, to, text, reply, fate, by, begun, now, self.within)
        self.world.record.append(said)
