"""A pattern as the words of a command line have it: who plays, and how it is set."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import typer

from agentcanvas.errors import FlowError
from agentcanvas.flows.emit import lines
from agentcanvas.flows.pattern_info import PatternInfo, RoleInfo
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.flows.settle import OF_ANY_PATTERN
from agentcanvas.flows.subgraph import Subgraph, flow_of, subgraph
from agentcanvas.pattern import Cast
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.runs.simulation import Kind

_NAMED: Final = 5
"""So many of one role are told by name."""


class Casting(msgspec.Struct, frozen=True):
    """A pattern with so many players of a role, and with these params."""

    info: PatternInfo
    counts: dict[str, int] = {}
    params: dict[str, Any] = {}

    @property
    def subgraph(self) -> Subgraph:
        """The agents, system nodes and edges it comes to."""
        return subgraph(self.info, self.counts, self.params)

    @property
    def cast(self) -> Cast:
        """Who plays each role that an agent plays."""
        cast: dict[str, tuple[str, ...]] = {}
        for node in self.subgraph.nodes:
            if not node.built_in:
                cast[node.plays] = (*cast.get(node.plays, ()), node.id)
        return cast

    @property
    def team(self) -> str:
        """The agents, in a line; of many in one role the first and the last."""
        named = [
            agents if len(agents) <= _NAMED else (f"{agents[0]} to {agents[-1]}",)
            for agents in self.cast.values()
        ]
        return ", ".join(agent for agents in named for agent in agents)

    def flow_text(self, command: str | None = None) -> str:
        """A whole flow of it; every agent is ``command``, if one is given."""
        plain = flow_of(self.info, self.counts, self.params)
        for agent in plain["agents"] if command else ():
            where = agent["runtime"].get("cwdMode")
            agent["runtime"] = {"kind": "command", "command": command}
            if where:
                agent["runtime"]["cwdMode"] = where
        more = f"What each part means: agentcanvas pattern show {self.info.id}"
        return f"# {self.subgraph.label}. {more}\n{lines(plain, 0)}\n"


def casting_of(
    here: Repertoire,
    info: PatternInfo,
    players: Iterable[str] | None,
    params: Iterable[str] | None,
    *,
    engine_too: bool = True,
) -> Casting:
    """What ``--players`` and ``--param`` say; with ``engine_too`` also what any pattern takes."""
    casting = Casting(info, _counts(players or ()), _params(params or ()))
    for role, count in casting.counts.items():
        _fits(info, role, count)
    fields = {each.name for each in msgspec.structs.fields(info.options)} if info.options else set()
    known = fields | (OF_ANY_PATTERN if engine_too else set())
    for name in casting.params.keys() - known:
        raise FlowError(f"{info.id} has no option {name}; {did_you_mean(name, known)}")
    here.options(info.id, casting.params)
    for each in info.roles:
        _is_played(casting, each)
    return casting


def _is_played(casting: Casting, role: RoleInfo) -> None:
    """Refuse a team that lacks somebody whom no built-in node can stand in for."""
    if role.unless is None or casting.counts.get(role.name) != 0:
        return
    option, value = role.unless
    if casting.params.get(option) != value:
        raise FlowError(
            f"{casting.info.id} has no {role.name}, and no built-in rule can play it; say "
            f"--players {role.name}=1, or --param {option}={value}"
        )


def kinds_of(words: str, cast: Cast) -> dict[str, Kind]:
    """What ``--agents`` says: one kind for all, or one for a role."""
    by_role: dict[str, Kind] = {}
    default = Kind.of("noisy:0.7")
    for part in words.split(","):
        role, is_named, kind = part.strip().rpartition("=")
        if not is_named:
            default = Kind.of(kind)
        elif role in cast:
            by_role[role] = Kind.of(kind)
        else:
            raise FlowError(f"Nobody plays {role} here; {did_you_mean(role, cast)}")
    return {agent: by_role.get(role, default) for role, who in cast.items() for agent in who}


def _fits(info: PatternInfo, name: str, count: int) -> None:
    role = info.role(name)
    if role is None:
        known = [each.name for each in info.roles]
        raise FlowError(f"{info.id} has no role {name}; {did_you_mean(name, known)}")
    if count < role.needed or (role.most is not None and count > role.most):
        raise FlowError(f"{info.id} needs {role.count} as {name}, not {count}.")


def _counts(given: Iterable[str]) -> dict[str, int]:
    found = {}
    for words in given:
        role, _, count = words.partition("=")
        if not count.isdecimal():
            raise typer.BadParameter(f"--players {words}: say ROLE=N, such as evaluator=5")
        found[role] = int(count)
    return found


def _params(given: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for words in given:
        key, is_said, value = words.partition("=")
        if not is_said:
            raise typer.BadParameter(f"--param {words}: say KEY=VALUE, such as max_rounds=2")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found
