"""What a turn came to, as the message that ends its task says it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from agentcanvas.agents.handing_in import HandedIn
from agentcanvas.agents.runtime import Outcome, TurnResult
from agentcanvas.protocol import kinds
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.kinds import TaskResult
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.turns import Report
from agentcanvas.protocol.values import freeze

_LONGEST_TEXT = 100_000


def task_result(
    task: Any,
    result: TurnResult,
    handed_in: HandedIn | None,
    partial: str = "",
) -> TaskResult:
    """What a turn came to, as its task is ended with."""
    well = result.outcome is Outcome.OK
    typed = well and not result.breach and not isinstance(result.value, StandardResponse)
    report = Report(
        text=_within_reason(result.text),
        value=freeze(result.value) if typed and result.value is not UNSET else UNSET,
        breach=result.breach,
        proposal=handed_in.ref if handed_in else UNSET,
        summary=handed_in.summary if handed_in else "",
        usage=result.usage,
        session_id=result.session_id or "",
        failure=result.error_class or UNSET,
        timed_out=result.outcome in (Outcome.TIMEOUT, Outcome.STALLED),
        retry_at_ms=UNSET if result.retry_at_ms is None else max(0, result.retry_at_ms),
        partial=partial,
        hand_to=result.hand_to,
        notes=(*result.notes, *(handed_in.notes if handed_in else ())),
    )
    return TaskResult(
        task_id=task,
        status=kinds.Outcome.SUCCESS if well else _unwell(result),
        output=freeze(report),
        summary=_within_reason((handed_in.summary if handed_in else result.text) or result.error),
        error_code=UNSET if well else (result.error_class or FailureClass.UNKNOWN).value.upper(),
        error_message=UNSET if well else _within_reason(result.error),
    )


def _within_reason(text: str) -> str:
    """What a message can carry; the whole of it is in the transcript."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _unwell(result: TurnResult) -> kinds.Outcome:
    timed_out = result.outcome in (Outcome.TIMEOUT, Outcome.STALLED)
    return kinds.Outcome.TIMEOUT if timed_out else kinds.Outcome.FAILED
