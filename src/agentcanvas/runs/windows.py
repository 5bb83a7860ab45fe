"""A run as a page opens it: how it stands, and the last of its events (or those before a place).

Both are of one moment, so that whoever goes on from there misses nothing and counts nothing twice.
What it costs depends on what is asked for, not on how long the run has become.
"""

from __future__ import annotations

from agentcanvas.runs import events as e
from agentcanvas.runs import history
from agentcanvas.runs.office import Window
from agentcanvas.runs.snapshots import account_in
from agentcanvas.store import Event, Snapshot

_TEAM_WITHIN = 20
"""A run begins with its team; what may stand before that is little."""


def window_in(look: Snapshot, stream: str, last: int, before: int | None) -> Window:
    """The window of a run's stream."""
    account, _ = account_in(look, stream)
    first, earlier = _first(look, stream, last, before)
    rows = look.events(after=first - 1, stream=stream, limit=last)
    shown = [row for row in rows if before is None or row.seq < before]
    return Window(
        account.state,
        history.summary(account),
        _team(look, stream),
        tuple(e.from_row(row) for row in shown if row.kind in e.KINDS),
        earlier,
    )


def _first(look: Snapshot, stream: str, last: int, before: int | None) -> tuple[int, bool]:
    """The number of the first row of the window, and whether there are rows before it."""
    found = look.query(
        "SELECT seq FROM events WHERE stream = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (stream, (1 << 62) if before is None else before, last + 1),
    )
    numbers = [row[0] for row in found]
    return (numbers[min(len(numbers), last) - 1] if numbers else 1), len(numbers) > last


def _team(look: Snapshot, stream: str) -> tuple[e.Member, ...]:
    rows: list[Event] = look.events(stream=stream, limit=_TEAM_WITHIN)
    for row in rows:
        if row.kind in e.KINDS:
            event = e.from_row(row).event
            if isinstance(event, e.RunStarted):
                return event.payload.team
    return ()
