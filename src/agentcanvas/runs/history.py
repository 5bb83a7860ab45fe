"""Reading runs back from the store: which there are, their events, and what they have used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import msgspec

from agentcanvas.errors import ValidationError
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunOrder, RunSummary
from agentcanvas.runs.state import TaskStatus, fold
from agentcanvas.store import Event, Snapshot, Store

ORDER = "order"
_PAGE = 1000


async def streams(store: Store) -> dict[str, str]:
    """The stream of each run by its id, the oldest first."""
    rows = await store.read(_started)
    return {stream.rpartition("/")[2]: stream for (stream,) in rows}


def _started(look: Snapshot) -> list[tuple[str]]:
    return [
        (row[0],)
        for row in look.query("SELECT stream FROM events WHERE kind = 'run_started' ORDER BY seq")
    ]


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


def summary(entries: list[e.Recorded]) -> RunSummary:
    """One line of the list."""
    state = fold(entries)
    over = state.status.is_over
    tokens, cost = used(entries)
    return RunSummary(
        run_id=state.run_id,
        flow=state.flow,
        request=state.request,
        status=state.status,
        started_ms=entries[0].ts,
        ended_ms=entries[-1].ts if over else None,
        reason=state.reason,
        waits_for=state.waits_for,
        applied=sum(task.status is TaskStatus.APPLIED for task in state.tasks.values()),
        tasks=len(state.tasks),
        tokens=tokens,
        cost=cost,
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
    """How long a run has worked; while it was parked, or nobody ran it, does not count."""
    total, since, last = 0, None, 0
    for entry in entries:
        match entry.event:
            case e.RunStarted() | e.RunResumed():
                since = entry.ts
            case e.RunParked() | e.RunEnded():
                total += max(0, entry.ts - since) if since is not None else 0
                since = None
            case e.RunInterrupted():  # it was found dead later; it worked until its last sign
                total += max(0, last - since) if since is not None else 0
                since = None
            case _:
                pass
        last = entry.ts
    return (total + (max(0, last - since) if since is not None else 0)) / 1000
