"""A pattern as a sub-graph (I3): the agents, system nodes and edges that it puts on the canvas.

Made from what the pattern declares, so that a template can never say something else than the code.
The same sub-graph is a whole flow, for ``agentcanvas pattern new-flow``.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase
from typing import Any, Final

import msgspec
from msgspec import Struct

from agentcanvas.flows.ends import already_said
from agentcanvas.flows.model import EdgeData, Flow, Interaction
from agentcanvas.flows.pattern_info import PatternInfo, RoleInfo
from agentcanvas.flows.settle import Settled, settle_interaction
from agentcanvas.flows.team import Agent, CwdMode, Runtime

_TWO: Final = 2
_JUDGING: Final = frozenset({"judge", "reviewer"})
_LEADING: Final = frozenset({"manager", "root", "planner"})
_BY_AGENTS: Final = _JUDGING | _LEADING
"""System nodes that a template fills with an agent; the others run built in (I3)."""


class Node(Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing on the canvas; ``built_in`` when no agent stands behind it."""

    id: str
    plays: str
    system: bool
    built_in: bool


class Subgraph(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pattern inserts."""

    pattern_id: str
    label: str
    nodes: tuple[Node, ...]
    agents: tuple[Agent, ...]
    interaction: Interaction


def subgraph(
    info: PatternInfo,
    counts: Mapping[str, int] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Subgraph:
    """The sub-graph of a pattern, with as many agents as it takes to see how it works.

    ``counts`` says for some roles how many there are to be, ``params`` how it is set.
    """
    said = counts or {}
    nodes = tuple(node for role in info.roles for node in _nodes(role, said.get(role.name)))
    agents = tuple(_agent(info, node) for node in nodes if not node.built_in)
    interaction = _interaction(info, nodes, params or {})
    settled = _settled(info, agents, interaction)
    return Subgraph(
        pattern_id=info.id,
        label=settled.label,
        nodes=nodes,
        agents=agents,
        interaction=_spelt_out(interaction, settled, info),
    )


def template(info: PatternInfo) -> dict[str, Any]:
    """The sub-graph as the canvas inserts it: every edge with its label and all of its data."""
    found = subgraph(info)
    plain = _plain(found)
    data = plain["interaction"].pop("data")
    for index, edge in enumerate(plain["interaction"].get("edges", ()), 1):
        edge |= {"id": f"e{index}", "label": found.label, "data": {"patternId": info.id, **data}}
    return plain


def flow_of(
    info: PatternInfo,
    counts: Mapping[str, int] | None = None,
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A whole flow that runs the pattern, as plain data for a YAML file."""
    found = subgraph(info, counts, params)
    plain = _plain(Flow(version="0.2", agents=found.agents, interactions=(found.interaction,)))
    plain["version"] = 0.2
    for agent in plain["agents"]:
        agent["runtime"] = {"kind": "cli", **agent["runtime"]}
    return plain


def _plain(value: Struct) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


def _nodes(role: RoleInfo, said: int | None) -> list[Node]:
    if said == 0 and not role.system:
        return []
    built_in = said == 0 or (role.system and role.name not in _BY_AGENTS and said is None)
    count = said or (1 if role.most == 1 else max(role.least, _TWO))
    ends = [""] if count == 1 else [f"_{name}" for name in _letters(count)]
    return [
        Node(id=f"{role.name}{end}", plays=role.name, system=role.system, built_in=built_in)
        for end in ends
    ]


def _letters(count: int) -> list[str]:
    """a, b, … z, and then figures."""
    if count <= len(ascii_lowercase):
        return list(ascii_lowercase[:count])
    return [str(number) for number in range(1, count + 1)]


def _agent(info: PatternInfo, node: Node) -> Agent:
    role = info.role(node.plays)
    if role is not None and role.writes:
        kind, place = "worker", None
    elif node.plays in _LEADING:
        kind, place = "orchestrator", None
    else:
        kind = "reviewer" if node.plays in _JUDGING else node.plays
        place = CwdMode.WORKSPACE
    return Agent(
        id=node.id,
        name=node.id.replace("_", " ").title(),
        role=kind,
        runtime=Runtime(kind="cli", backend_id="auto", cwd_mode=place),
    )


def _interaction(
    info: PatternInfo, nodes: tuple[Node, ...], params: Mapping[str, Any]
) -> Interaction:
    by_role: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        by_role[node.plays] = (*by_role.get(node.plays, ()), node.id)
    ways = info.edges or tuple((info.roles[0].name, role.name) for role in info.roles[1:])
    edges = [
        {"source": source, "target": target}
        for one, other in dict.fromkeys(ways)
        for source in by_role.get(one, ())
        for target in by_role.get(other, ())
        if source != target
    ]
    built_in = {node.plays for node in nodes if node.built_in}
    roles = {role: names for role, names in by_role.items() if role not in built_in}
    said = {"id": "i1", "patternId": info.id, "edges": edges, "roles": roles}
    return msgspec.convert({**said, "data": {"params": dict(params)}}, Interaction)


def _settled(info: PatternInfo, agents: tuple[Agent, ...], interaction: Interaction) -> Settled:
    flow = Flow(version="0.2", agents=agents, interactions=(interaction,))
    return settle_interaction(flow, interaction, None, info)


def _spelt_out(interaction: Interaction, settled: Settled, info: PatternInfo) -> Interaction:
    said = already_said(settled.termination, info)
    data = EdgeData(
        topology=settled.topology,
        message_form=settled.message_form,
        sync=settled.sync,
        termination=settled.termination,
        params={name: value for name, value in settled.params.items() if name not in said},
    )
    return msgspec.structs.replace(interaction, data=data)
