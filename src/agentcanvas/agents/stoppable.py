"""A runtime whose turns can be stopped by name (H10); a stopped turn ends as cancelled."""

from __future__ import annotations

import anyio

from agentcanvas.agents.runtime import Emit, Outcome, Runtime, Turn, TurnResult, failed
from agentcanvas.protocol.records import FailureClass


class _Running:
    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.reason = ""


class Stoppable:
    """Wraps a runtime and knows the turns under way in it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: dict[str, _Running] = {}

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run a turn until it ends or ``stop`` ends it."""
        if turn.turn_id in self._running:
            return failed(f"{turn.agent_id} is at work on {turn.turn_id} already.")
        running = self._running[turn.turn_id] = _Running()
        try:
            with running.scope:
                return await self._runtime.run(turn, emit)
        finally:
            del self._running[turn.turn_id]
            running.ended.set()
        return failed(
            f"{turn.agent_id} was stopped: {running.reason}",
            FailureClass.CANCELLED,
            outcome=Outcome.CANCELLED,
        )

    async def stop(self, turn_id: str, reason: str) -> bool:
        """Stop a turn and wait until nothing of it is left; False if it is not under way."""
        running = self._running.get(turn_id)
        if running is None:
            return False
        running.reason = running.reason or reason
        running.scope.cancel()
        await running.ended.wait()
        return True

    async def stop_all(self, reason: str) -> int:
        """Stop every turn under way; gives how many there were."""
        return sum([await self.stop(turn_id, reason) for turn_id in list(self._running)])
