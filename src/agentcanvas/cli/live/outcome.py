"""What a run that is done has come to: who let its last change land, and what the checks say."""

from __future__ import annotations

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.view import RunView, TaskView, Verdict
from agentcanvas.proposals.checks import EvidenceStatus
from agentcanvas.proposals.model import Decision
from agentcanvas.runs.state import TaskStatus

_BY_ITSELF = "system"
_TESTS_GATE = "quality_gate: tests_passed"
"""How most flows end; it also holds where nothing is checked, so it says less than the checks."""


def done_line(view: RunView) -> str:
    """One sentence; the last change that landed was checked together with all before it."""
    reason = "" if view.reason.startswith(_TESTS_GATE) else one_line(view.reason)
    done = f"Done ({reason})" if reason else "Done"
    applied = [task for task in view.tasks.values() if task.status is TaskStatus.APPLIED]
    if not applied:
        return f"{done}."
    return done + _of(max(applied, key=lambda task: task.landed_at))


def _of(task: TaskView) -> str:
    verdict = next((v for v in reversed(task.verdicts) if v.decision is Decision.APPLY), None)
    by = verdict.by if verdict else _BY_ITSELF
    who = {"you": "you applied it", _BY_ITSELF: "it landed by itself"}.get(
        by, f"{one_line(by, 40)} let it land"
    )
    red = ", ".join(one_line(name, 80) for name in task.red) or "a check"
    is_red = f"{red} {'are' if len(task.red) > 1 else 'is'} red"
    if task.red and (why := _reason(verdict)):
        return f'. {is_red}, which {one_line(by, 40)} accepted: "{why}".'
    match task.evidence_status:
        case EvidenceStatus.PASSED:
            return ": tests green." if task.tests else ": checks green."
        case EvidenceStatus.RED_BEFORE:
            return f": {who}; {is_red}, as before."
        case EvidenceStatus.FAILED:
            return f": {who}; {is_red}."
        case EvidenceStatus.UNSOUND:
            return f": {who}; the checks may have run other code."
        case _:
            return f": {who}; nothing was checked."


def _reason(verdict: Verdict | None) -> str:
    """What was said against the checks; the gate has put behind it what they say."""
    reason, although, _ = (verdict.reason if verdict else "").rpartition(" (although ")
    return one_line(reason) if although else ""
