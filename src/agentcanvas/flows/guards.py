"""What keeps a flow in bounds: checks, budgets, the review, and where changes land."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from agentcanvas.flows.part import Count, Id, Milliseconds, Part

PERSON: Final = "person"
"""The reviewer who is not an agent: whoever runs the flow."""


class Check(Part, frozen=True, kw_only=True):
    """A command whose exit code says whether a change is good."""

    name: Annotated[Id, Meta(description="What reports call it.")]
    command: Annotated[str, Meta(min_length=1, description="A shell command, run confined.")]
    expected_exit_code: Annotated[int, Meta(ge=0, le=255, description="What means yes; 0.")] = 0
    timeout_ms: Annotated[
        Milliseconds | None, Meta(description="How long it may take; 10 minutes if not said.")
    ] = None


class Budgets(Part, frozen=True, kw_only=True):
    """What may be spent in all; reaching one stops the run and keeps what is there (D19)."""

    turns: Annotated[Count | None, Meta(description="Turns of agents.")] = None
    messages: Annotated[Count | None, Meta(description="Messages between agents.")] = None
    minutes: Annotated[
        Annotated[float, Meta(gt=0, le=10_080)] | None,
        Meta(description="Minutes of work; waiting for a person does not count."),
    ] = None
    tokens: Annotated[Count | None, Meta(description="Tokens, counted at the end of a turn.")] = (
        None
    )
    cost: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Money in US dollars, counted at the end of a turn."),
    ] = None


class Escalation(StrEnum):
    """What follows after the last round of a review (R3)."""

    ABORT = "abort"
    FORCE_APPROVE = "force_approve"
    HUMAN_REVIEW = "human_review"


class Review(
    Part,
    frozen=True,
    kw_only=True,
    rename={"auto_approve": "autoApprove", "allow_unverified": "allowUnverified"},
):
    """Who judges a proposal, and how often (R1-R3)."""

    reviewer: Annotated[
        str | None,
        Meta(
            description="An agent's id, or person (you). If not said: the agent whose role is "
            "reviewer, else the orchestrator, else you."
        ),
    ] = None
    auto_approve: Annotated[
        bool | None, Meta(description="Land what passes the checks without asking; off.")
    ] = None
    allow_unverified: Annotated[
        bool | None, Meta(description="With autoApprove: also where no check exists; off.")
    ] = None
    max_iterations: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None, Meta(description="Rounds of review; 3.")
    ] = None
    escalation_on_max: Annotated[
        Escalation | None, Meta(description="After the last round: human_review if not said.")
    ] = None


class Land(StrEnum):
    """Where an approved change goes (D16)."""

    WORKTREE = "worktree"
    COMMIT = "commit"
    BRANCH = "branch"
