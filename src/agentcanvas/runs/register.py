"""Which runs a workspace has, where each is on record, and how it stands by that record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from agentcanvas.clock import Clock
from agentcanvas.errors import NotFound
from agentcanvas.hub.broker import Transacting
from agentcanvas.runs import events as e
from agentcanvas.runs import history
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.snapshots import Account, Snapshots
from agentcanvas.runs.state import RunState
from agentcanvas.store import Store


class Register:
    """The runs of one workspace by their ids, the oldest first."""

    def __init__(self, store: Store, broker: Transacting, clock: Clock) -> None:
        self.store = store
        self._broker = broker
        self._clock = clock
        self._streams: dict[str, str] = {}
        self._snapshots = Snapshots(store)

    async def load(self) -> None:
        """Find the runs there are."""
        self._streams = await history.streams(self.store)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._streams))

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._streams

    def enter(self, run_id: str, stream: str) -> None:
        """Note a run that has begun."""
        self._streams[run_id] = stream

    def stream(self, run_id: str) -> str:
        """Where a run is on record."""
        try:
            return self._streams[run_id]
        except KeyError:
            raise NotFound(f"There is no run {run_id} here; see: agentcanvas runs") from None

    def logbook(self, run_id: str, stream: str | None = None) -> Logbook:
        """Where to write for a run; one that begins names its stream."""
        return Logbook(self._broker, run_id, stream or self.stream(run_id), self._clock)

    def new_id(self) -> str:
        """A name that no run has."""
        moment = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        name = moment.strftime("run_%Y%m%d_%H%M%S")
        count, found = 1, name
        while found in self._streams:
            count += 1
            found = f"{name}_{count}"
        return found

    async def account(self, run_id: str, *, keep_after: int | None = None) -> Account:
        """How a run stands and what it has used; kept if that was much to read."""
        return await self._snapshots.account(self.stream(run_id), keep_after=keep_after)

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        return await self._snapshots.state(self.stream(run_id))

    async def recorded(self, run_id: str) -> list[e.Recorded]:
        """The events of a run."""
        return await history.recorded(self.store, self.stream(run_id))
