"""What happened in a run, for people: the Markdown report (V6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agentcanvas.proposals.model import Decision, TestsRun
from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunState, TaskState, TaskStatus, fold

_STATUS = {
    TaskStatus.DISPATCHED: "⏳ In work",
    TaskStatus.IN_REVIEW: "⏳ In review",
    TaskStatus.REVISING: "🔁 Changes requested",
    TaskStatus.APPLIED: "✅ Applied",
    TaskStatus.REJECTED: "❌ Rejected",
    TaskStatus.FAILED: "❌ Failed",
    TaskStatus.ANSWERED: "✅ Answered",
    TaskStatus.UNDONE: "↩️ Undone",
}

_MOST_NAMED = 50


def markdown(recorded: Sequence[e.Recorded], *, commit: str | None = None) -> str:
    """The report; ``commit`` is where the changes were committed, if they were."""
    state = fold(recorded)
    parts = [
        f"# Run Report: {state.flow} / {state.run_id}",
        _timeline(recorded, state),
        _proposals(state),
        _final_changes(state, commit or state.commit),
    ]
    return "\n\n".join(parts) + "\n"


def _timeline(recorded: Iterable[e.Recorded], state: RunState) -> str:
    rows = [
        "## Timeline",
        "",
        "| Time | Event | Agent | Content |",
        "|------|--------|---------|------|",
    ]
    for entry in recorded:
        cells = _row(entry.event, state)
        if cells is not None:
            time = datetime.fromtimestamp(entry.ts / 1000, UTC).strftime("%H:%M:%S")
            agent, content = cells
            rows.append(f"| {time} | {e.kind_of(entry.event)} | {agent} | {_cell(content)} |")
    return "\n".join(rows)


def _row(event: e.RunEvent, state: RunState) -> tuple[str, str] | None:
    """Agent and content of one line; None for what the timeline leaves out."""
    who = state.name_of(event.actor)
    match event:
        case e.TaskDispatched(payload=dispatch):
            return f"{who} → {state.name_of(dispatch.worker_id)}", dispatch.instruction
        case e.ProposalSubmitted(payload=submission):
            return who, f"{_files(submission.changed_files)}{_tests(submission.tests)}"
        case e.ProposalReviewed(payload=review):
            reason = f": {review.reason}" if review.reason else ""
            said = review.decision.value.upper()
            return who, said if review.decision is Decision.APPLY else f"{said}{reason}"
        case e.ProposalUndone(payload=undone):
            return who, _files(len(undone.files))
        case e.RunParked(payload=waiting):
            return waiting.person, waiting.question
        case e.RunEnded(payload=end):
            return who, end.reason
        case _:
            return None


def _proposals(state: RunState) -> str:
    parts = ["## Proposals"]
    parts += [_proposal(task, state) for task in state.tasks.values()]
    return "\n\n".join(parts) if state.tasks else "## Proposals\n\nNone."


def _named(files: Sequence[str]) -> str:
    """All of them, as far as anybody would read them."""
    if len(files) <= _MOST_NAMED:
        return ", ".join(files) or "nothing"
    return f"{', '.join(files[:_MOST_NAMED])} and {len(files) - _MOST_NAMED:,} more"


def _proposal(task: TaskState, state: RunState) -> str:
    lines = [
        f"### {state.name_of(task.worker)} — {_cell(task.instruction)}",
        f"- Status: {_STATUS[task.status]}",
        f"- Changed: {_named(task.files)}",
    ]
    if task.summary:
        lines.append(f"- Summary: {_cell(task.summary)}")
    if task.reason and task.status in {TaskStatus.REJECTED, TaskStatus.REVISING}:
        lines.append(f"- Reason: {_cell(task.reason)}")
    return "\n".join(lines)


def _final_changes(state: RunState, commit: str | None) -> str:
    applied = [task for task in state.tasks.values() if task.status is TaskStatus.APPLIED]
    files = dict.fromkeys(file for task in applied for file in task.files)
    lines = ["## Final Changes", f"- {_files(len(files))} modified"]
    if files:
        lines.append(f"- Applied at commit: {commit or _uncommitted(state.head)}")
    return "\n".join(lines)


def _uncommitted(head: str | None) -> str:
    return f"HEAD {head[:7]} + uncommitted" if head else "none, the workspace has no commits"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _tests(tests: TestsRun | None) -> str:
    return "" if tests is None else f", tests {tests.passed}/{tests.total}"


def _cell(text: str) -> str:
    """One line of text that cannot break a table or a heading."""
    return " ".join(_without_blocks(text).split()).replace("|", "\\|")


def _without_blocks(text: str) -> str:
    """What is said, without the fenced blocks between: what programs printed makes no sentence."""
    kept: list[str] = []
    block: list[str] = []
    for line in text.splitlines():
        if block:
            block.append(line)
            if line.rstrip() == _fence_of(block[0]):
                kept.append("…")
                block = []
        elif line.startswith("```"):
            block = [line]
        else:
            kept.append(line)
    return "\n".join(kept + block)


def _fence_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip("`"))]
