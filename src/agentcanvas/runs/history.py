"""Reading runs back from the store: which there are, their events, and what they have used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import msgspec

from agentcanvas.errors import ValidationError
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunOrder, RunSummary
from agentcanvas.runs.snapshots import Account
from agentcanvas.runs.state import TaskStatus
from agentcanvas.store import Event, Snapshot, Store

ORDER = "order"
_PAGE = 1000


async def streams(store: Store) -> dict[str, str]:
    """The stream of each run by its id, the oldest first."""
    rows = await store.read(_started)
    return {stream.rpartition("/")[2]: stream for (stream,) in rows}


# From name to name in the index, so that opening does not read every event there is.
_RUNS = """
WITH RECURSIVE names (stream) AS (
    SELECT min(stream) FROM events
    UNION ALL
    SELECT (SELECT min(stream) FROM events WHERE stream > names.stream)
    FROM names WHERE stream IS NOT NULL
)
SELECT first.stream FROM names
JOIN events AS first ON first.seq = (SELECT min(seq) FROM events WHERE stream = names.stream)
WHERE first.kind = 'run_started' ORDER BY first.seq
"""


def _started(look: Snapshot) -> list[tuple[str]]:
    return [(row[0],) for row in look.query(_RUNS)]


async def rows(store: Store, stream: str, after: int = 0) -> AsyncIterator[Event]:
    """Every row of a stream as it stands."""
    while page := await store.events(after=after, stream=stream, limit=_PAGE):
        for row in page:
            yield row
        if len(page) < _PAGE:
            return
        after = page[-1].seq


async def recorded(store: Store, stream: str) -> list[e.Recorded]:
    """The events of a run as they stand."""
    return [e.from_row(row) async for row in rows(store, stream) if row.kind in e.KINDS]


async def order_of(store: Store, stream: str) -> RunOrder:
    """What a run was started with."""
    async for row in rows(store, stream):
        if row.kind == ORDER:
            return msgspec.json.decode(row.body, type=RunOrder)
    raise ValidationError(f"The run {stream} was recorded without its order; start a new one.")


def summary(account: Account) -> RunSummary:
    """One line of the list."""
    state = account.state
    return RunSummary(
        run_id=state.run_id,
        flow=state.flow,
        request=state.request,
        team=tuple(state.names.values()),
        status=state.status,
        started_ms=account.started_ms,
        ended_ms=account.last_ms if state.status.is_over else None,
        reason=state.reason,
        waits_for=state.waits_for,
        applied=sum(task.status is TaskStatus.APPLIED for task in state.tasks.values()),
        tasks=len(state.tasks),
        tokens=account.tokens,
        cost=account.cost,
        is_estimate=account.is_estimate,
    )


def used(entries: Iterable[e.Recorded]) -> tuple[int, float]:
    """Tokens and money that the turns so far were charged."""
    tokens, cost = 0, 0.0
    for entry in entries:
        if isinstance(entry.event, e.TurnEnded) and entry.event.payload.charge is not None:
            tokens += entry.event.payload.charge.tokens
            cost += entry.event.payload.charge.cost
    return tokens, cost


def worked_seconds(entries: Iterable[e.Recorded]) -> float:
    """How long a run has worked; while it was parked, or nobody ran it, does not count.

    Added up from event to event: a wall clock that is set back takes away no more than one step.
    """
    total, last = 0, 0
    at_work = False
    for entry in entries:
        # It was found dead later; it worked until its last sign.
        if at_work and not isinstance(entry.event, e.RunInterrupted):
            total += max(0, entry.ts - last)
        match entry.event:
            case e.RunStarted() | e.RunResumed():
                at_work = True
            case e.RunParked() | e.RunEnded() | e.RunInterrupted():
                at_work = False
            case _:
                pass
        last = entry.ts
    return total / 1000
