"""Reviews: what is asked of a reviewer, and what a reviewer answers (W2, R5).

These are SPEC-022's payloads; in the other dialects they travel as a task and its result.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from agentcanvas.protocol.values import Count, Maybe, Ordinal, Raw, Value, Wanted, Whole, Word


class FocusArea(Word):
    """What a reviewer is asked to look at."""

    SECURITY = "security"
    PERFORMANCE = "performance"
    STYLE = "style"
    LOGIC = "logic"
    ERROR_HANDLING = "error_handling"
    TEST_COVERAGE = "test_coverage"


class CustomCheck(Value, frozen=True):
    """A shell command that must end with the expected code."""

    name: str
    command: str
    expected_exit_code: Whole


class ReviewScope(Value, frozen=True):
    """Which files to look at, and how."""

    files: tuple[str, ...]
    focus_areas: tuple[FocusArea, ...]
    ignore_patterns: Maybe[tuple[str, ...]] = UNSET


class ReviewCriteria(Value, frozen=True):
    """What must pass before an approval."""

    must_pass_tests: bool
    must_pass_type_check: bool
    must_pass_lint: Maybe[bool] = UNSET
    custom_checks: Maybe[tuple[CustomCheck, ...]] = UNSET


class ReviewSummary(Value, frozen=True):
    """What an earlier review of the same task came to."""

    review_number: Ordinal
    verdict: str
    key_findings: tuple[str, ...]


class ReviewContext(Value, frozen=True):
    """What the work was meant to do."""

    task_description: str
    acceptance_criteria: tuple[str, ...]
    previous_reviews: Maybe[tuple[ReviewSummary, ...]] = UNSET


class ReviewRequest(Value, frozen=True):
    """Please judge this work."""

    review_id: str
    task_id: str
    scope: ReviewScope
    criteria: ReviewCriteria
    context: ReviewContext


class Verdict(Word):
    """A reviewer's word; inside they are apply, revise and reject."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    REJECTED = "rejected"


class Severity(Word):
    """How bad a finding is (R5)."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"
    SUGGESTION = "suggestion"


class FindingCategory(Word):
    """What a finding is about."""

    BUG = "bug"
    SECURITY = "security"
    PERFORMANCE = "performance"
    STYLE = "style"
    LOGIC = "logic"
    TEST = "test"


class Location(Value, frozen=True):
    """Where in the code."""

    file: str
    line_start: Maybe[Count] = UNSET
    line_end: Maybe[Count] = UNSET
    code_snippet: Maybe[str] = UNSET


class Finding(Value, frozen=True):
    """One thing a reviewer saw."""

    finding_id: str
    severity: Severity
    category: FindingCategory
    location: Location
    description: str
    rationale: Wanted[str] = UNSET
    suggestion: Maybe[str] = UNSET
    fixed_in_iteration: Maybe[Count] = UNSET


class VerificationResult(Value, frozen=True):
    """One check and what it printed."""

    passed: bool
    output: Maybe[str] = UNSET
    error: Maybe[str] = UNSET


NamedResults = Annotated[Raw, Meta(extra={"holds": dict[str, VerificationResult]})]


class Verification(Value, frozen=True):
    """What the reviewer ran."""

    tests: VerificationResult
    type_check: VerificationResult
    lint: Maybe[VerificationResult] = UNSET
    custom: Wanted[NamedResults] = UNSET

    def __post_init__(self) -> None:
        if self.custom is not UNSET:
            msgspec.json.decode(self.custom, type=dict[str, VerificationResult])

    def custom_results(self) -> dict[str, VerificationResult]:
        """The custom checks by name; empty when none were run."""
        if self.custom is UNSET:
            return {}
        return msgspec.json.decode(self.custom, type=dict[str, VerificationResult])


class ChangePriority(Word):
    """How firmly a change is asked for."""

    MUST_FIX = "must_fix"
    SHOULD_FIX = "should_fix"
    CONSIDER = "consider"


class RequiredChange(Value, frozen=True):
    """What has to change before an approval."""

    change_id: str
    priority: ChangePriority
    related_findings: tuple[str, ...]
    description: str


class ReviewResult(Value, frozen=True):
    """A reviewer's verdict with its reasons."""

    review_id: str
    task_id: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    verification: Verification
    summary: str
    required_changes: Maybe[tuple[RequiredChange, ...]] = UNSET
    commendations: Maybe[tuple[str, ...]] = UNSET


class FeedbackType(Word):
    """What a piece of feedback wants."""

    CLARIFICATION = "clarification"
    CORRECTION = "correction"
    GUIDANCE = "guidance"
    QUESTION = "question"


class Feedback(Value, frozen=True):
    """A remark or a question between agents."""

    feedback_type: FeedbackType
    subject: str
    content: str
    action_required: bool
    related_task_id: Maybe[str] = UNSET
