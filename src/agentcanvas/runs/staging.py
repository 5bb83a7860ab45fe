"""From an interaction as a flow says it to the scene it is played in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from agentcanvas.flows.axes import QualityGate, Verification
from agentcanvas.flows.guards import Budgets
from agentcanvas.flows.model import Flow, Task
from agentcanvas.flows.settle import RATE_LIMIT, RATED
from agentcanvas.flows.settle import Settled as Interaction
from agentcanvas.pattern import Ends, Pattern, Share
from agentcanvas.patterns.verified import Looks, Verified
from agentcanvas.protocol.plan import Dependency, DependencyType, Plan, PlannedTask
from agentcanvas.runs.board import Retention
from agentcanvas.runs.offstage import Desk, Part
from agentcanvas.runs.rates import Lane, Rates
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.runs.scene import Forms, Pace, Scene, ends_of


class Staging:
    """The interactions of one flow, ready to be played; also as parts of each other."""

    def __init__(
        self,
        flow: Flow,
        interactions: Sequence[Interaction],
        repertoire: Repertoire,
        *,
        plan_only: bool = False,
    ) -> None:
        self._flow = flow
        self._interactions = {each.id: each for each in interactions}
        self._repertoire = repertoire
        self._plan_only = plan_only

    def scene(self, each: Interaction, name: str = "", within: Scene | None = None) -> Scene:
        """The scene of an interaction; ``name`` where it is played as a part of another."""
        return Scene(
            name or each.id,
            ends=ends_of(each.termination),
            cast=each.roles,
            roles=self._repertoire.pattern(each.pattern_id).roles,
            retention=_retention(each),
            words=self._repertoire.words,
            share=_share(self._said(each.id).budgets),
            rates=_rates(each),
            topology=each.topology,
            forms=Forms(each.message_form, {edge.target: edge.message_form for edge in each.edges}),
            seed=_seed(each),
            pace=Pace(each.sync, {edge.target: edge.sync for edge in each.edges}),
            tasks=self._tasks_of(each),
            within=within,
        )

    def _tasks_of(self, each: Interaction) -> str:
        """What the names of its tasks begin with: nothing in the first, or where a flow gives them.

        Patterns name their tasks for themselves, and a run has every name once.
        """
        first = next(iter(self._interactions))
        return "" if each.id == first or self._said(each.id).tasks else f"{each.id}."

    def pattern(self, each: Interaction) -> Pattern:
        """The pattern of an interaction, with what the flow has done to its result."""
        pattern = self._repertoire.pattern(each.pattern_id)
        if not each.verification:
            return pattern
        looks = looks_of(each.verification, each.params, each.checkers, each.critic)
        return Verified(pattern, looks)

    def options(self, each: Interaction) -> msgspec.Struct:
        """What the flow says of a pattern's options, its ready plan included."""
        pattern = self._repertoire.pattern(each.pattern_id)
        fields = {field.name for field in msgspec.structs.fields(pattern.options)}
        gates = [end.metric for end in each.termination if isinstance(end, QualityGate)]
        known = {
            "max_rounds": each.rounds,
            "gate": gates[0] if gates else None,
            "plan": _plan(self._said(each.id).tasks),
            "plan_only": self._plan_only or None,
        }
        given = {k: v for k, v in known.items() if k in fields and v is not None}
        return self._repertoire.options(each.pattern_id, {**each.params, **given})

    def _said(self, name: str) -> _Said:
        found = next(each for each in self._flow.interactions if each.id == name)
        return _Said(found.budgets, found.tasks)

    def parts(self, desk: Callable[[Interaction], Desk]) -> FlowParts:
        """What an interaction within another one is played with."""
        return FlowParts(self, self._interactions, self._repertoire, desk)


class _Said(msgspec.Struct, frozen=True):
    budgets: Budgets | None
    tasks: tuple[Task, ...]


class FlowParts:
    """Patterns by their id, and interactions that fill a role (``offstage.Parts``)."""

    def __init__(
        self,
        staging: Staging,
        interactions: Mapping[str, Interaction],
        repertoire: Repertoire,
        desk: Callable[[Interaction], Desk],
    ) -> None:
        self._staging = staging
        self._interactions = interactions
        self._repertoire = repertoire
        self._desk = desk

    def pattern(self, name: str) -> Pattern:
        """A pattern by its id."""
        return self._repertoire.pattern(name)

    def ends(self, name: str) -> Ends:
        """The ends a pattern has where nothing else is said."""
        return ends_of(self._repertoire.info(name).termination)

    def part(self, name: str) -> Part | None:
        """The interaction that fills a role under this name, if one does."""
        each = self._interactions.get(name)
        if each is None:
            return None
        return Part(
            pattern=self._staging.pattern(each),
            cast=each.roles,
            options=self._staging.options(each),
            scene=lambda name, within: self._staging.scene(each, name, within),
            desk=self._desk(each),
        )


def looks_of(
    verification: Sequence[Verification],
    params: Mapping[str, Any],
    checkers: Sequence[str],
    critic: str = "",
) -> Looks:
    """What a flow's verification means to whoever carries it out."""
    metric, again = params.get("verify_metric"), params.get("critic_rounds")
    return Looks(
        kinds=tuple(each.value for each in verification),
        critic=critic,
        checkers=tuple(checkers),
        metric=metric if isinstance(metric, str) else "tests_passed",
        again=again if isinstance(again, int) and again >= 0 else 1,
    )


def _share(budgets: Budgets | None) -> Share:
    said = budgets or Budgets()
    return Share(
        turns=said.turns,
        messages=said.messages,
        minutes=said.minutes,
        tokens=said.tokens,
        cost=said.cost,
    )


def _rates(each: Interaction) -> Rates:
    """The limits of a broker or router: its own, and those of edges that say another."""
    if each.topology not in RATED:
        return Rates()
    edges: dict[Lane, int] = {}
    for edge in each.edges:
        if edge.rate_limit_per_min is not None:
            edges[edge.source, edge.target] = edge.rate_limit_per_min
            # The engine asks for whoever the edge comes from.
            edges.setdefault(("", edge.target), edge.rate_limit_per_min)
    return Rates(
        each.params.get(RATE_LIMIT),
        refuse=each.params.get("on_rate_limit") == "refuse",
        edges=edges,
    )


def _seed(each: Interaction) -> int:
    seed = each.params.get("seed", 0)
    return seed if isinstance(seed, int) else 0


def _retention(each: Interaction) -> Retention:
    last_n, last_days = each.params.get("keep_last_n"), each.params.get("keep_last_days")
    if last_n is None and last_days is None:
        return Retention()
    return Retention(last_n=last_n, last_days=last_days)


def _plan(tasks: Sequence[Task]) -> Plan | None:
    """A flow's ready plan, in the words of the patterns (D20)."""
    if not tasks:
        return None
    return Plan(
        tuple(
            PlannedTask(
                task_id=task.id,
                agent=task.agent,
                description=task.description,
                depends_on=tuple(
                    Dependency(other.task, DependencyType(other.type.value))
                    for other in task.depends_on
                ),
                scope=task.scope or UNSET,
                acceptance_criteria=task.acceptance_criteria,
                testing_required=task.testing_required,
            )
            for task in tasks
        )
    )
