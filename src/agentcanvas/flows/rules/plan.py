"""A ready plan (D20): tasks that somebody does, in an order, each in files of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from agentcanvas.flows.model import DependencyType, Interaction, Task
from agentcanvas.flows.order import cycle_in, side_by_side
from agentcanvas.flows.overlap import overlap
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.problem import Problem, Rule, at, did_you_mean, shown, warning
from agentcanvas.flows.rules.guards import globs
from agentcanvas.flows.rules.scene import Scene, repeated, unfit_id
from agentcanvas.flows.settle import bound_roles
from agentcanvas.flows.team import CwdMode

_MOST_PAIRS: Final = 2_000
_MOST_OVERLAPS: Final = 20


def plan(
    scene: Scene, pointer: str, each: Interaction, info: PatternInfo | None
) -> Iterator[Problem]:
    """Every problem of an interaction's tasks, and of those who write."""
    yield from _writers(scene, pointer, each, info)
    if not each.tasks:
        return
    place = at(pointer, "tasks")
    if info and not info.takes_tasks:
        takers = [known.id for known in scene.patterns.values() if known.takes_tasks]
        advice = f"use {' or '.join(takers)}, or remove the tasks" if takers else "remove them"
        yield Problem(Rule.TASKS, f"{info.id} makes its own plan", advice, place, at_key=True)
    placed = [(at(place, index), task) for index, task in enumerate(each.tasks)]
    yield from repeated([(at(p, "id"), task.id) for p, task in placed], f"tasks of {each.id}")
    for task_place, task in placed:
        yield from _task(scene, task_place, task, each, info)
    graph = {task.id: [need.task for need in task.depends_on] for task in each.tasks}
    if circle := cycle_in(graph):
        first = next(p for p, task in placed if task.id == circle[0])
        sentence = f"these tasks wait for each other: {' after '.join(circle)}"
        yield Problem(Rule.TASK_CYCLE, sentence, "take one dependency out", at(first, "depends_on"))
    elif len(graph) == len(each.tasks):
        yield from islice(_overlaps(placed), _MOST_OVERLAPS)


def _task(
    scene: Scene, pointer: str, task: Task, each: Interaction, info: PatternInfo | None
) -> Iterator[Problem]:
    yield from unfit_id(task.id, at(pointer, "id"))
    yield from globs(at(pointer, "scope"), task.scope)
    agent = at(pointer, "agent")
    if task.agent not in scene.agent_ids:
        advice = did_you_mean(task.agent, scene.agent_ids, "add it to agents")
        yield Problem(Rule.UNKNOWN_AGENT, f"there is no agent {shown(task.agent)}", advice, agent)
    elif info and (roles := bound_roles(each, info, frozenset(scene.agent_ids))):
        workers = [a for r in info.roles if r.writes for a in roles.get(r.name, ())]
        if task.agent not in workers:
            sentence = f"{task.agent} does not work in {each.id}"
            advice = f"give the task to {' or '.join(workers)}" if workers else "add it to roles"
            yield Problem(Rule.TASKS, sentence, advice, agent)
    names = [known.id for known in each.tasks]
    for index, need in enumerate(task.depends_on):
        if need.task not in names:
            advice = did_you_mean(need.task, names)
            sentence = f"there is no task {shown(need.task)}"
            yield Problem(Rule.TASKS, sentence, advice, at(pointer, "depends_on", index))


def _writers(
    scene: Scene, pointer: str, each: Interaction, info: PatternInfo | None
) -> Iterator[Problem]:
    roles = bound_roles(each, info, frozenset(scene.agent_ids))
    writing = {a for r in info.roles if r.writes for a in roles.get(r.name, ())} if info else set()
    for _, agent in scene.agents:
        if agent.id in writing and agent.cwd_mode is CwdMode.WORKSPACE:
            sentence = f"{agent.id} is to change files but stands in the read-only workspace"
            advice = "give it the role worker, or runtime: {cwdMode: agentHome}"
            yield Problem(Rule.RUNTIME, sentence, advice, pointer)


def _overlaps(placed: list[tuple[str, Task]]) -> Iterator[Problem]:
    tasks = {task.id: (pointer, task) for pointer, task in placed}
    graph = {
        name: [need.task for need in task.depends_on if need.type is DependencyType.HARD]
        for name, (_, task) in tasks.items()
    }
    # One agent does one task after the other, so only those of different agents can collide.
    pairs = (
        (tasks[one], tasks[other])
        for one, other in side_by_side(graph)
        if tasks[one][1].agent != tasks[other][1].agent
    )
    for (_, one), (pointer, other) in islice(pairs, _MOST_PAIRS):
        shared = _shared(one, other)
        if shared:
            sentence = (
                f"{other.id} may change the same files as {one.id} at the same time: {shared}"
            )
            advice = "make their scopes apart, or let one depend on the other"
            yield warning(Rule.SCOPE_OVERLAP, sentence, advice, at(pointer, "scope"))


def _shared(one: Task, other: Task) -> str:
    if not one.scope or not other.scope:
        without = one if not one.scope else other
        return f"{without.id} has no scope"
    found = (
        f"{mine} and {theirs}"
        for mine in one.scope
        for theirs in other.scope
        if overlap(mine, theirs)
    )
    return next(found, "")
