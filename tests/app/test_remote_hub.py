"""The office of a hub in another process does what the hub's own does, errors included (D1)."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec import Raw

from agentcanvas.app.hub import OpenHub, open_hub
from agentcanvas.app.hub_office import open_hub_office
from agentcanvas.app.remote_hub import RemoteHub
from agentcanvas.app.server import ServerInfo, info_path_in, serve_beside
from agentcanvas.clock import SystemClock
from agentcanvas.errors import (
    AgentNotFound,
    Disconnected,
    NotFound,
    ProtocolError,
    ResourceError,
    StoreBusy,
    Unauthenticated,
    ValidationError,
)
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.office import AgentLine, Choice, Entry, HubOffice, TaskOrder, TokenOrder
from agentcanvas.protocol.limits import Limits
from tests.hub.helpers import message
from tests.hub.test_keeper import ACP, MAC, S22
from tests.web.office import FakeOffice

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]


def _at_any_time(line: AgentLine) -> AgentLine:
    """Return a line without for how long its agent has been silent, which no two looks share."""
    return msgspec.structs.replace(line, silent_s=None)


ODD = "worker 1/ü"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".agentcanvas").mkdir()
    return tmp_path


@pytest.fixture
async def hub(root: Path) -> AsyncIterator[OpenHub]:
    path = root / ".agentcanvas" / "agentcanvas.db"
    async with open_hub(path, clock=SystemClock(), limits=Limits()) as hub:
        yield hub


@pytest.fixture
async def server(hub: OpenHub, root: Path) -> AsyncIterator[ServerInfo]:
    office = FakeOffice(hub.store)
    async with serve_beside(office, hub.store, root, port=0, static=None, hub=hub) as info:
        yield info


@pytest.fixture
async def remote(server: ServerInfo) -> AsyncIterator[RemoteHub]:
    async with RemoteHub(server) as remote:
        yield remote


async def test_it_is_a_hub_office(remote: RemoteHub) -> None:
    office: HubOffice = remote
    assert await office.tokens() == ()


async def test_tokens_are_made_listed_and_revoked(remote: RemoteHub, hub: OpenHub) -> None:
    made = await remote.new_token(TokenOrder(name=ODD, permissions=("a", "b")))
    assert hub.tokens.authenticate(made.text).id == ODD
    assert await remote.tokens() == await hub.keeper.tokens()
    link = await hub.hub.connect(Principal(ODD), capabilities=["code"])
    there, here = await remote.agents(["code"]), await hub.keeper.agents(["code"])
    assert list(map(_at_any_time, there)) == list(map(_at_any_time, here))
    revoked = await remote.revoke(ODD)
    assert [line.id for line in revoked] == [made.id]
    with pytest.raises(Disconnected):
        await link.receive(1)
    with pytest.raises(Unauthenticated):
        hub.tokens.authenticate(made.text)


async def test_messages_are_sent_and_read_back(remote: RemoteHub, hub: OpenHub) -> None:
    for name in ("asker", "worker"):
        await remote.new_token(TokenOrder(name=name))
    for value in (MAC, S22, ACP):
        sent = await remote.send(json.dumps(value).encode())
        assert await remote.thread(sent.thread) == await hub.keeper.thread(sent.thread) != ()
    order = TaskOrder(to="worker", task_type="review", input=Raw(b'"x"'), timeout_s=3)
    task = await remote.assign(order)
    (entry,) = await remote.thread(task.id)
    assert entry.seq == task.number
    choice = Choice(agent="worker", kind="task")
    assert await remote.latest(choice, 2) == await hub.keeper.latest(choice, 2)


async def test_lines_come_as_they_happen(remote: RemoteHub, hub: OpenHub) -> None:
    for name in ("asker", "worker"):
        await remote.new_token(TokenOrder(name=name))
    heard: list[Entry] = []
    both = anyio.Event()

    async def listen() -> None:
        async with aclosing(remote.entries(Choice(agent="worker"), after=0)) as entries:
            async for entry in entries:
                heard.append(entry)
                if len(heard) == 2:
                    both.set()

    async with anyio.create_task_group() as group:
        await hub.hub.send(Principal("asker"), message("asker", "worker"))
        group.start_soon(listen)
        await hub.hub.send(Principal("asker"), message("asker", "worker"))
        await both.wait()
        group.cancel_scope.cancel()
    assert tuple(heard) == await hub.keeper.latest(Choice(agent="worker"), 10)


@pytest.mark.req("H2")
async def test_dead_letters_are_resent_once_and_deleted_for_good(
    remote: RemoteHub, hub: OpenHub
) -> None:
    for name in ("asker", "worker"):
        await remote.new_token(TokenOrder(name=name))
    await hub.hub.send(Principal("asker"), message("asker", "worker"))
    number = hub.store.head
    await hub.store.transact(
        lambda transaction: transaction.execute(
            "UPDATE hub_letters SET state = 2, reason = 'tests' WHERE seq = ?", (number,)
        )
    )
    assert await remote.dead_letters() == await hub.keeper.dead_letters()
    assert (await remote.dead_letter(number)).recipient == "worker"
    await remote.resend(number)
    for again in (remote.resend, remote.delete, remote.dead_letter):
        with pytest.raises(NotFound, match="no dead letter"):
            await again(number)


async def test_refusals_come_back_as_what_they_were(remote: RemoteHub) -> None:
    with pytest.raises(AgentNotFound, match="Agent not found: nobody"):
        await remote.assign(TaskOrder(to="nobody", task_type="x"))
    with pytest.raises(NotFound, match="no token"):
        await remote.revoke("nobody")
    with pytest.raises(ProtocolError):
        await remote.send(b"{")
    with pytest.raises(ProtocolError):
        await remote.send(b"")
    with pytest.raises(ValidationError, match="cannot be a name"):
        await remote.new_token(TokenOrder(name="hub"))
    with pytest.raises(ValidationError):
        await remote.assign(TaskOrder(to="x", task_type="x", priority=11))
    assert await remote.thread("x") == ()


async def test_an_agents_token_does_not_open_the_office(
    server: ServerInfo, remote: RemoteHub
) -> None:
    made = await remote.new_token(TokenOrder(name="worker"))
    info = ServerInfo(server.pid, server.url, made.text, server.version)
    async with RemoteHub(info) as intruder:
        for ask in (intruder.tokens, intruder.agents, intruder.dead_letters):
            with pytest.raises(Unauthenticated):
                await ask()
        with pytest.raises(Unauthenticated):
            await intruder.new_token(TokenOrder(name="other"))


# -- which office ----------------------------------------------------------------------------------


async def test_the_server_is_asked_while_there_is_one_and_the_lock_is_taken_when_there_is_none(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    async with open_hub_office(folder, make=True) as (office, is_live):
        assert not is_live
        await office.new_token(TokenOrder(name="worker"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    async with open_hub_office(folder) as (office, _):
        assert [line.name for line in await office.tokens()] == ["worker"]


async def test_a_served_workspace_is_asked(server: ServerInfo, root: Path) -> None:
    folder = root / ".agentcanvas"
    assert stat.S_IMODE(info_path_in(folder).stat().st_mode) == 0o600
    async with open_hub_office(folder) as (office, is_live):
        assert is_live
        assert isinstance(office, RemoteHub)
        assert await office.agents() == ()


async def test_a_folder_without_a_hub_is_not_made_by_looking(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    with pytest.raises(ResourceError, match=r"no hub in .*agentcanvas hub --data"):
        async with open_hub_office(folder):
            pass
    assert not folder.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot be made"):
        async with open_hub_office(tmp_path / "file" / "below", make=True):
            pass


async def test_a_hub_that_is_held_and_cannot_be_reached_is_said_to_be(
    hub: OpenHub, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcanvas.app.hub_office._PAUSE_S", 0.0)
    with pytest.raises(StoreBusy, match="cannot be reached"):
        async with open_hub_office(root / ".agentcanvas"):
            pass
    assert hub.store.head >= 0
