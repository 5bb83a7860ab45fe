"""uvicorn's HTTP, with an end to its patience: whoever never finishes a request is hung up on.

uvicorn closes a connection that is idle after an answer. For all else it waits for ever: the head
of a first request, the rest of one that is half there, the body, and what is left of a body that
was refused. Each such connection takes one of the files that the system allows.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import ServerState

PATIENCE_S = 30
"""How long the head of a request may take, and how long its body may pause."""

_PLAIN = "auto"
_PARTS = (
    *("connection_lost", "connection_made", "cycle", "data_received", "flow", "loop"),
    "transport",
)

_log = logging.getLogger(__name__)


class HttpProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # chosen when it is imported
    """One connection."""

    _giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._judge()

    def data_received(self, data: bytes) -> None:
        """Wait no longer once the head of a request is whole."""
        super().data_received(data)
        self._judge()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go."""
        self._be_patient()
        super().connection_lost(exc)

    def _judge(self) -> None:
        """Wait no longer than so for what is to come next."""
        if self._is_served or self._is_coming:
            self._be_patient()
        if not self._is_served and self._giving_up is None:
            self._giving_up = self.loop.call_later(PATIENCE_S, self._give_up)

    @property
    def _is_under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _is_coming(self) -> bool:
        """Whether the body of a request comes; each part of it gives the next one time."""
        return self._is_under_way and self.cycle.more_body

    @property
    def _is_served(self) -> bool:
        """Whether nothing is waited for but our own answer, or a WebSocket has taken over."""
        answering = self._is_under_way and not self.cycle.more_body
        return answering or self.transport.get_protocol() is not self

    def _be_patient(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _give_up(self) -> None:
        self._giving_up = None
        if self._is_coming and self.flow.read_paused:  # it is we who are slow
            self._judge()
        elif not self._is_served:
            self.transport.close()


def http_protocol() -> type[asyncio.Protocol] | str:
    """Return what uvicorn is to be told; one that has changed its parts gets its own HTTP back.

    There has to be an event loop.
    """
    config = uvicorn.Config(_nothing, loop="none", log_config=None)
    config.load()
    one = HttpProtocol(config, ServerState(), {})
    missing = [name for name in _PARTS if not hasattr(one, name)]
    if not missing:
        return HttpProtocol
    _log.warning(
        "uvicorn %s lacks %s; half requests are waited for without end",
        uvicorn.__version__,
        ", ".join(missing),
    )
    return _PLAIN


async def _nothing(scope: object, receive: object, send: object) -> None:
    """Stand for an application."""
