"""What an interaction really runs with: the flow's words, the edges' words, the pattern's defaults.

Pure and total: whatever is wrong is left for ``check`` to say; what comes out is what the engine
reads and what the log's ``configured`` event shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from agentcanvas.flows.axes import (
    Intent,
    MaxRounds,
    MessageForm,
    Sync,
    Termination,
    TimeoutMs,
    Topology,
    Verification,
)
from agentcanvas.flows.ends import settled_ends
from agentcanvas.flows.guards import PERSON, Budgets, Check, Escalation, Land
from agentcanvas.flows.model import EdgeData, Flow, Interaction, Observability
from agentcanvas.flows.pattern_info import PatternInfo, Patterns

KEEP_LAST_N: Final = 100
RATE_LIMIT: Final = "rate_limit_per_min"
RATE_PER_MIN: Final = 10
CRITIC: Final = "critic"
CHECKERS: Final = "checkers"
RETENTION: Final = ("keep_last_n", "keep_last_days")
RATED: Final = frozenset({Topology.BROKER, Topology.ROUTER_TARGETED})
OF_ANY_PATTERN: Final = frozenset(
    {
        "task_template",
        "seed",
        *RETENTION,
        RATE_LIMIT,
        "on_rate_limit",
        CRITIC,
        CHECKERS,
        "critic_rounds",
        "verify_metric",
    }
)
"""Params that are not the pattern's but the engine's."""
DEFAULT_ITERATIONS: Final = 3


class SettledEdge(Struct, frozen=True, kw_only=True):
    """An edge with everything said."""

    id: str
    source: str
    target: str
    message_form: MessageForm
    sync: Sync
    rate_limit_per_min: int | None
    observability: Observability


class SettledReview(Struct, frozen=True, kw_only=True):
    """Who judges, and how."""

    reviewer: str
    auto_approve: bool
    allow_unverified: bool
    max_iterations: int
    escalation_on_max: Escalation


class Settled(Struct, frozen=True, kw_only=True):
    """An interaction with everything said."""

    id: str
    pattern_id: str
    topology: Topology | None
    message_form: MessageForm
    sync: Sync
    termination: tuple[Termination, ...]
    intent: Intent | None
    verification: tuple[Verification, ...]
    critic: str
    """Who criticises the result in a critic_loop; nobody if it cannot be said."""
    checkers: tuple[str, ...]
    """Who votes on the result in a cross_check_vote."""
    params: dict[str, Any]
    observability: Observability
    edges: tuple[SettledEdge, ...]
    roles: dict[str, tuple[str, ...]]
    """Agents only; a role that is not here is played by a built-in node."""
    players: frozenset[str]
    """Every agent that takes part, the reviewer included."""
    after: tuple[str, ...]
    checks: tuple[Check, ...]
    scope: tuple[tuple[str, ...], ...]
    """Lists of globs; a file must match one of each list. None at all: every file."""
    budgets: Budgets
    review: SettledReview
    land: Land
    is_part: bool = False
    """Whether it fills a role of another interaction and is played when that one asks."""

    @property
    def rounds(self) -> int | None:
        found = [end.rounds for end in self.termination if isinstance(end, MaxRounds)]
        return min(found, default=None)

    @property
    def timeout_ms(self) -> int | None:
        found = [end.ms for end in self.termination if isinstance(end, TimeoutMs)]
        return min(found, default=None)

    @property
    def label(self) -> str:
        """The edge label of I3, such as ``debate_judge (3r)``."""
        if self.rounds:
            return f"{self.pattern_id} ({self.rounds}r)"
        return (
            f"{self.pattern_id} ({self.timeout_ms // 1000}s)"
            if self.timeout_ms
            else self.pattern_id
        )


def settle(flow: Flow, patterns: Patterns) -> tuple[Settled, ...]:
    """Every interaction of a flow, in the order of the file."""
    parts = parts_of(flow)
    before: Interaction | None = None
    settled = []
    for each in flow.interactions:
        settled.append(settle_interaction(flow, each, before, patterns.get(each.pattern_id)))
        before = before if each.id in parts else each
    return tuple(settled)


def parts_of(flow: Flow) -> frozenset[str]:
    """Interactions that fill a role of another one; they are played when that one asks."""
    agents = {agent.id for agent in flow.agents}
    ids = {each.id for each in flow.interactions} - agents
    named = {
        name
        for each in flow.interactions
        for names in each.roles.values()
        for name in names
        if name != each.id
    }
    return frozenset(ids & named)


def settle_interaction(
    flow: Flow, each: Interaction, before: Interaction | None, info: PatternInfo | None
) -> Settled:
    """One interaction; ``before`` is the one listed before it."""
    said = said_of(each)
    topology = said.topology or (info.topologies[0] if info and info.topologies else None)
    message_form = said.message_form or MessageForm.NL_TEXT
    sync = said.sync or (info.sync if info else Sync.REQ_RES)
    observability = said.observability or Observability()
    params = (info.params if info else {}) | params_needed(topology, said.params) | said.params
    team = frozenset(agent.id for agent in flow.agents)
    parts = parts_of(flow)
    roles = bound_roles(each, info, team | parts)
    after = ((before.id,) if before else ()) if each.after is None else each.after
    review = settled_review(flow, each, authors(each, roles, info))
    critic = _critic(params, review, team)
    checkers = _checkers(params, team, authors(each, roles, info))
    edges = tuple(
        SettledEdge(
            id=edge.id or f"e{index}",
            source=edge.source,
            target=edge.target,
            message_form=edge.data.message_form or message_form,
            sync=edge.data.sync or sync,
            rate_limit_per_min=edge.data.params.get(RATE_LIMIT, params.get(RATE_LIMIT)),
            observability=edge.data.observability or observability,
        )
        for index, edge in enumerate(each.edges, 1)
    )
    return Settled(
        id=each.id,
        pattern_id=each.pattern_id,
        topology=topology,
        message_form=message_form,
        sync=sync,
        termination=settled_ends(said.termination, info, said.params),
        intent=said.intent,
        verification=said.verification,
        critic=critic,
        checkers=checkers,
        params=params,
        observability=observability,
        edges=edges,
        roles=roles,
        players=team
        & (_named(each, roles, review) | _looking(said.verification, critic, checkers)),
        after=() if each.id in parts else tuple(name for name in after if name not in parts),
        checks=each.checks or flow.checks,
        scope=tuple(globs for globs in (flow.scope, each.scope) if globs),
        budgets=narrowed(flow.budgets, each.budgets),
        review=review,
        land=each.land or flow.land or Land.WORKTREE,
        is_part=each.id in parts,
    )


def _critic(params: dict[str, Any], review: SettledReview, team: frozenset[str]) -> str:
    """Who is named, else the agent that reviews."""
    named = params.get(CRITIC, review.reviewer)
    return named if named in team else ""


def _checkers(
    params: dict[str, Any], team: frozenset[str], writers: frozenset[str]
) -> tuple[str, ...]:
    """Those named, else everybody whose work it is not."""
    named = params.get(CHECKERS, sorted(team - writers))
    return tuple(each for each in named if each in team) if isinstance(named, list) else ()


def _looking(
    verification: tuple[Verification, ...], critic: str, checkers: tuple[str, ...]
) -> set[str]:
    found = {critic} if Verification.CRITIC_LOOP in verification else set()
    return found | (set(checkers) if Verification.CROSS_CHECK_VOTE in verification else set())


def _named(each: Interaction, roles: dict[str, tuple[str, ...]], review: SettledReview) -> set[str]:
    playing = {agent for agents in roles.values() for agent in agents}
    speaking = {end for edge in each.edges for end in (edge.source, edge.target)}
    return playing | speaking | {task.agent for task in each.tasks} | {review.reviewer}


def said_of(each: Interaction) -> EdgeData:
    """What the interaction says of itself; what it does not say, the first edge that does."""
    sayings = [each.data or EdgeData(), *(edge.data for edge in each.edges)]
    params: dict[str, Any] = {}
    for saying in reversed(sayings):
        params |= saying.params
    return EdgeData(
        pattern_id=each.pattern_id,
        topology=_first(saying.topology for saying in sayings),
        message_form=_first(saying.message_form for saying in sayings),
        sync=_first(saying.sync for saying in sayings),
        termination=_first(saying.termination for saying in sayings) or (),
        intent=_first(saying.intent for saying in sayings),
        verification=_first(saying.verification for saying in sayings) or (),
        params=params,
        observability=_first(saying.observability for saying in sayings),
        sources=_first(saying.sources for saying in sayings) or (),
    )


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value), None)


def params_needed(topology: Topology | None, given: dict[str, Any]) -> dict[str, Any]:
    """The retention and rate that a topology never goes without (I4a)."""
    if topology is Topology.BLACKBOARD and not any(name in given for name in RETENTION):
        return {"keep_last_n": KEEP_LAST_N}
    return {RATE_LIMIT: RATE_PER_MIN} if topology in RATED else {}


def bound_roles(
    each: Interaction, info: PatternInfo | None, team: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    """Who plays what: as named, else by the order of the edges (D21)."""
    named = dict(each.roles)
    if not named and info is not None and info.edges:
        found: dict[str, dict[str, None]] = {role.name: {} for role in info.roles}
        for index, edge in enumerate(each.edges):
            source, target = info.edges[min(index, len(info.edges) - 1)]
            found[source][edge.source] = None
            found[target][edge.target] = None
        named = {role: tuple(agents) for role, agents in found.items()}
    playing = {role: tuple(a for a in agents if a in team) for role, agents in named.items()}
    return {role: agents for role, agents in playing.items() if agents}


def authors(
    each: Interaction, roles: dict[str, tuple[str, ...]], info: PatternInfo | None
) -> frozenset[str]:
    """Whose work ends in proposals."""
    writing = [role.name for role in info.roles if role.writes] if info else list(roles)
    names = {agent for role in writing for agent in roles.get(role, ())}
    return frozenset(names | {task.agent for task in each.tasks})


def settled_review(flow: Flow, each: Interaction, writers: frozenset[str]) -> SettledReview:
    """The review as the interaction says it, else the flow, else R3's defaults."""
    said = [review for review in (each.review, flow.review) if review]
    roles = [agent.id for agent in flow.agents if agent.role == "reviewer"]
    roles += [agent.id for agent in flow.agents if agent.orchestrates]
    volunteers = [agent for agent in roles if agent not in writers]
    named = _first(review.reviewer for review in said)
    return SettledReview(
        reviewer=named or next(iter(volunteers), PERSON),
        auto_approve=bool(_said(review.auto_approve for review in said)),
        allow_unverified=bool(_said(review.allow_unverified for review in said)),
        max_iterations=_first(review.max_iterations for review in said) or DEFAULT_ITERATIONS,
        escalation_on_max=_first(review.escalation_on_max for review in said)
        or Escalation.HUMAN_REVIEW,
    )


def _said(values: Iterable[bool | None]) -> bool | None:
    return next((value for value in values if value is not None), None)


def narrowed(outer: Budgets | None, inner: Budgets | None) -> Budgets:
    """The smaller of each: a part never has more than the whole."""
    both = [budgets for budgets in (outer, inner) if budgets]

    def least(values: Iterable[Any]) -> Any:
        return min((value for value in values if value is not None), default=None)

    return Budgets(
        turns=least(budgets.turns for budgets in both),
        messages=least(budgets.messages for budgets in both),
        minutes=least(budgets.minutes for budgets in both),
        tokens=least(budgets.tokens for budgets in both),
        cost=least(budgets.cost for budgets in both),
    )
