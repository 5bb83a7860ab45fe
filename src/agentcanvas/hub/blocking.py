"""The same voice for scripts without an event loop: every call waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from agentcanvas.hub.broker import Receipt
from agentcanvas.hub.connecting import connect
from agentcanvas.hub.conversations import Answer, Call, Client, Gathered, Pipeline, Survey
from agentcanvas.protocol.kinds import StatusResponse


class BlockingClient:
    """A ``Client`` that is used from an ordinary thread."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self._client = client
        self._portal = portal

    def request(self, to: str, task_type: str, input: Any = None, **more: Any) -> Answer:  # noqa: A002
        """Give somebody a task and return its result; raise how it failed."""
        return self._portal.call(partial(self._client.request, to, task_type, input, **more))

    def send(self, to: str, task_type: str, input: Any = None, **more: Any) -> Receipt:  # noqa: A002
        """Give somebody a task and go on."""
        receipt: Receipt = self._portal.call(
            partial(self._client.send, to, task_type, input, **more)
        )
        return receipt

    def broadcast(self, event: str, message: str = "", data: Any = None) -> Receipt:
        """Tell everybody in the session."""
        return self._portal.call(partial(self._client.broadcast, event, message, data))

    def survey(self, event: str, *, timeout_s: float, **more: Any) -> Survey:
        """Ask everybody, and gather what they answer."""
        return self._portal.call(partial(self._client.survey, event, timeout_s=timeout_s, **more))

    def pipeline(self, calls: Sequence[Call], input: Any = None) -> Pipeline:  # noqa: A002
        """Give each the output of the one before."""
        result: Pipeline = self._portal.call(self._client.pipeline, calls, input)
        return result

    def gather(self, calls: Sequence[Call], **more: Any) -> Gathered:
        """Make many calls, some at a time."""
        return self._portal.call(partial(self._client.gather, calls, **more))

    def status(self, of: str, **more: Any) -> StatusResponse:
        """Ask an agent how it is, or how a task of it is."""
        return self._portal.call(partial(self._client.status, of, **more))

    def cancel(self, to: str, task_id: str, reason: str = "", **more: Any) -> Receipt:
        """Stop a task."""
        return self._portal.call(partial(self._client.cancel, to, task_id, reason, **more))

    def abort(self, session: str, reason: str = "", **more: Any) -> Receipt:
        """Stop every task of a session."""
        return self._portal.call(partial(self._client.abort, session, reason, **more))


@contextmanager
def blocking(
    connecting: Callable[[], AbstractAsyncContextManager[Client]],
) -> Iterator[BlockingClient]:
    """Speak from a script: ``with blocking(lambda: connect(dial, "me")) as client``."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(portal.call(_called, connecting)) as client,
    ):
        yield BlockingClient(client, portal)


def connect_blocking(
    hub: str, agent: str, *, token: str | None = None, **more: Any
) -> AbstractContextManager[BlockingClient]:
    """Speak as ``agent`` from a script: ``with connect_blocking("ws://…", "me") as client``.

    ``more`` are the other arguments of ``connecting.connect``.
    """
    return blocking(lambda: connect(hub, agent, token=token, **more))


async def _called(
    connecting: Callable[[], AbstractAsyncContextManager[Client]],
) -> AbstractAsyncContextManager[Client]:
    return connecting()
