"""A plan: tasks, who does them, and which waits for which (H7).

A manager answers with one, a flow may bring one along. ``problems`` says what stands in its way,
all at once, in sentences that go back to whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from agentcanvas.protocol.values import Maybe, Value, Word


class DependencyType(Word):
    """Hard waits for the other task's completion, soft may start before."""

    HARD = "hard"
    SOFT = "soft"


class Dependency(Value, frozen=True):
    """Another task this one builds on."""

    task_id: str
    type: DependencyType = DependencyType.HARD


class PlannedTask(Value, frozen=True):
    """A piece of work for one agent; ``scope`` holds the globs it may change (S8)."""

    task_id: str
    agent: str
    description: str
    depends_on: tuple[Dependency, ...] = ()
    scope: Maybe[tuple[str, ...]] = UNSET
    acceptance_criteria: tuple[str, ...] = ()
    testing_required: bool = False


class Plan(Value, frozen=True):
    """What a request is split into."""

    tasks: tuple[PlannedTask, ...]
    summary: Maybe[str] = UNSET


def problems(plan: Plan, agents: Iterable[str], *, taken: Iterable[str] = ()) -> list[str]:
    """Everything that keeps a plan from being carried out; ``taken`` ids were used before."""
    known = sorted(agents)
    if not plan.tasks:
        return ["The plan has no task; name at least one"]
    return [
        *_repeated_ids(plan.tasks, set(taken)),
        *_unknown_agents(plan.tasks, known),
        *_unknown_dependencies(plan.tasks),
        *_cycles(plan.tasks),
        *overlaps(plan.tasks),
    ]


def waits_for(tasks: Sequence[PlannedTask]) -> dict[str, set[str]]:
    """For every task all others that end before it begins, directly or not."""
    direct = {
        task.task_id: {
            other.task_id for other in task.depends_on if other.type is DependencyType.HARD
        }
        for task in tasks
    }
    return {task.task_id: _reachable(task.task_id, direct) for task in tasks}


def overlaps(tasks: Sequence[PlannedTask]) -> list[str]:
    """Pairs of tasks that may change the same files at the same time."""
    before = waits_for(tasks)
    found = []
    for index, one in enumerate(tasks):
        for other in tasks[index + 1 :]:
            apart = one.task_id in before[other.task_id] or other.task_id in before[one.task_id]
            shared = None if apart or one.task_id == other.task_id else _shared_scope(one, other)
            if shared is not None:
                found.append(
                    f"{one.task_id} and {other.task_id} may both change {shared} at the same "
                    "time; make one depend on the other or part their scopes"
                )
    return found


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting += edges.get(here, ())
    return seen


def _repeated_ids(tasks: Sequence[PlannedTask], taken: set[str]) -> Iterator[str]:
    seen = set(taken)
    for task in tasks:
        if task.task_id in seen:
            yield f"The id {task.task_id} was used before; every task has its own"
        seen.add(task.task_id)


def _unknown_agents(tasks: Sequence[PlannedTask], known: list[str]) -> Iterator[str]:
    for task in tasks:
        if task.agent not in known:
            yield f"{task.task_id} goes to {task.agent}, who is not here; use {_either(known)}"


def _unknown_dependencies(tasks: Sequence[PlannedTask]) -> Iterator[str]:
    ids = {task.task_id for task in tasks}
    for task in tasks:
        for other in task.depends_on:
            if other.task_id not in ids:
                yield f"{task.task_id} depends on {other.task_id}, which is not in the plan"


def _cycles(tasks: Sequence[PlannedTask]) -> Iterator[str]:
    edges = {task.task_id: {other.task_id for other in task.depends_on} for task in tasks}
    told: set[str] = set()
    for task in tasks:
        circle = {
            other
            for other in _reachable(task.task_id, edges)
            if task.task_id in _reachable(other, edges)
        }
        if circle and not circle & told:
            told |= circle
            yield f"These tasks wait for each other: {', '.join(sorted(circle))}"


def _shared_scope(one: PlannedTask, other: PlannedTask) -> str | None:
    """A scope both tasks have; a task without one may change anything."""
    if one.scope is UNSET and other.scope is UNSET:
        return "any file"
    if one.scope is UNSET or other.scope is UNSET:
        return ", ".join(other.scope if other.scope is not UNSET else one.scope or ())
    for mine in one.scope:
        for theirs in other.scope:
            if _may_meet(_plain_part(mine), _plain_part(theirs)):
                return mine if len(mine) >= len(theirs) else theirs
    return None


def _plain_part(glob: str) -> tuple[list[str], bool]:
    """The folders a glob certainly begins with, and whether the rest is open."""
    steps = glob.removeprefix("./").split("/")
    for index, step in enumerate(steps):
        if any(sign in step for sign in "*?{"):
            return steps[:index], True
    return steps, False


def _may_meet(one: tuple[list[str], bool], other: tuple[list[str], bool]) -> bool:
    """Whether some path can match both: no common path without a common beginning.

    Two open ends may not really meet (``*.py`` and ``*.md``); parting such scopes by folder is the
    advice anyway, so this stays on the safe side.
    """
    shorter, longer = sorted((one[0], other[0]), key=len)
    return longer[: len(shorter)] == shorter


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
