"""What a turn reaches of the network: its model without the key, its hosts, and nothing else.

The upstream is a real server on loopback that tells back what it was asked; each confinement of
this machine runs a real program that asks it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import anyio
import pytest

from agentcanvas.agents.outbound import Outbound, open_door
from agentcanvas.agents.runtime import Emit, Outcome, Turn, TurnResult, answered
from agentcanvas.agents.runtimes.command import CommandRuntime
from agentcanvas.agents.way_out import WayOut
from agentcanvas.clock import SystemClock
from agentcanvas.protocol.records import NetworkEvent, RawEvent
from agentcanvas.sandbox.confine import Confinement, Network, View
from agentcanvas.sandbox.egress.log import Request, Tell
from agentcanvas.sandbox.egress.providers import OPENAI, endpoint_at
from agentcanvas.sandbox.egress.proxy import Egress
from agentcanvas.sandbox.egress.rules import Rules, host_rule
from tests.agents.conftest import Events, turn
from tests.sandbox.upstream import Upstream, running

pytestmark = [pytest.mark.anyio, pytest.mark.req("D11")]

CLOCK = SystemClock()
KEY = "sk-real-key-of-the-user-0123456789"
ASKS_ITS_MODEL = """
import os, urllib.request
key = os.environ["OPENAI_API_KEY"]
url = os.environ["OPENAI_BASE_URL"] + "/chat"
asked = urllib.request.Request(url, b"hello", {"Authorization": "Bearer " + key})
print(key, urllib.request.urlopen(asked).read().decode())
"""
ASKS = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url).status)
    except Exception as error:
        print(type(error).__name__)
"""


def asks(confinement: Confinement, script: str, *more: str) -> CommandRuntime:
    return CommandRuntime(["python3", "-c", script, *more], confinement, CLOCK)


def its_model(upstream: Upstream, **keys: str) -> WayOut:
    endpoint = endpoint_at(f"http://127.0.0.1:{upstream.port}/v1", "OPENAI_API_KEY")
    return WayOut(Network.MODEL, Rules(models=(endpoint,)), keys)


@pytest.mark.parametrize("has_files", [True, False])
async def test_an_agent_asks_its_model_and_the_key_is_nowhere_in_its_turn(
    confinement: Confinement, place: View, events: Events, has_files: bool
) -> None:
    async with running() as model:
        way = its_model(model, OPENAI_API_KEY=KEY)
        runtime = Outbound(asks(confinement, ASKS_ITS_MODEL), way)
        asked = turn(place=place if has_files else None, env=("OPENAI_API_KEY",))
        result = await runtime.run(asked, events)
    assert result.outcome is Outcome.OK, result.error
    (heard,) = model.heard
    assert heard.line == "POST /v1/chat HTTP/1.1"
    assert heard.headers["authorization"] == f"Bearer {KEY}"
    # What the agent held for its key is the turn's token; on record is only the name.
    assert result.text.startswith("[OPENAI_API_KEY] ")
    assert KEY not in f"{result}{events}"
    (told,) = events.of(NetworkEvent)
    assert (told.method, told.host, told.allowed, told.status) == ("POST", "127.0.0.1", True, 200)
    assert told.sent > 0
    assert told.received > 0


async def test_a_host_that_was_not_named_is_not_reached_and_on_record(
    confinement: Confinement, place: View, events: Events
) -> None:
    async with running() as named, running() as other:
        way = WayOut(Network.HOSTS, Rules(hosts=(host_rule(f"localhost:{named.port}"),)))
        urls = [f"http://agent.localhost.test:{other.port}/", "http://169.254.169.254/latest"]
        runtime = Outbound(asks(confinement, ASKS, *urls), way)
        result = await runtime.run(turn(place=place), events)
    assert result.text.split() == ["HTTPError", "HTTPError"]
    assert other.connections == 0
    told = events.of(NetworkEvent)
    assert [(each.host, each.allowed, each.status) for each in told] == [
        ("agent.localhost.test", False, 403),
        ("169.254.169.254", False, 403),
    ]
    assert "not among the hosts" in told[0].reason


async def test_without_a_way_out_nothing_is_reached(
    confinement: Confinement, place: View, events: Events
) -> None:
    async with running() as upstream:
        runtime = Outbound(asks(confinement, ASKS, f"http://127.0.0.1:{upstream.port}/"), WayOut())
        result = await runtime.run(turn(place=place, env=("OPENAI_API_KEY",)), events)
    assert result.text == "URLError"
    assert upstream.connections == 0
    assert events.of(NetworkEvent) == []


async def test_a_key_that_the_host_lacks_is_said_where_the_model_would_answer(
    strongest: Confinement, place: View, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with running() as model:
        runtime = Outbound(asks(strongest, ASKS_ITS_MODEL), its_model(model))
        result = await runtime.run(turn(place=place), events)
    assert result.outcome is Outcome.FAILED
    (told,) = events.of(NetworkEvent)
    assert (told.status, told.reason) == (503, "OPENAI_API_KEY is not set on the host")
    assert model.connections == 0


async def test_the_door_closes_with_the_turn_however_it_ends(events: Events) -> None:
    ports: list[int] = []

    class Breaks:
        async def run(self, turn: Turn, _emit: Emit) -> TurnResult:
            assert turn.out.door is not None
            ports.append(turn.out.door.listen())
            raise RuntimeError("broken")

    way = WayOut(Network.MODEL, Rules(models=(OPENAI,)))
    with pytest.raises(RuntimeError, match="broken"):
        await Outbound(Breaks(), way).run(turn(), events)
    with pytest.raises(OSError, match="connection attempts failed"):
        await anyio.connect_tcp("127.0.0.1", ports[0])


async def test_a_flood_of_requests_is_counted_instead_of_told_one_by_one(events: Events) -> None:
    class Floods:
        async def run(self, turn: Turn, _emit: Emit) -> TurnResult:
            for number in range(1_200):
                allowed = number % 2 == 0
                tells[0](Request(method="GET", host="x.test", port=80, allowed=allowed))
            return answered(turn, "done")

    tells: list[Tell] = []

    def opening(way: WayOut, tell: Tell) -> AbstractAsyncContextManager[Egress]:
        tells.append(tell)
        return open_door(way, tell)

    way = WayOut(Network.MODEL, Rules(models=(OPENAI,)))
    await Outbound(Floods(), way, opening=opening).run(turn(), events)
    assert len(events.of(NetworkEvent)) == 500
    (rest,) = events.of(RawEvent)
    assert rest.line == "network: 700 more requests, 350 of them refused"
