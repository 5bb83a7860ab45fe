"""Calls go out over real HTTP, and nothing a receiver does harms the hub (C10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from agentcanvas import connect
from agentcanvas.app.calling import caller
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.transports.memory import dialing
from tests.app.hub_process import hub_beside, tokens_for, ws

pytestmark = [pytest.mark.anyio, pytest.mark.req("C10")]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def _with_receiver(
    answer: bytes, use: Callable[[str, list[bytes]], Awaitable[None]]
) -> list[bytes]:
    """Serve one address that answers everything with the same bytes."""
    received: list[bytes] = []

    async def serve(stream: SocketStream) -> None:
        async with stream:
            data = b""
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
            while len(body) < length:
                body += await stream.receive()
            received.append(head + b"\r\n\r\n" + body)
            await stream.send(answer)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            await use(f"http://127.0.0.1:{port}/done", received)
            group.cancel_scope.cancel()
    return received


@pytest.mark.req("H8")
async def test_a_hub_calls_the_address_of_a_task_when_it_is_done(tmp_path: Path) -> None:
    tokens = await tokens_for(tmp_path, "worker", "me")
    worker = Agent("worker")

    @worker.task("echo")
    async def echo(task: Task) -> object:
        return task.input

    async def use(url: str, received: list[bytes]) -> None:
        async with (
            hub_beside(tmp_path) as (info, hub),
            worker.working(dialing(hub.hub, Principal("worker"))),
            connect(ws(info.url), "me", token=tokens["me"]) as client,
        ):
            await client.request("worker", "echo", "hello", callback_url=url)
            while not received:
                await hub.store.wait_beyond(hub.store.head)

    (request,) = await _with_receiver(OK, use)
    assert request.startswith(b"POST /done HTTP/1.1\r\n")
    assert b"webhook-signature: v1a," in request
    assert b'"TASK_COMPLETE"' in request
    assert b'"hello"' in request


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (OK, 200),
        (b"HTTP/1.1 500 No\r\n\r\n" + b"x" * 100_000, 500),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", 302),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n", 200),
    ],
)
async def test_of_an_answer_only_the_status_counts(answer: bytes, status: int) -> None:
    async def use(url: str, received: list[bytes]) -> None:
        async with caller(5) as call:
            assert await call(url, {}, b"{}") == status

    assert len(await _with_receiver(answer, use)) == 1


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 999999 X\r\n\r\n"])
async def test_garbage_is_no_answer(answer: bytes) -> None:
    async def use(url: str, received: list[bytes]) -> None:
        async with caller(5) as call:
            with pytest.raises(OSError):  # noqa: PT011  # that is what no answer is
                await call(url, {}, b"{}")

    await _with_receiver(answer, use)


async def test_nobody_at_an_address_and_an_address_that_is_none_are_no_answers() -> None:
    async with caller(5) as call:
        for url in ("http://127.0.0.1:1/x", "http://", "http://[::1", "gopher://x", "http://\x00/"):
            with pytest.raises(OSError):  # noqa: PT011  # that is what no answer is
                await call(url, {}, b"{}")


async def test_a_receiver_that_says_nothing_is_not_waited_for_for_long() -> None:
    silent = anyio.Event()

    async def serve(stream: SocketStream) -> None:
        async with stream:
            await silent.wait()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as group, caller(0.05) as call:
            group.start_soon(listener.serve, serve)
            with pytest.raises(OSError):  # noqa: PT011  # that is what no answer is
                await call(f"http://127.0.0.1:{port}/", {}, b"{}")
            group.cancel_scope.cancel()
