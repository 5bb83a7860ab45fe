"""What the engine itself says to agents and people: reviews, revisions, plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentcanvas.proposals.checks import Evidence
from agentcanvas.proposals.remarks import LONGEST_REMARK, MOST_REMARKS
from agentcanvas.protocol.records import ChangedFile

_LONGEST_PATCH = 60_000
_LONGEST_SAID = 4_000
_LONGEST_OUTPUT = 4_000
_LINES_FOR_A_PERSON = 15

# R5, word for word what the findings' levels mean.
_SEVERITIES = """\
Severity: critical = security hole or risk of data loss (SQL injection, unhandled null); \
major = functional bug (wrong algorithm, missing validation); \
minor = quality (style violation, redundant code); \
suggestion = improvement (naming, optimisation)."""

_VERDICT = """\
End with exactly one of these lines, alone on its line:
APPLY
REJECT: the reason
REVISE: what has to change
Or answer with one JSON object {"decision": "apply" | "reject" | "revise", "reason": "…", \
"findings": [{"severity": "…", "description": "…", "location": {"file": "…", "line_start": 1}}]}.
Anything critical or major that is still open means REVISE or REJECT."""

VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["apply", "reject", "revise"]},
        "reason": {"type": "string"},
        "comments": {
            "type": "array",
            "maxItems": MOST_REMARKS,
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "line": {"type": "integer", "minimum": 0},
                    "side": {"enum": ["old", "new"]},
                    "quote": {"type": "string"},
                    "text": {"type": "string", "maxLength": LONGEST_REMARK},
                },
                "required": ["path", "text"],
            },
        },
        "choose": {
            "description": "Only these files, and of a file only these hunks; all if not given.",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "hunks": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                },
                "required": ["path"],
            },
        },
    },
    "required": ["decision"],
}


def review_request(
    *,
    worker: str,
    task_id: str,
    instruction: str,
    summary: str,
    criteria: Sequence[str],
    files: Sequence[ChangedFile],
    evidence: Evidence,
    patch: bytes,
    notes: Sequence[str] = (),
    again: str = "",
) -> str:
    """What a reviewer gets to read: the task, what was done, what the checks say, and the patch."""
    parts = [
        f"Review the change that {worker} proposes for task {task_id}.",
        f"The task:\n{instruction}",
        _listed("Acceptance criteria", criteria),
        f"The worker says:\n{_shortened(summary, _LONGEST_SAID)}",
        _listed("Files", [f"{file.status} {file.path}" for file in files]),
        f"The checks, run by the engine on base + patch, before → after: {evidence.sentence}",
        *_outputs(evidence),
        _listed("Look closely at", notes),
        f"The patch:\n{_fenced(patch.decode('utf-8', 'replace'))}",
        _SEVERITIES,
        _VERDICT,
        f"Your last answer held no verdict that could be read. {again}" if again else "",
    ]
    return "\n\n".join(filter(None, parts))


def review_for_person(
    *,
    worker: str,
    task_id: str,
    instruction: str,
    summary: str,
    files: Sequence[ChangedFile],
    evidence: Evidence,
    notes: Sequence[str] = (),
    why: str = "",
) -> str:
    """The same for a person, who looks at the patch with a tool of their own."""
    parts = [
        f"Apply the change of {worker} for {task_id}?",
        why,
        f"Task: {instruction}",
        _shortened(summary, _LONGEST_SAID),
        _listed("Files", [f"{file.status} {file.path}" for file in files]),
        f"Checks: {evidence.sentence}",
        *_outputs(evidence, _LINES_FOR_A_PERSON),
        _listed("Look closely at", notes),
    ]
    return "\n\n".join(filter(None, parts))


def revision(instruction: str, reason: str, evidence: Evidence) -> str:
    """The message of a task that was sent back (R2, C3)."""
    parts = [
        f"Your change was not accepted yet. What has to change:\n{reason}",
        *_outputs(evidence),
        f"Your files are as you left them; go on from there. The task was:\n{instruction}",
    ]
    return "\n\n".join(parts)


def continued(instruction: str, *, said: str, why: str, before: str, has_files: bool) -> str:
    """The message of a task whose turn ended before it was done, by a limit or by a hand-over."""
    whose = f"{before} began with this task" if before else "You began with this task"
    files = "your files are as they were then" if has_files else "nothing had been changed by then"
    parts = [
        f"{whose} and could not finish it; {files}. Look at what is there and finish it.",
        f"Why it ended: {_shortened(why, _LONGEST_SAID)}" if why.strip() else "",
        f"What was said last:\n{_fenced(_shortened(said, _LONGEST_SAID), 'text')}"
        if said.strip()
        else "",
        f"The task was:\n{instruction}",
    ]
    return "\n\n".join(filter(None, parts))


def anew(instruction: str, reason: str, evidence: Evidence) -> str:
    """The message of a task whose ground has moved (D7)."""
    parts = [
        f"Your change could not be applied: {reason}",
        *_outputs(evidence),
        "The files are now as they are in the workspace; make your change again on them. "
        f"The task was:\n{instruction}",
    ]
    return "\n\n".join(parts)


def _outputs(evidence: Evidence, most_lines: int | None = None) -> list[str]:
    """What red checks printed last: whoever mends or judges should not have to run them again."""
    return [
        f"What {each.check.name} printed last ({each.check.command}):\n"
        + _fenced(each.after.last_words(_LONGEST_OUTPUT, most_lines), "text")
        for each in evidence.red
        if each.after.output.strip()
    ]


def _listed(title: str, entries: Sequence[str]) -> str:
    return f"{title}:\n" + "\n".join(f"- {entry}" for entry in entries) if entries else ""


def _fenced(text: str, language: str = "diff") -> str:
    shown = _shortened(text, _LONGEST_PATCH)
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}{language}\n{shown}\n{fence}"


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters]"
