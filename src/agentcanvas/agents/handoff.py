"""The HANDOFF block of a worker's change, written from its answer and from facts (T3, C12).

The worker says what it meant; which files changed and where they lie is said by those who know.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentcanvas.protocol.forms import (
    Handoff,
    StandardResponse,
    tidy,
    tidy_line,
    why_not_checkable,
)

_REVIEW = "Orchestrator: review + apply or request changes"
_WITHOUT_CRITERIA = "the declared checks pass on base + patch"


def make_handoff(
    *,
    task: str,
    response: StandardResponse | None,
    sandbox_work_dir: str,
    proposal_json: str,
    changed_files: Sequence[str],
    acceptance_criteria: Sequence[str] = (),
    tests: Sequence[str] = (),
) -> Handoff | None:
    """The block, or None where nothing changed; it holds even if the worker gave no good answer."""
    files = tuple(filter(None, map(tidy_line, changed_files)))
    if not files:
        return None
    goal = tidy(task) or "The task as it was given"
    open_steps = response.next_steps if response else ()
    risks = response.risks if response else ()
    return Handoff(
        context=response.intent if response else goal,
        goal=goal,
        dod=_definition_of_done(acceptance_criteria),
        sandbox_work_dir=sandbox_work_dir,
        proposal_json=proposal_json,
        changed_files=files,
        tests=tuple(filter(None, map(tidy, tests))),
        next=(_REVIEW, *(f"Risk: {risk}" for risk in risks), *open_steps),
    )


def _definition_of_done(criteria: Sequence[str]) -> str:
    """The acceptance criteria; where they cannot be checked, what the engine checks anyway."""
    said = "; ".join(filter(None, map(tidy_line, criteria)))
    if not said:
        return _WITHOUT_CRITERIA
    return f"{said}; {_WITHOUT_CRITERIA}" if why_not_checkable(said) else said
