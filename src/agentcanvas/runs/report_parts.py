"""The parts of a report, as frozen values: what the JSON report holds and the page is drawn from.

The shape is stable: camelCase names, every field always there, times as RFC 3339 text in UTC, null
for what is not known. How it is gathered from the events is left to ``report_json``.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentcanvas.proposals.model import Decision, TestsRun
from agentcanvas.runs.events import Member
from agentcanvas.runs.state import RunStatus, TaskStatus


class _Part(Struct, frozen=True, rename="camel"):
    """camelCase outside, and nothing left out."""


class RunPart(_Part, frozen=True):
    """The run as a whole; ``files`` are those that landed and stayed."""

    id: str
    flow: str
    request: str
    status: RunStatus
    reason: str
    waits_for: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int
    head: str | None
    commit: str | None
    files: tuple[str, ...]
    team: tuple[Member, ...]


class InteractionPart(_Part, frozen=True):
    """One pattern that was played."""

    id: str
    pattern: str
    label: str
    roles: dict[str, tuple[str, ...]]
    ended: bool
    done: bool
    reason: str


class EvidencePart(_Part, frozen=True):
    """What the checks said."""

    at: str
    status: str
    sentence: str
    tests: TestsRun | None


class VerdictPart(_Part, frozen=True):
    """What somebody decided about a proposal."""

    at: str
    by: str
    by_name: str
    decision: Decision
    reason: str


class Landing(_Part, frozen=True):
    """Files that reached the workspace, or were taken back."""

    at: str
    files: tuple[str, ...]
    commit: str | None = None


class ProposalPart(_Part, frozen=True):
    """One version of a task's change, and what became of it."""

    at: str
    summary: str
    changed_files: int
    tests: TestsRun | None
    evidence: tuple[EvidencePart, ...]
    verdicts: tuple[VerdictPart, ...]
    landed: Landing | None
    undone: Landing | None


class TaskPart(_Part, frozen=True):
    """One task, with every version of its change."""

    id: str
    worker: str
    worker_name: str
    instruction: str
    status: TaskStatus
    attempts: int
    summary: str
    reason: str
    files: tuple[str, ...]
    proposals: tuple[ProposalPart, ...]


class QuestionPart(_Part, frozen=True):
    """Something that waited for a person."""

    id: str
    at: str
    person: str
    question: str
    answer: str | None
    answered_at: str | None


class Spent(_Part, frozen=True):
    """What was used, as far as it is known: unknown usage counts as none."""

    id: str
    name: str
    turns: int
    input_tokens: int
    output_tokens: int
    cache_read: int
    cache_write: int
    cost: float
    models: tuple[str, ...]
    cost_is_estimate: bool = False


class UsagePart(_Part, frozen=True):
    """In all, and by agent."""

    total: Spent
    agents: tuple[Spent, ...]


class Said(_Part, frozen=True):
    """A sentence and its moment."""

    at: str
    text: str


class Line(_Part, frozen=True):
    """One line of the timeline."""

    seq: int
    at: str
    event: str
    actor: str
    name: str
    text: str


class EndPart(_Part, frozen=True):
    """Why the run ended, whether with its goal reached, and what its agents say came of it."""

    reason: str
    done: bool
    result: str


class Report(_Part, frozen=True):
    """All of it."""

    version: Literal["1"]
    run: RunPart
    interactions: tuple[InteractionPart, ...]
    tasks: tuple[TaskPart, ...]
    questions: tuple[QuestionPart, ...]
    usage: UsagePart
    warnings: tuple[Said, ...]
    notes: tuple[Said, ...]
    timeline: tuple[Line, ...]
    end: EndPart | None
