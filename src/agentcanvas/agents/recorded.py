"""A runtime whose turns are on record: every event dated and numbered, every turn with an end.

Whatever happens inside, the transcript closes with a result or an error, and the caller gets a
``TurnResult`` (H8); only a cancelled task stays one. Where events are kept is the caller's matter.
"""

from __future__ import annotations

import msgspec
from anyio import get_cancelled_exc_class

from agentcanvas.agents.runtime import (
    UNSTAMPED,
    Emit,
    Outcome,
    Runtime,
    Stamp,
    Turn,
    TurnResult,
    failed,
)
from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, DeadlineExceeded, PermissionDenied
from agentcanvas.protocol.records import ErrorEvent, FailureClass, ResultEvent, TranscriptEvent


class Recorded:
    """Wraps the runtime of one agent in one run, whose transcript is one sequence of events."""

    def __init__(self, runtime: Runtime, clock: Clock, keep: Emit, *, next_seq: int = 0) -> None:
        self._runtime = runtime
        self._clock = clock
        self._keep = keep
        self.next_seq = next_seq
        """Where the transcript goes on; a host that starts again continues with it."""

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run a turn; each event is kept first, then passed on as it was kept."""

        def record(event: TranscriptEvent) -> None:
            stamp: Stamp = {"ts": self._clock.now_ms(), "seq": self.next_seq}
            self.next_seq += 1
            stamped = msgspec.structs.replace(event, **stamp)
            self._keep(stamped)
            emit(stamped)

        try:
            result = await self._runtime.run(turn, record)
        except get_cancelled_exc_class():
            record(_error(FailureClass.CANCELLED, "The turn was cancelled."))
            raise
        except AgentCanvasError as error:
            result = failed(str(error), _class_of(error))
        except Exception as defect:  # noqa: BLE001  # a task always ends with a message (H8)
            result = failed(
                f"The runtime of {turn.agent_id} broke: {type(defect).__name__}: {defect}",
                FailureClass.CRASH,
            )
        record(_closing(result))
        return result


def _closing(result: TurnResult) -> TranscriptEvent:
    if result.outcome is Outcome.OK:
        return ResultEvent(text=result.text, ok=not result.breach, **UNSTAMPED)
    return _error(result.error_class or FailureClass.UNKNOWN, result.error)


def _error(error_class: FailureClass, message: str) -> ErrorEvent:
    return ErrorEvent(error_class=error_class, message=message, **UNSTAMPED)


def _class_of(error: AgentCanvasError) -> FailureClass:
    if isinstance(error, PermissionDenied):
        return FailureClass.DENIED
    return FailureClass.TIMEOUT if isinstance(error, DeadlineExceeded) else FailureClass.UNKNOWN
