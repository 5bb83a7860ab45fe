"""Asking the server that holds a workspace or a hub, over HTTP (D1).

Errors come back as the exceptions they were; a stream that breaks is taken up again where it was,
without loss or repeats. What is asked is told by those who build on this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import msgspec

from agentcanvas.app.server import ServerInfo
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import Disconnected, ProtocolError
from agentcanvas.web import problems
from agentcanvas.web.app import PREFIX
from agentcanvas.web.sse import Frame, frames_of
from agentcanvas.web.stream import PING_S

T = TypeVar("T")

_CONNECTS_WITHIN_S = 5.0
_SILENT_S = 3 * PING_S
_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Before a broken stream is taken up again; after the last one it is given up."""

_BAD = 400


class Wire:
    """A connection to a server: ``async with Wire(info) as wire``."""

    def __init__(self, info: ServerInfo, *, clock: Clock | None = None) -> None:
        self._info = info
        self._clock = clock or SystemClock()
        self._client = httpx.AsyncClient(
            base_url=info.url + PREFIX,
            headers={"authorization": f"Bearer {info.token}"},
            # No limit on an answer: stopping a run takes as long as it takes. A server that is gone
            # is noticed by its socket.
            timeout=httpx.Timeout(None, connect=_CONNECTS_WITHIN_S),
            # Not through a proxy: loopback is this machine, whatever the environment says.
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        query: Mapping[str, Any] | None = None,
        body: msgspec.Struct | None = None,
    ) -> T:
        """The answer to a request, as a value."""
        answer = await self.fetch(method, path, query, body)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"The server's answer cannot be understood: {error}.") from None

    async def fetch(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: msgspec.Struct | bytes | None = None,
    ) -> bytes:
        """The answer to a request, as it came."""
        content = msgspec.json.encode(body) if isinstance(body, msgspec.Struct) else body
        try:
            answer = await self._client.request(method, path, params=query, content=content)
        except httpx.TransportError as error:
            raise self._lost() from error
        if answer.status_code >= _BAD:
            raise problems.from_body(answer.content)
        return answer.content

    async def follow(self, path: str, query: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        """The frames of a stream up to its end, over as many connections as it takes."""
        place: str | None = None
        pauses = iter(_PAUSES_S)
        while True:
            resumed = {} if place is None else {"last_event_id": place}
            try:
                async with aclosing(self._stream(path, {**query, **resumed})) as frames:
                    async for frame in frames:
                        pauses = iter(_PAUSES_S)
                        if frame.event == "end":
                            return
                        place = frame.id or place
                        yield frame
            except httpx.TransportError as error:
                broken: httpx.TransportError | None = error
            else:
                broken = None
            pause = next(pauses, None)
            if pause is None:
                raise self._lost() from broken
            await self._clock.sleep(pause)

    async def _stream(self, path: str, query: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        timeout = httpx.Timeout(_SILENT_S, connect=_CONNECTS_WITHIN_S)
        request = self._client.stream(
            "GET", path, params={**query, "follow": "true"}, timeout=timeout
        )
        async with request as answer:
            if answer.status_code >= _BAD:
                raise problems.from_body(await answer.aread())
            async for frame in frames_of(answer.aiter_bytes()):
                if frame.event == "problem":
                    raise problems.from_body(frame.data)
                yield frame

    def _lost(self) -> Disconnected:
        return Disconnected(
            f"The server of this workspace ({self._info.url}, process {self._info.pid}) does not "
            "answer any more. Start it again: agentcanvas serve"
        )
