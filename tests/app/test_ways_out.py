"""What a flow says of an agent's network, as rules; and what it must not say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentcanvas.app.ways_out import way_out
from agentcanvas.errors import FlowError
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.team import Agent
from agentcanvas.sandbox.confine import Network
from agentcanvas.sandbox.egress.providers import ANTHROPIC, OPENAI

pytestmark = pytest.mark.req("D11")


def agent(**runtime: Any) -> Agent:
    """An agent as a flow says it."""
    runtime.setdefault("kind", "command")
    if runtime["kind"] != "cli":
        runtime.setdefault("command", "x")
    flow = {"version": 0.2, "agents": [{"id": "a", "runtime": runtime}]}
    text = msgspec.json.encode(flow).decode()
    return check(read_document(text, "flow.yaml")).sound().agents[0]


@pytest.mark.parametrize(
    ("kind", "network"),
    [("cli", Network.MODEL), ("acp", Network.MODEL), ("command", Network.NONE)],
)
def test_a_coding_cli_reaches_its_model_unasked_and_nobody_else_anything(
    kind: str, network: Network
) -> None:
    way = way_out(agent(kind=kind))
    assert way.network is network
    assert not way.rules.hosts
    assert not way.rules.models


def test_a_model_is_known_by_the_variable_of_its_key() -> None:
    way = way_out(agent(network="model", env=["ANTHROPIC_API_KEY", "EDITOR"]))
    assert way.rules.models == (ANTHROPIC,)


def test_hosts_are_reached_beside_the_model_of_the_agent() -> None:
    way = way_out(agent(network={"hosts": ["*.example.org:8443"]}, keyEnv="OPENAI_API_KEY"))
    assert way.network is Network.HOSTS
    assert [(host.name, host.ports) for host in way.rules.hosts] == [("*.example.org", (8443,))]
    assert way.rules.models == (OPENAI,)


def test_a_model_of_ones_own_on_this_machine_needs_no_key_and_no_tls() -> None:
    (own,) = way_out(agent(network="model", url="http://localhost:11434/v1")).rules.models
    assert own.key_from == ""
    assert own.within == ("127.0.0.0/8", "::1/128")
    assert own.told_in == ("OPENAI_BASE_URL", "OPENAI_API_BASE")


def test_a_gateway_in_front_of_a_known_model_is_spoken_to_as_the_model_is() -> None:
    said = agent(network="model", url="https://gate.example.org/claude", keyEnv="ANTHROPIC_API_KEY")
    (own,) = way_out(said).rules.models
    assert (own.header, own.told_in) == ("x-api-key", ("ANTHROPIC_BASE_URL",))
    assert own.within == ()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"network": "model"}, "nothing says which model; name the variable that holds its key"),
        (
            {"network": "model", "url": "http://gate.example.org", "keyEnv": "KEY"},
            "must begin with https, because its key goes there",
        ),
        ({"network": "model", "url": "gate.example.org"}, "write https://host/path"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(
    said: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(FlowError, match=r"The network of a\b.*") as refused:
        way_out(agent(**said))
    assert sentence in str(refused.value)
