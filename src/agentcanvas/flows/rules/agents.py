"""The team: ids, runtimes that say what they need, and nobody forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentcanvas.errors import ValidationError
from agentcanvas.flows.problem import Problem, Rule, at, did_you_mean, shown, warning
from agentcanvas.flows.rules.scene import Scene, repeated, unfit_id
from agentcanvas.flows.settle import settle
from agentcanvas.flows.team import Agent, Network, NetworkMode, Runtime
from agentcanvas.sandbox.egress.rules import host_rule

_MOST_MCP: Final = 2
_SLIP_MS: Final = 1_000
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What a kind of runtime cannot do without, and what only some kinds understand.
_NEEDS: Final = {
    "script": "script",
    "python": "call",
    "command": "command",
    "model": "model",
    "a2a": "url",
    "acp": "command",
}
_BELONGS: Final = {
    "backendId": ("cli",),
    "command": ("command", "acp", "cli"),
    "script": ("script",),
    "call": ("python",),
    "model": ("cli", "model"),
    "url": ("model", "a2a", "remote", "cli", "command", "acp"),
    "keyEnv": ("model", "a2a", "cli", "command", "acp"),
}
_FIELDS: Final = {"backendId": "backend_id", "keyEnv": "key_env"}


def agents(scene: Scene) -> Iterator[Problem]:
    """Every problem of the team."""
    yield from repeated([(at(p, "id"), agent.id) for p, agent in scene.agents], "agents")
    for pointer, agent in scene.agents:
        yield from unfit_id(agent.id, at(pointer, "id"))
        if len(agent.mcp) > _MOST_MCP:
            sentence = f"{agent.id} has {len(agent.mcp)} MCP servers"
            advice = "an agent works best with two or less"
            yield warning(Rule.MANY_TOOLS, sentence, advice, at(pointer, "mcp"))
        yield from _fallback(agent, scene, pointer)
        if agent.runtime:
            yield from _runtime(agent.runtime, at(pointer, "runtime"), scene.runtimes)
    if scene.whole and scene.flow.interactions:
        yield from _unused(scene)


def _fallback(agent: Agent, scene: Scene, pointer: str) -> Iterator[Problem]:
    if agent.fallback is None:
        return
    others = [other.id for _, other in scene.agents if other.id != agent.id]
    if agent.fallback not in others:
        sentence = f"{agent.id} falls back on {shown(agent.fallback)}, who is nobody else here"
        advice = did_you_mean(agent.fallback, others, "name another agent, or remove it")
        yield Problem(Rule.RUNTIME, sentence, advice, at(pointer, "fallback"))


def _runtime(runtime: Runtime, pointer: str, kinds: frozenset[str]) -> Iterator[Problem]:
    kind = runtime.kind
    if kind not in kinds:
        advice = did_you_mean(kind, kinds)
        yield Problem(
            Rule.RUNTIME, f"there is no runtime {shown(kind)}", advice, at(pointer, "kind")
        )
        return
    needed = _NEEDS.get(kind)
    if needed and not getattr(runtime, needed):
        sentence = f"a {kind} runtime needs {needed}"
        yield Problem(Rule.RUNTIME, sentence, f"add {needed}: …", pointer)
    for name, owners in _BELONGS.items():
        given = getattr(runtime, _FIELDS.get(name, name)) is not None
        if given and kind in {*_NEEDS, "cli", "human", "remote"} and kind not in owners:
            sentence = f"a {kind} runtime does not read {name}"
            advice = f"remove it, or use kind: {owners[0]}"
            yield Problem(Rule.RUNTIME, sentence, advice, at(pointer, name), at_key=True)
    yield from _variables(runtime, pointer)
    if runtime.network:
        yield from networks(runtime.network, at(pointer, "network"))
    for name, ms in (("timeout_ms", runtime.timeout_ms), ("silent_ms", runtime.silent_ms)):
        if ms is not None:
            yield from unit_slip(ms, at(pointer, name))


def _variables(runtime: Runtime, pointer: str) -> Iterator[Problem]:
    yield from variables(runtime.env, at(pointer, "env"))
    if runtime.key_env is not None:
        yield from _variable(runtime.key_env, at(pointer, "keyEnv"))


def variables(names: Iterable[str], pointer: str) -> Iterator[Problem]:
    """Variables are named, never written out."""
    for index, name in enumerate(names):
        yield from _variable(name, at(pointer, index))


def _variable(name: str, place: str) -> Iterator[Problem]:
    if not _VARIABLE.fullmatch(name):
        # The value is not repeated here: it may be the secret itself.
        sentence = "this is not the name of an environment variable"
        advice = "write the name only, such as MY_API_KEY; a flow never holds a secret"
        yield Problem(Rule.SECRET, sentence, advice, place)


def networks(network: Network, pointer: str) -> Iterator[Problem]:
    """A network that says what it means."""
    if network.mode is NetworkMode.HOSTS and not network.hosts:
        advice = "list them in hosts:, or say none"
        yield Problem(Rule.RUNTIME, "the network is hosts, and none is named", advice, pointer)
    elif network.mode is not NetworkMode.HOSTS and network.hosts:
        advice = "say mode: hosts, which reaches the model too, or leave the list out"
        sentence = f"the network is {network.mode}, which reads no list of hosts"
        yield Problem(Rule.RUNTIME, sentence, advice, pointer)
    for index, host in enumerate(network.hosts):
        try:
            host_rule(host)
        except ValidationError as wrong:
            sentence, _, advice = str(wrong).removeprefix("network.hosts: ").partition("; ")
            place = at(pointer, "hosts", index)
            yield Problem(Rule.RUNTIME, sentence, advice or "correct it", place)


def unit_slip(ms: int, pointer: str) -> Iterator[Problem]:
    """A time so short that seconds were probably meant."""
    if ms < _SLIP_MS:
        advice = f"this is in milliseconds; {ms} seconds are {ms * 1000}"
        yield warning(Rule.UNIT, f"{ms} ms is less than a second", advice, pointer)


def _unused(scene: Scene) -> Iterator[Problem]:
    playing: set[str] = set()
    for settled in settle(scene.flow, scene.patterns):
        playing |= settled.players
    playing |= {agent.fallback for _, agent in scene.agents if agent.fallback is not None}
    for pointer, agent in scene.agents:
        if agent.id not in playing:
            yield _forgotten(agent, pointer)


def _forgotten(agent: Agent, pointer: str) -> Problem:
    advice = "give it an edge, a role or a task, or remove it"
    return warning(Rule.UNUSED_AGENT, f"{agent.id} takes part in nothing", advice, pointer)
