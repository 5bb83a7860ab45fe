"""Checks, budgets, scopes and the review, of a flow and of its interactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentcanvas.flows.ground import Setup
from agentcanvas.flows.guards import PERSON, Budgets, Check, Escalation, Review
from agentcanvas.flows.model import Interaction
from agentcanvas.flows.problem import Problem, Rule, at, did_you_mean, shown, warning
from agentcanvas.flows.rules.agents import networks, unit_slip, variables
from agentcanvas.flows.rules.scene import Scene, items, repeated
from agentcanvas.flows.settle import authors, bound_roles, narrowed
from agentcanvas.flows.team import NetworkMode

_INTERNAL = frozenset({".git", ".agentcanvas", "node_modules"})


def guards(scene: Scene) -> Iterator[Problem]:
    """Every problem of what keeps the flow in bounds."""
    flow = scene.flow
    yield from _checks("/checks", flow.checks)
    yield from globs("/scope", flow.scope)
    yield from globs("/bring", flow.bring)
    if flow.setup is not None:
        yield from _setup(flow.setup, "/setup")
    yield from _review(scene, "/review", flow.review)
    for pointer, each in scene.interactions:
        yield from _checks(at(pointer, "checks"), each.checks)
        yield from globs(at(pointer, "scope"), each.scope)
        yield from _review(scene, at(pointer, "review"), each.review)
        yield from _budgets(at(pointer, "budgets"), flow.budgets, each)
        yield from _own_review(scene, pointer, each)


def globs(pointer: str, scope: Iterable[str]) -> Iterator[Problem]:
    """A scope names files of the workspace, by paths from its root (S8)."""
    for place, glob in items(pointer, scope):
        steps = glob.split("/")
        if glob.startswith(("/", "~")) or ".." in steps or "\\" in glob:
            sentence = f"{shown(glob)} does not lead to files of the workspace"
            yield Problem(Rule.SCOPE, sentence, "write a path from its root, such as src/**", place)
        elif glob.startswith("!"):
            advice = "name what may change, not what may not"
            yield Problem(Rule.SCOPE, f"{shown(glob)} excludes files", advice, place)
        elif steps[0] in _INTERNAL or ".git" in steps:
            sentence = f"{shown(glob)} is never changed by an agent"
            yield Problem(Rule.SCOPE, sentence, "remove it", place)


def _setup(setup: Setup, pointer: str) -> Iterator[Problem]:
    yield from variables(setup.env, at(pointer, "env"))
    if setup.timeout_ms is not None:
        yield from unit_slip(setup.timeout_ms, at(pointer, "timeout_ms"))
    if setup.network is None:
        return
    if setup.network.mode is NetworkMode.MODEL:
        advice = "name the hosts it needs, such as registry.npmjs.org, or say open"
        yield Problem(Rule.RUNTIME, "a setup has no model", advice, at(pointer, "network"))
    else:
        yield from networks(setup.network, at(pointer, "network"))


def _checks(pointer: str, checks: Iterable[Check]) -> Iterator[Problem]:
    placed = list(enumerate(checks))
    yield from repeated([(at(pointer, i, "name"), check.name) for i, check in placed], "checks")
    for index, check in placed:
        if check.timeout_ms is not None:
            yield from unit_slip(check.timeout_ms, at(pointer, index, "timeout_ms"))


def _budgets(pointer: str, whole: Budgets | None, each: Interaction) -> Iterator[Problem]:
    for name in ("turns", "messages", "minutes", "tokens", "cost"):
        part = getattr(each.budgets, name, None)
        total = getattr(whole, name, None)
        if part is not None and total is not None and part > total:
            sentence = f"{name} is {part} here and {total} for the whole flow"
            yield warning(Rule.BUDGET, sentence, "the smaller one holds", at(pointer, name))
    turns = narrowed(whole, each.budgets).turns
    if turns is not None and turns < len(each.tasks):
        sentence = f"{len(each.tasks)} tasks need as many turns, and the budget is {turns}"
        own = each.budgets is not None and each.budgets.turns is not None
        place = at(pointer, "turns") if own else "/budgets/turns"
        yield Problem(Rule.BUDGET, sentence, f"set turns to {2 * len(each.tasks)} or more", place)


def _review(scene: Scene, pointer: str, review: Review | None) -> Iterator[Problem]:
    if review is None:
        return
    name = review.reviewer
    if name is not None and name not in {PERSON, *scene.agent_ids}:
        advice = did_you_mean(name, [PERSON, *scene.agent_ids])
        sentence = f"there is no agent {shown(name)}"
        yield Problem(Rule.UNKNOWN_AGENT, sentence, advice, at(pointer, "reviewer"))
    if review.auto_approve and name is not None:
        sentence = f"{name} is not asked when autoApprove is on"
        yield warning(Rule.REVIEW, sentence, "remove one of the two", at(pointer, "reviewer"))
    if review.allow_unverified and not (
        review.auto_approve or (scene.flow.review and scene.flow.review.auto_approve)
    ):
        advice = "remove it, or set autoApprove: true"
        sentence = "allowUnverified does nothing without autoApprove"
        yield warning(Rule.REVIEW, sentence, advice, at(pointer, "allowUnverified"))
    if review.escalation_on_max is Escalation.FORCE_APPROVE:
        sentence = "force_approve lands what no review has approved"
        advice = "use human_review if that is not meant"
        yield warning(Rule.REVIEW, sentence, advice, at(pointer, "escalation_on_max"))


def _own_review(scene: Scene, pointer: str, each: Interaction) -> Iterator[Problem]:
    said = [(at(pointer, "review"), each.review), ("/review", scene.flow.review)]
    named = [(place, review.reviewer) for place, review in said if review and review.reviewer]
    if not named:
        return
    place, reviewer = named[0]
    info = scene.info(each)
    roles = bound_roles(each, info, frozenset(scene.agent_ids))
    if reviewer in authors(each, roles, info):
        sentence = f"{reviewer} would review its own work in {each.id}"
        yield Problem(
            Rule.OWN_REVIEW, sentence, "name another agent, or person", at(place, "reviewer")
        )
