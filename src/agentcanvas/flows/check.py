"""All that is wrong with a flow at once, each with its place and a way out (I5).

Parts that cannot be read as the model says are reported and then left alone; everything else is
judged, so that one slip does not hide another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from agentcanvas.errors import FlowError
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.document import Document
from agentcanvas.flows.model import Flow, Interaction
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.problem import Problem, Rule, at
from agentcanvas.flows.rules.agents import agents
from agentcanvas.flows.rules.guards import guards
from agentcanvas.flows.rules.interactions import interactions
from agentcanvas.flows.rules.scene import Scene
from agentcanvas.flows.shape import made, shaped
from agentcanvas.flows.team import RUNTIME_KINDS, Agent

Piece = TypeVar("Piece")

_LISTS: Final = ("agents", "interactions")


class Checked(Struct, frozen=True):
    """What was found; ``flow`` is None when an error was."""

    flow: Flow | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if not problem.is_error)

    def sound(self) -> Flow:
        """The flow, or all that is wrong with it."""
        if self.flow is None:
            raise FlowError(_sentence(self.errors), problems=[str(each) for each in self.errors])
        return self.flow


def check(
    document: Document,
    patterns: Patterns = CATALOGUE,
    *,
    runtimes: Iterable[str] = RUNTIME_KINDS,
) -> Checked:
    """Every problem of a flow, in the order of its text."""
    problems = list(document.problems)
    data = document.data
    if data is None and not problems:
        advice = "begin with version: 0.2"
        problems.append(Problem(Rule.FILE, "the flow is empty", advice, file=document.file, line=1))
    if data is None:
        return Checked(None, tuple(problems))
    unfolded, found = shaped(data, Flow)
    whole = not found and not any(problem.is_error for problem in problems)
    scene = _scene(data, patterns, frozenset(runtimes), whole=whole)
    if scene is not None:
        for rules in (agents, interactions, guards):
            found += rules(scene)
    problems += [document.located(problem) for problem in found]
    problems.sort(key=lambda problem: (problem.line, problem.column))
    wrong = any(problem.is_error for problem in problems)
    return Checked(None if wrong else msgspec.convert(unfolded, Flow), tuple(problems))


def said(document: Document) -> Flow | None:
    """What a document says, whether its rules hold or not: its patterns may become known later."""
    if document.data is None or any(problem.is_error for problem in document.problems):
        return None
    return made(document.data, Flow)[0]


def _scene(data: Any, patterns: Patterns, runtimes: frozenset[str], *, whole: bool) -> Scene | None:
    if not isinstance(data, dict):
        return None
    team, acts = (_sound_pieces(data, name) for name in _LISTS)
    rest: dict[str, Any] = {"version": "0.2"}
    for name in data.keys() - {*_LISTS, "version"}:
        unfolded, wrong = shaped({"version": "0.2", name: data[name]}, Flow)
        if not wrong:
            rest |= unfolded
    flow = msgspec.convert(rest, Flow)
    sound_agents = _typed(team, Agent)
    sound_acts = _typed(acts, Interaction)
    flow = msgspec.structs.replace(
        flow,
        agents=tuple(agent for _, agent in sound_agents),
        interactions=tuple(each for _, each in sound_acts),
    )
    return Scene(
        flow=flow,
        agents=sound_agents,
        interactions=sound_acts,
        agent_ids=[str(each["id"]) for _, each in team if "id" in each],
        interaction_ids=[str(each["id"]) for _, each in acts if "id" in each],
        patterns=patterns,
        runtimes=runtimes,
        whole=whole,
    )


def _sound_pieces(data: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    """The sections of a list, sound or not, with their pointers."""
    listed = data.get(name)
    if not isinstance(listed, list):
        return []
    return [(at("", name, i), each) for i, each in enumerate(listed) if isinstance(each, dict)]


def _typed(pieces: list[tuple[str, dict[str, Any]]], type_: type[Piece]) -> list[tuple[str, Piece]]:
    typed = ((pointer, made(piece, type_)[0]) for pointer, piece in pieces)
    return [(pointer, piece) for pointer, piece in typed if piece is not None]


def _sentence(errors: tuple[Problem, ...]) -> str:
    if len(errors) == 1:
        return str(errors[0])
    listed = "\n".join(f"- {problem}" for problem in errors)
    return f"There are {len(errors)} problems in this flow:\n{listed}"
