"""The workspace's one server: how it is started, found, and taken for gone (D1)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import msgspec
import pytest
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from agentcanvas._version import __version__
from agentcanvas.app.server import (
    ServerInfo,
    find_server,
    info_path,
    lock_path,
    read_info,
    serve_beside,
)
from agentcanvas.errors import ResourceError, StoreBusy
from agentcanvas.store import OwnerLock, Store
from tests.web.office import FakeOffice, started

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".agentcanvas").mkdir()
    return tmp_path


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with await Store.open(root / ".agentcanvas" / "agentcanvas.db") as store:
        yield store


@pytest.fixture
def office(store: Store) -> FakeOffice:
    return FakeOffice(store)


def dead_pid() -> int:
    """The id of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def put(root: Path, content: bytes) -> None:
    info_path(root).write_bytes(content)


async def test_a_server_is_found_while_it_runs_and_leaves_nothing_behind(
    office: FakeOffice, store: Store, root: Path
) -> None:
    async with serve_beside(office, store, root, port=0) as info:
        assert await find_server(root) == info
        assert stat.S_IMODE(info_path(root).stat().st_mode) == 0o600
        published = json.loads(info_path(root).read_bytes())
        assert published == {
            "pid": os.getpid(),
            "url": info.url,
            "token": info.token,
            "version": __version__,
        }
        assert urlsplit(info.url).hostname == "127.0.0.1"
        assert [path.name for path in info_path(root).parent.glob("server.json*")] == [
            "server.json"
        ]
    assert await find_server(root) is None
    assert not info_path(root).exists()
    with OwnerLock(lock_path(root)):
        pass


async def test_a_workspace_has_one_server_at_a_time(
    office: FakeOffice, store: Store, root: Path
) -> None:
    async with serve_beside(office, store, root, port=0) as info:
        with pytest.raises(StoreBusy, match=rf"process {os.getpid()}"):
            await serve_beside(office, store, root, port=0).__aenter__()
        assert await find_server(root) == info


async def test_a_port_in_use_gives_way_to_the_next_free_one(
    office: FakeOffice, store: Store, root: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with serve_beside(office, store, root, port=port) as info:
            assert (urlsplit(info.url).port or 0) > port


async def test_no_free_port_is_one_sentence(office: FakeOffice, store: Store, root: Path) -> None:
    with pytest.raises(ResourceError, match="name another with --port"):
        await serve_beside(office, store, root, port=70000).__aenter__()


async def test_each_server_has_a_token_of_its_own(
    office: FakeOffice, store: Store, root: Path
) -> None:
    tokens = set()
    for _ in range(2):
        async with serve_beside(office, store, root, port=0) as info:
            tokens.add(info.token)
    assert len(tokens) == 2
    assert all(len(token) >= 43 for token in tokens)


async def test_an_error_in_the_block_comes_out_as_it_is_and_ends_the_server(
    office: FakeOffice, store: Store, root: Path
) -> None:
    async def fail() -> None:
        async with serve_beside(office, store, root, port=0):
            raise ResourceError("the block failed")

    with pytest.raises(ResourceError, match="the block failed"):
        await fail()
    assert not info_path(root).exists()


async def test_a_cancelled_block_ends_the_server_in_good_order(
    office: FakeOffice, store: Store, root: Path
) -> None:
    with anyio.CancelScope() as scope:
        async with serve_beside(office, store, root, port=0):
            scope.cancel()
            await anyio.sleep_forever()
    assert not info_path(root).exists()
    async with serve_beside(office, store, root, port=0):
        pass


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"pid": "x"}', b'{"pid": 0, "url": "", "token": "", "version": ""}'],
    ids=["empty", "torn", "list", "types", "nobody"],
)
async def test_a_garbled_server_json_is_no_server(root: Path, content: bytes) -> None:
    put(root, content)
    assert await find_server(root) is None


@pytest.mark.req("D43")
async def test_a_server_json_that_came_with_a_repository_is_not_followed(
    office: FakeOffice, store: Store, root: Path, tmp_path: Path
) -> None:
    path = info_path(root)
    async with serve_beside(office, store, root, port=0) as info:
        assert await find_server(root) == info
        # As git checks it out: for everybody to read.
        path.chmod(0o644)
        assert await find_server(root) is None
        path.chmod(0o600)
        elsewhere = tmp_path / "elsewhere.json"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        assert await find_server(root) is None
        path.unlink()
        elsewhere.rename(path)
        # Another machine is not even asked: there is no route to these.
        for host in ("192.0.2.1", "[2001:db8::1]", "[broken", ""):
            put(root, msgspec.json.encode(msgspec.structs.replace(info, url=f"http://{host}:80")))
            assert read_info(root) is None


async def test_a_workspace_that_was_never_served_has_no_server(tmp_path: Path) -> None:
    assert await find_server(tmp_path) is None


async def test_what_a_killed_server_left_behind_is_ignored_and_replaced(
    office: FakeOffice, store: Store, root: Path
) -> None:
    stale = ServerInfo(dead_pid(), "http://127.0.0.1:7717", "t", "0.0.1")
    put(root, msgspec.json.encode(stale))
    assert await find_server(root) is None
    async with serve_beside(office, store, root, port=0) as info:
        assert await find_server(root) == info


async def test_a_process_that_only_has_the_number_of_the_old_server_is_not_it(
    office: FakeOffice, store: Store, root: Path
) -> None:
    async with serve_beside(office, store, root, port=0) as info:
        # Alive, but nobody listens there.
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        put(root, msgspec.json.encode(ServerInfo(os.getpid(), f"http://127.0.0.1:{port}", "t", "")))
        assert await find_server(root) is None
        # Somebody listens, but does not know our token, or is somebody else.
        put(root, msgspec.json.encode(msgspec.structs.replace(info, token="wrong")))
        assert await find_server(root) is None
        put(root, msgspec.json.encode(msgspec.structs.replace(info, pid=os.getppid())))
        assert await find_server(root) is None


async def test_a_server_of_another_version_is_told_with_the_next_step(
    office: FakeOffice, store: Store, root: Path
) -> None:
    async with serve_beside(office, store, root, port=0, version="0.0.1"):
        with pytest.raises(StoreBusy, match=rf"AgentCanvas 0\.0\.1 .*kill {os.getpid()}"):
            await find_server(root)


async def test_requests_under_way_are_finished_before_the_server_ends(
    office: FakeOffice, store: Store, root: Path
) -> None:
    await office.write("r1", started())
    answers: list[httpx.Response] = []
    async with httpx.AsyncClient(trust_env=False) as client:

        async def ask(info: ServerInfo) -> None:
            headers = {"authorization": f"Bearer {info.token}"}
            answers.append(await client.get(f"{info.url}/api/v1/runs/r1", headers=headers))

        async with (
            anyio.create_task_group() as group,
            serve_beside(office, store, root, port=0) as info,
        ):
            group.start_soon(ask, info)
            await office.asked.wait()
    assert answers[0].status_code == 200


async def test_small_answers_leave_at_once(
    office: FakeOffice, store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nagle's algorithm and a delayed acknowledgement together cost 40 ms an answer."""
    taken: list[asyncio.BaseTransport] = []
    made = AutoHTTPProtocol.connection_made

    def connection_made(self: Any, transport: asyncio.Transport) -> None:
        taken.append(transport)
        made(self, transport)

    monkeypatch.setattr(AutoHTTPProtocol, "connection_made", connection_made)
    async with serve_beside(office, store, root, port=0) as info:
        async with httpx.AsyncClient() as client:
            await client.get(info.url)
        options = [
            each.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for each in taken
        ]
    assert options == [1]
