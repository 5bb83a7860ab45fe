"""uvicorn on somebody else's event loop: it neither takes signals nor looks at the clock."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from agentcanvas.web.http_protocol import http_protocol

_GRACE_S = 2


class QuietServer(uvicorn.Server):
    """Serves from ``startup`` until ``end``; ``options`` are uvicorn's, beside those of us all."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=http_protocol(),
                loop="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                **options,
            )
        )
        self._started = asyncio.Event()
        self._told_to_end = asyncio.Event()

    async def wait_started(self, serving: asyncio.Task[None]) -> None:
        """Return when requests are taken, or raise what kept them from being taken."""
        started = asyncio.ensure_future(self._started.wait())
        try:
            await asyncio.wait({started, serving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            started.cancel()
        if serving.done():
            await serving

    def end(self) -> None:
        """Take no more requests, and finish those that are under way."""
        self._told_to_end.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._started.set()

    async def main_loop(self) -> None:
        """Wait to be told to end; uvicorn's own loop wakes ten times a second to look."""
        await self._told_to_end.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever owns the process."""
        yield
