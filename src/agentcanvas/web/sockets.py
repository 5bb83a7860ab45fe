"""Which WebSocket the server speaks: ours, where uvicorn has the parts that it leans on.

Ours is faster and nothing else, and those parts are uvicorn's own business: one that has changed
them gets its own WebSocket back. Whoever accepts a connection is told by its scope which it is.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import uvicorn
from uvicorn.server import ServerState

PLAIN = "websockets-sansio"

_PARTS = (
    *("close_sent", "config", "conn", "disconnected", "handshake_initiated", "loop", "queue"),
    *("read_paused", "transport", "writable"),
)
_METHODS = ("connection_made", "data_received", "handle_connect", "send")

_log = logging.getLogger(__name__)


def socket_protocol() -> type[asyncio.Protocol] | str:
    """Return what uvicorn is to be told; there has to be an event loop."""
    try:
        from agentcanvas.web.socket_protocol import SocketProtocol  # noqa: PLC0415

        missing = _missing(SocketProtocol)
    except (ImportError, AttributeError, TypeError) as wrong:
        missing = [str(wrong)]
    else:
        if not missing:
            return SocketProtocol
    _log.warning(
        "uvicorn %s lacks %s; WebSockets work, and somewhat more slowly",
        uvicorn.__version__,
        ", ".join(missing),
    )
    return PLAIN


def _missing(kind: Any) -> list[str]:
    config = uvicorn.Config(_nothing, ws=kind, loop="none", log_config=None)
    config.load()
    one = kind(config, ServerState(), {})
    missing = [name for name in (*_PARTS, *_METHODS) if not hasattr(one, name)]
    return missing or [name for name in ("state", "receive_data") if not hasattr(one.conn, name)]


async def _nothing(scope: object, receive: object, send: object) -> None:
    """Stand for an application."""
