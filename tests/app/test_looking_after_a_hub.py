"""A hub in a process of its own, its agents in others, and the commands of a third (D1)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

import agentcanvas
from agentcanvas.app.remote_hub import RemoteHub
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import AgentCanvasError, StoreFull, Unauthenticated
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.keeper import Keeper
from agentcanvas.hub.office import TokenOrder
from agentcanvas.hub.tokens import Tokens, token_id
from agentcanvas.store import Store, StoreLimits
from tests.app.hub_process import hub_beside, hub_process, tokens_for, ws
from tests.cli.test_hub_commands import give, lines
from tests.hub.helpers import a_broker
from tests.web.sockets import mac, wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@contextmanager
def agent_at(url: str, token: str) -> Iterator[subprocess.Popen[str]]:
    """Run an agent that doubles numbers until the block ends."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.agent_child", url, token],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


@contextmanager
def tailing(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``agentcanvas tail`` until the block ends by Ctrl-C."""
    program = [sys.executable, "-c", "from agentcanvas.cli import main; main()", "tail"]
    with subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.send_signal(signal.SIGINT)


@pytest.mark.req("H6", "L1", "M4")
def test_a_hub_is_looked_after_while_it_runs(tmp_path: Path) -> None:
    at = ("--data", str(tmp_path))
    with hub_process(tmp_path) as (url, _):
        token = give("token", "new", "doubler", *at).stdout.strip()
        with agent_at(ws(url), token) as agent:
            done = give("send", "doubler", "double", "21", "--wait", *at)
            assert (done.exit_code, done.stdout) == (0, '{"twice":42}\n'), done.stderr
            (line,) = lines(give("agents", "--json", "-c", "arithmetic", *at))
            assert (line["id"], line["state"]) == ("doubler", "present")
            with tailing("--json", "--kind", "task.complete", *at) as tail:
                assert tail.stdout is not None
                before = json.loads(tail.stdout.readline())
                give("send", "doubler", "double", "4", "--wait", *at)
                heard = json.loads(tail.stdout.readline())
            assert heard["seq"] > before["seq"], "it came while the command ran"
            tree = give("trace", heard["message"]["correlation_id"], *at).stdout
            assert "person:you → doubler  task.assign  double: 4" in tree
            assert "└── doubler → person:you" in tree
            assert "1 token of doubler revoked" in give("token", "revoke", "doubler", *at).stdout
            assert agent.wait() != 0, "its token opens nothing any more"
            assert agent.stderr is not None
            assert "revoked" in agent.stderr.read()
        assert give("send", "doubler", "double", "1", *at).exit_code == 1
        assert give("audit", "verify", *at).exit_code == 0
    assert "does not run" in give("agents", *at).stdout


@pytest.mark.req("H6")
async def test_a_connection_ends_when_its_token_is_revoked_and_does_not_come_back(
    tmp_path: Path,
) -> None:
    tokens = await tokens_for(tmp_path, "a", "b")
    async with hub_beside(tmp_path) as (info, hub):
        async with wire(info.url, "a", tokens["a"]) as socket, RemoteHub(info) as office:
            await socket.say(mac("a", "b", "before"))
            assert "receipts" in await socket.hear()
            await office.revoke("a")
            await socket.ended()
            with pytest.raises(ConnectionClosed):
                await socket.say(mac("a", "b", "after"))
        with pytest.raises(Unauthenticated):
            async with agentcanvas.connect(ws(info.url), "a", token=tokens["a"]):
                pass
        async with agentcanvas.connect(ws(info.url), "b", token=tokens["b"]) as client:
            with pytest.raises(AgentCanvasError, match="Agent not found: a"):
                await client.send("a", "double", 1)
        said = [parcel.envelope.id for parcel in await hub.broker.since("b")]
        assert said == ["before"]


@pytest.mark.req("H6")
async def test_a_token_that_is_revoked_between_recognition_and_connection_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = await tokens_for(tmp_path, "a")
    async with hub_beside(tmp_path) as (info, hub):
        connect = hub.broker.connect

        async def slowly(*words: str, **more: int) -> object:
            await hub.keeper.revoke("a")
            return await connect(*words, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(hub.broker, "connect", slowly)
        with pytest.raises(Exception):  # noqa: B017, PT011  # refused, or ended at once
            async with wire(info.url, "a", tokens["a"]) as socket:
                await socket.hear()
        assert hub.broker.statistics().inboxes == 0


@pytest.mark.req("H6")
async def test_a_full_disk_makes_no_token_that_nobody_has(
    tmp_path: Path, clock: VirtualClock
) -> None:
    async with (
        await Store.open(
            tmp_path / "full.db", clock=clock, limits=StoreLimits(max_bytes=400_000)
        ) as store,
        a_broker(store, clock) as broker,
        Hub.open(broker, store, clock=clock) as hub,
    ):
        tokens = Tokens(store, clock)
        keeper = Keeper(hub, broker, store, tokens, clock)
        made = await keeper.new_token(TokenOrder(name="first"))
        texts = [made.text]

        async def fill() -> None:
            while True:
                await store.append("filler", "x", b'"' + b"x" * 20_000 + b'"')

        async def make_tokens() -> None:
            while True:
                order = TokenOrder(name=f"{len(texts):0150}")
                texts.append((await keeper.new_token(order)).text)

        for until_full in (fill, make_tokens):
            with pytest.raises(StoreFull):
                await until_full()
        written = Tokens(store, clock)
        await written.load()
        good = {card.id for card in written.cards() if card.revoked_ms is None}
        assert good == {token_id(text) for text in texts}
        assert {card.id for card in tokens.cards() if card.revoked_ms is None} == good
        assert all(written.authenticate(text) for text in texts)
