"""What each member of a team may reach of the network, from what its flow says (D11).

That a flow says it well is the matter of ``flows``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentcanvas.agents.way_out import WayOut
from agentcanvas.errors import FlowError, ValidationError
from agentcanvas.flows.reach import usual_network
from agentcanvas.flows.team import Agent, NetworkMode, Runtime
from agentcanvas.sandbox.confine import Network
from agentcanvas.sandbox.egress.providers import PROVIDERS, endpoint_at
from agentcanvas.sandbox.egress.rules import Endpoint, Rules, host_rule


def way_out(agent: Agent, *, models: Iterable[Endpoint] = (), hosts: Iterable[str] = ()) -> WayOut:
    """The rule for one agent; ``models`` and ``hosts`` are what its adapter needs beside."""
    runtime = agent.runtime or Runtime()
    usual = usual_network(runtime)
    said = runtime.network or usual
    network = Network(said.mode.value)
    if not network.is_behind_a_door:
        return WayOut(network)
    try:
        rules = Rules(
            hosts=tuple(host_rule(host) for host in (*said.hosts, *hosts)),
            models=_one_a_name((*_named_models(runtime), *models)),
        )
    except ValidationError as wrong:
        raise FlowError(f"The network of {agent.id}: {wrong}.") from wrong
    is_aimless = not (rules.hosts or rules.models) and usual.mode is NetworkMode.NONE
    if network is Network.MODEL and is_aimless:
        raise FlowError(
            f"The network of {agent.id} is 'model', and nothing says which model; name the "
            f"variable that holds its key in env: ({', '.join(PROVIDERS)}), or its url: and keyEnv:"
        )
    return WayOut(network, rules)


def _named_models(runtime: Runtime) -> Iterator[Endpoint]:
    """The services whose keys the agent is given, and the one at an address of its own."""
    if runtime.url:
        yield endpoint_at(runtime.url, runtime.key_env or "")
    for name in (runtime.key_env, *runtime.env):
        if name in PROVIDERS and not (runtime.url and name == runtime.key_env):
            yield PROVIDERS[name]


def _one_a_name(models: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """The first of each name is served."""
    found: dict[str, Endpoint] = {}
    for model in models:
        found.setdefault(model.name, model)
    return tuple(found.values())
