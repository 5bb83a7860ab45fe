"""Interactions: a known pattern, known players, edges that agree, an order without circles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agentcanvas.flows.axes import Verification
from agentcanvas.flows.ends import overruled
from agentcanvas.flows.model import EdgeData, Interaction
from agentcanvas.flows.order import cycle_in
from agentcanvas.flows.pattern_info import PatternInfo, RoleInfo
from agentcanvas.flows.problem import Problem, Rule, at, did_you_mean, shown, warning
from agentcanvas.flows.rules.ends import ends
from agentcanvas.flows.rules.plan import plan
from agentcanvas.flows.rules.scene import Scene, items, repeated, unfit_id
from agentcanvas.flows.rules.sync import sync
from agentcanvas.flows.settle import (
    CHECKERS,
    CRITIC,
    OF_ANY_PATTERN,
    RATE_LIMIT,
    bound_roles,
    parts_of,
    said_of,
    settle_interaction,
)

# What an edge may not say differently from its interaction (D21), beside params.
_SHARED = ("topology", "termination", "intent", "verification", "sources")
_UNLIKE = "unlike anything"


def interactions(scene: Scene) -> Iterator[Problem]:
    """Every problem of the interactions."""
    yield from repeated([(at(p, "id"), each.id) for p, each in scene.interactions], "interactions")
    if scene.whole and not scene.interactions:
        advice = "add an interaction with a patternId"
        yield warning(Rule.NOTHING_TO_RUN, "there is nothing to run", advice, "/interactions")
    for pointer, each in scene.interactions:
        yield from unfit_id(each.id, at(pointer, "id"))
        yield from _edges(scene, pointer, each)
        yield from _agreement(pointer, each)
        yield from _unknown_players(scene, pointer, each)
        info = scene.info(each)
        if info is None:
            yield _not_there(scene, each.pattern_id, at(pointer, "patternId"))
        else:
            yield from _topology(pointer, each, info)
            yield from _roles(scene, pointer, each, info)
            yield from ends(pointer, each, info, each.checks or scene.flow.checks)
            yield from sync(pointer, each, info)
            yield from _params(pointer, each, info)
            yield from _verified(scene, pointer, each, info)
        yield from plan(scene, pointer, each, info)
    yield from _order(scene)
    yield from _within(scene)


def _not_there(scene: Scene, name: str, pointer: str) -> Problem:
    refused = scene.patterns[name].refused if name in scene.patterns else ""
    if refused:
        sentence = f"the pattern {shown(name)} is refused: {refused}"
        advice = "all that are refused: agentcanvas pattern list"
        return Problem(Rule.UNKNOWN_PATTERN, sentence, advice, pointer)
    advice = did_you_mean(name, scene.patterns)
    return Problem(Rule.UNKNOWN_PATTERN, f"there is no pattern {shown(name)}", advice, pointer)


def _edges(scene: Scene, pointer: str, each: Interaction) -> Iterator[Problem]:
    named = [(at(pointer, "edges", i), edge.id or f"e{i + 1}") for i, edge in enumerate(each.edges)]
    yield from repeated(named, f"edges of {each.id}")
    for index, edge in enumerate(each.edges):
        place = at(pointer, "edges", index)
        if edge.id is not None:
            yield from unfit_id(edge.id, at(place, "id"))
        yield from _known(scene, each, at(place, "source"), edge.source)
        yield from _known(scene, each, at(place, "target"), edge.target)
        if edge.source == edge.target:
            sentence = f"this edge leads from {edge.source} to itself"
            yield Problem(Rule.EDGE_LOOP, sentence, "name another target", at(place, "target"))


def _known(scene: Scene, each: Interaction, pointer: str, name: str) -> Iterator[Problem]:
    info = scene.info(each)
    systems = [role.name for role in info.roles if role.system] if info else []
    if name not in scene.agent_ids and name not in systems:
        advice = did_you_mean(name, [*scene.agent_ids, *systems], "add it to agents")
        yield Problem(Rule.UNKNOWN_AGENT, f"there is no agent {shown(name)}", advice, pointer)


def _unknown_players(scene: Scene, pointer: str, each: Interaction) -> Iterator[Problem]:
    for role, names in each.roles.items():
        place = at(pointer, "roles", role)
        for at_name, name in items(place, names):
            if name == each.id or name not in scene.interaction_ids:
                yield from _known(scene, each, at_name, name)
        yield from repeated(items(place, names), f"players of {role}")


def _agreement(pointer: str, each: Interaction) -> Iterator[Problem]:
    said = said_of(each)
    for index, edge in enumerate(each.edges):
        place = at(pointer, "edges", index, "data")
        yield from _disagreements(place, edge.data, said, each)
    if each.data and each.data.pattern_id not in (None, each.pattern_id):
        yield _differs(at(pointer, "data", "patternId"), "patternId", each.pattern_id, each)


def _disagreements(
    pointer: str, data: EdgeData, said: EdgeData, each: Interaction
) -> Iterator[Problem]:
    if data.pattern_id not in (None, each.pattern_id):
        yield _differs(at(pointer, "patternId"), "patternId", each.pattern_id, each)
    for name in _SHARED:
        mine, common = getattr(data, name), getattr(said, name)
        if mine and mine != common:
            yield _differs(at(pointer, name), name, common, each)
    for name, value in data.params.items():
        if name != RATE_LIMIT and value != said.params[name]:
            yield _differs(at(pointer, "params", name), name, said.params[name], each)


def _differs(pointer: str, name: str, common: Any, each: Interaction) -> Problem:
    has = f" ({shown(common)})" if isinstance(common, str | int | float) else ""
    sentence = f"{name} belongs to the whole interaction {each.id}{has} and differs on this edge"
    advice = "say it once, or make a second interaction"
    return Problem(Rule.EDGE_DIFFERS, sentence, advice, pointer)


def _topology(pointer: str, each: Interaction, info: PatternInfo) -> Iterator[Problem]:
    topology = said_of(each).topology
    if topology is not None and topology not in info.topologies:
        index = next((i for i, edge in enumerate(each.edges) if edge.data.topology), None)
        own = each.data is not None and each.data.topology is not None
        steps: tuple[str | int, ...] = (
            ("data",) if own or index is None else ("edges", index, "data")
        )
        sentence = f"{info.id} does not run on the topology {topology}"
        advice = "use " + " or ".join(info.topologies)
        yield Problem(Rule.TOPOLOGY, sentence, advice, at(pointer, *steps, "topology"))


def _roles(scene: Scene, pointer: str, each: Interaction, info: PatternInfo) -> Iterator[Problem]:
    if not info.roles:
        return
    known = [role.name for role in info.roles]
    for name in each.roles:
        if name not in known:
            sentence = f"{info.id} has no role {shown(name)}"
            place = at(pointer, "roles", name)
            advice = did_you_mean(name, known)
            yield Problem(Rule.ROLES, sentence, advice, place, at_key=True)
    bound = bound_roles(each, info, frozenset((*scene.agent_ids, *scene.interaction_ids)))
    for role in info.roles:
        count = len(bound.get(role.name, ()))
        if count < role.needed or (role.most is not None and count > role.most):
            sentence = f"{info.id} needs {role.count} as {role.name} and has {count or 'none'}"
            place = at(pointer, "roles", role.name) if role.name in each.roles else pointer
            yield Problem(Rule.ROLES, sentence, f"say who in roles: {{{role.name}: …}}", place)
        yield from _played(pointer, each, info, role, count)


def _played(
    pointer: str, each: Interaction, info: PatternInfo, role: RoleInfo, count: int
) -> Iterator[Problem]:
    """Whether a role that no rule can play has its player, and its player something to do."""
    if role.unless is None:
        return
    name, value = role.unless
    params = info.params | said_of(each).params
    if params.get(name) == value:
        if count:
            sentence = f"with {name}: {value} {info.id} never asks its {role.name}"
            advice = f"leave {role.name} out of roles, or {name} out of params"
            yield warning(Rule.ROLES, sentence, advice, at(pointer, "roles", role.name))
    elif not count:
        sentence = f"{info.id} has no {role.name}, and no built-in rule can play it"
        advice = f"say who in roles: {{{role.name}: …}}, or set params.{name}: {value}"
        yield Problem(Rule.ROLES, sentence, advice, pointer)


def _params(pointer: str, each: Interaction, info: PatternInfo) -> Iterator[Problem]:
    """Whether the pattern can take what is set for it."""
    if info.options is None:
        return
    fields = {field.name for field in msgspec.structs.fields(info.options)}
    given = {name: value for name, value in said_of(each).params.items() if name in fields}
    try:
        msgspec.convert(given, info.options)
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at ")
        name = path.strip("`$.").partition("[")[0] or "params"
        sentence = f"{info.id} cannot take params.{name}: {what}"
        advice = f"see: agentcanvas pattern show {info.id}"
        yield Problem(Rule.PARAMS, sentence, advice, _where(pointer, each, name))
    for name, end in overruled(said_of(each).termination, info, given):
        sentence = f"{name} has no effect beside the {end.__struct_config__.tag} of termination"
        yield warning(Rule.PARAMS, sentence, "say it in one place", _where(pointer, each, name))
    # Params may hold what a flow keeps there for itself, so only a slip of the pen is told.
    for name in sorted(said_of(each).params.keys() - fields - OF_ANY_PATTERN):
        advice = did_you_mean(name, fields | OF_ANY_PATTERN, _UNLIKE)
        if advice is not _UNLIKE:
            sentence = f"{name} is no option of {info.id} and has no effect"
            yield warning(Rule.PARAMS, sentence, advice, _where(pointer, each, name))


def _verified(
    scene: Scene, pointer: str, each: Interaction, info: PatternInfo
) -> Iterator[Problem]:
    """Whether there is somebody to do what the verification asks for."""
    settled = settle_interaction(scene.flow, each, None, info)
    missing = {
        Verification.CRITIC_LOOP: (not settled.critic, CRITIC, "an agent"),
        Verification.CROSS_CHECK_VOTE: (not settled.checkers, CHECKERS, "a list of agents"),
    }
    for kind in settled.verification:
        lacks, name, what = missing.get(kind, (False, "", ""))
        if lacks:
            sentence = f"{kind} needs somebody to look at the result of {each.id}"
            advice = f"set params.{name} to {what} whose work it is not"
            yield Problem(Rule.VERIFICATION, sentence, advice, pointer)


def _where(pointer: str, each: Interaction, name: str) -> str:
    """Where a param is set: of the interaction, or of the first edge that does."""
    if each.data is not None and name in each.data.params:
        return at(pointer, "data", "params", name)
    found = (i for i, edge in enumerate(each.edges) if name in edge.data.params)
    index = next(found, None)
    if index is None:
        return pointer
    return at(pointer, "edges", index, "data", "params", name)


def _order(scene: Scene) -> Iterator[Problem]:
    graph: dict[str, tuple[str, ...]] = {}
    implied: set[str] = set()
    previous: tuple[str, ...] = ()
    parts = parts_of(scene.flow)
    for pointer, each in scene.interactions:
        for place, name in items(at(pointer, "after"), each.after or ()):
            if name not in scene.interaction_ids:
                advice = did_you_mean(name, scene.interaction_ids)
                yield Problem(Rule.AFTER, f"there is no interaction {shown(name)}", advice, place)
        yield from repeated(items(at(pointer, "after"), each.after or ()), "entries")
        if each.after is None:
            implied.add(each.id)
        befores = previous if each.after is None else each.after
        graph[each.id] = tuple(name for name in befores if name not in parts)
        if each.id not in parts:
            previous = (each.id,)
    if len(graph) == len(scene.interactions) and (circle := cycle_in(graph)):
        pointer = next(p for p, each in scene.interactions if each.id == circle[0])
        listed = sorted(implied & set(circle))
        advice = f"{listed[0]} follows by its place; give it after: []" if listed else "break it"
        sentence = f"these wait for each other: {' after '.join(circle)}"
        yield Problem(Rule.AFTER_CYCLE, sentence, advice, at(pointer, "after"))


def _within(scene: Scene) -> Iterator[Problem]:
    """An interaction may fill a role of another one, but nothing is a part of itself."""
    parts = parts_of(scene.flow)
    graph = {
        each.id: [name for names in each.roles.values() for name in names if name in parts]
        for _, each in scene.interactions
    }
    if circle := cycle_in(graph):
        pointer = next(p for p, each in scene.interactions if each.id == circle[0])
        sentence = f"these are parts of each other: {' in '.join(circle)}"
        yield Problem(Rule.PART_CYCLE, sentence, "give one role to an agent", at(pointer, "roles"))
    for pointer, each in scene.interactions:
        for place, name in items(at(pointer, "after"), each.after or ()):
            if name in parts:
                sentence = f"{name} is played when a role asks for it, so nothing comes after it"
                yield Problem(Rule.AFTER, sentence, "remove it from after", place)
