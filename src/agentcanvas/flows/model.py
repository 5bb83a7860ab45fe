"""A flow as a typed value (F1): agents, interactions, and what was added for running them.

The names on file are those of the format, so some are camelCase and some are not. Everything beyond
``version``, ``commonRules``, ``agents``, ``interactions`` and ``layout`` is optional. Reading files
is left to ``load``, what the parts mean together to ``settle`` and ``check``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from agentcanvas.flows.axes import Intent, MessageForm, Sync, Termination, Topology, Verification
from agentcanvas.flows.ground import Setup
from agentcanvas.flows.guards import Budgets, Check, Land, Review
from agentcanvas.flows.part import SHORT, Count, Glob, Id, OneOrMany, Part
from agentcanvas.flows.team import Agent


class CommonRules(Part, frozen=True, kw_only=True, rename="camel"):
    """Rules for every agent of the flow."""

    rule_chain_refs: Annotated[
        tuple[str, ...],
        Meta(description="Markdown files with rules, as SCOPE:path, the general ones first."),
    ] = ()


class Observability(Part, frozen=True, kw_only=True):
    """What is kept of an interaction."""

    logs: Annotated[bool, Meta(description="Steps, in .agentcanvas/logs.")] = True
    traces: Annotated[bool, Meta(description="OpenTelemetry spans.")] = False
    retain_days: Annotated[Count | None, Meta(description="Days; for ever if not said.")] = None


class Source(Part, frozen=True, kw_only=True):
    """Where a pattern or a setting comes from."""

    kind: Annotated[Literal["paper", "spec"], Meta(description="What it is.")]
    ref: Annotated[str, Meta(description="How to find it, such as arXiv 1805.00899.")]
    note: Annotated[str, Meta(description="What was taken from it.")] = ""


class EdgeData(Part, frozen=True, kw_only=True, rename="camel"):
    """How an interaction goes on (I2).

    An edge may differ from its interaction in messageForm, sync, observability and
    params.rate_limit_per_min only (D21).
    """

    pattern_id: Annotated[
        str | None, Meta(description="The interaction's own, if said at all.")
    ] = None
    topology: Annotated[Topology | None, Meta(description="Who may address whom.")] = None
    message_form: Annotated[MessageForm | None, Meta(description="How replies are read.")] = None
    sync: Annotated[Sync | None, Meta(description="How turns follow each other.")] = None
    termination: Annotated[
        OneOrMany[Termination],
        Meta(description="What ends it: one condition or several; the first that holds ends it."),
    ] = ()
    intent: Annotated[Intent | None, Meta(description="What the agents are together for.")] = None
    verification: Annotated[
        tuple[Verification, ...], Meta(description="What is done so that a result is believed.")
    ] = ()
    params: Annotated[
        dict[str, Any], Meta(description="The pattern's own settings, and retention and rates.")
    ] = field(default_factory=dict)
    observability: Annotated[Observability | None, Meta(description="What is kept of it.")] = None
    sources: Annotated[tuple[Source, ...], Meta(description="Papers or specifications.")] = ()


class Edge(Part, frozen=True, kw_only=True):
    """Who speaks to whom."""

    id: Annotated[Id | None, Meta(description="e1, e2, … in order if not said.")] = None
    source: Annotated[Id, Meta(description="The agent that speaks.")]
    target: Annotated[Id, Meta(description="The agent that is spoken to.")]
    data: Annotated[EdgeData, Meta(description="How the interaction goes on.")] = EdgeData()


class DependencyType(StrEnum):
    """Whether a task waits for another to be done, or may start before (H7)."""

    HARD = "hard"
    SOFT = "soft"


class Dependency(Part, frozen=True, kw_only=True):
    """A task that another one builds on; a bare name is a hard one."""

    task: Annotated[Id, Meta(description="The task it builds on.")]
    type: Annotated[DependencyType, Meta(description="soft: may start before it is done.")] = (
        DependencyType.HARD
    )


class Task(Part, frozen=True, kw_only=True):
    """One step of a ready plan (D20)."""

    id: Annotated[Id, Meta(description="What other tasks call it.")]
    agent: Annotated[Id, Meta(description="Who does it.")]
    description: Annotated[str, Meta(min_length=1, description="What is to be done.")]
    depends_on: Annotated[
        tuple[
            Annotated[
                Dependency, Meta(extra={SHORT: "task"}, extra_json_schema={f"x-{SHORT}": True})
            ],
            ...,
        ],
        Meta(description="Tasks it builds on."),
    ] = ()
    scope: Annotated[tuple[Glob, ...], Meta(description="Globs of the files it may change.")] = ()
    acceptance_criteria: Annotated[
        tuple[str, ...], Meta(description="What must be true when it is done, checkably.")
    ] = ()
    testing_required: Annotated[
        bool, Meta(description="Whether tests must have passed before it can land.")
    ] = False


class Interaction(Part, frozen=True, kw_only=True, rename={"pattern_id": "patternId"}):
    """One pattern, played by some of the agents."""

    id: Annotated[Id, Meta(description="What after and the logs call it.")]
    pattern_id: Annotated[str, Meta(min_length=1, description="Which pattern is played.")]
    edges: Annotated[tuple[Edge, ...], Meta(description="Who speaks to whom.")] = ()
    data: Annotated[
        EdgeData | None, Meta(description="How it goes on, said once instead of on each edge.")
    ] = None
    roles: Annotated[
        dict[str, OneOrMany[str]],
        Meta(description="Who plays which role; by the order of the edges if not said."),
    ] = field(default_factory=dict)
    after: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="Interactions that come first; [] starts at once. If not said: the one "
            "listed before."
        ),
    ] = None
    tasks: Annotated[
        tuple[Task, ...], Meta(description="A ready plan; the manager makes one if not said.")
    ] = ()
    checks: Annotated[tuple[Check, ...], Meta(description="Instead of the flow's own checks.")] = ()
    scope: Annotated[
        tuple[Glob, ...], Meta(description="Globs of the files it may change, within the flow's.")
    ] = ()
    budgets: Annotated[Budgets | None, Meta(description="Within the flow's budgets.")] = None
    review: Annotated[Review | None, Meta(description="What differs from the flow's review.")] = (
        None
    )
    land: Annotated[Land | None, Meta(description="Instead of the flow's own.")] = None


class Layout(Part, frozen=True, kw_only=True):
    """Where the canvas draws things; it keeps what it likes here."""

    nodes: Annotated[dict[str, Any], Meta(description="By agent id.")] = field(default_factory=dict)
    edges: Annotated[dict[str, Any], Meta(description="By edge id.")] = field(default_factory=dict)


class Flow(Part, frozen=True, kw_only=True, rename={"common_rules": "commonRules"}):
    """What a team does together."""

    version: Annotated[
        Literal["0.2"],
        Meta(description="The version of this format."),
    ]
    common_rules: Annotated[CommonRules, Meta(description="Rules for every agent.")] = CommonRules()
    agents: Annotated[tuple[Agent, ...], Meta(description="The team.")] = ()
    interactions: Annotated[
        tuple[Interaction, ...], Meta(description="What they do, in this order.")
    ] = ()
    bring: Annotated[
        tuple[Glob, ...],
        Meta(description="Globs of files that git ignores and the agents need all the same."),
    ] = ()
    setup: Annotated[
        Setup | None,
        Meta(
            description="A command that makes what git ignores, once before the work.",
            extra={SHORT: "command"},
            extra_json_schema={f"x-{SHORT}": True},
        ),
    ] = None
    checks: Annotated[
        tuple[Check, ...],
        Meta(description="Commands that judge every change; found in the project if not said."),
    ] = ()
    scope: Annotated[
        tuple[Glob, ...], Meta(description="Globs of the files that may change; all if not said.")
    ] = ()
    budgets: Annotated[Budgets | None, Meta(description="What may be spent in all.")] = None
    review: Annotated[Review | None, Meta(description="Who judges a proposal.")] = None
    land: Annotated[
        Land | None, Meta(description="Where approved changes go: worktree if not said.")
    ] = None
    layout: Annotated[Layout, Meta(description="Where the canvas draws things.")] = Layout()
