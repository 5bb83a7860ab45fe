"""An agent by hand: raw frames over a real socket, in any dialect."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from agentcanvas.hub import frames

TIME = "2026-01-28T10:00:00Z"


class Wire:
    """One end of a WebSocket that says and hears JSON."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, value: Any) -> None:
        """Send one frame: text as it is, anything else as JSON."""
        await self.socket.send(value if isinstance(value, str | bytes) else json.dumps(value))

    async def hear(self) -> dict[str, Any]:
        """Return the next frame."""
        found: dict[str, Any] = json.loads(await self.socket.recv())
        return found

    async def hear_message(self) -> dict[str, Any]:
        """Return the next frame that is a message which was delivered."""
        while "delivery" not in (found := await self.hear()):
            pass
        return found

    async def hear_error(self) -> dict[str, Any]:
        """Return the payload of the next frame that is a refusal."""
        while (found := await self.hear()).get("type") != "ERROR" or "delivery" in found:
            pass
        payload: dict[str, Any] = found["payload"]
        return payload

    async def ended(self) -> tuple[int, str]:
        """Wait for the hub to close; return its code and reason."""
        await self.socket.wait_closed()
        return self.socket.close_code or 0, self.socket.close_reason or ""


@asynccontextmanager
async def wire(url: str, agent: str, token: str, query: str = "") -> AsyncIterator[Wire]:
    """Connect as plainly as the documents say."""
    address = f"{url.replace('http', 'ws', 1)}{frames.PATH}?agent_id={agent}&auth_token={token}"
    async with connect(address + query, compression=None, proxy=None, max_size=1 << 23) as socket:
        yield Wire(socket)


def mac(sender: str, to: str, id_: str, text: str = "hello", **fields: Any) -> dict[str, Any]:
    """Write a MAC message that opens and ends no task."""
    return {
        "message_id": id_,
        "type": "STATUS_QUERY",
        "from": sender,
        "to": to,
        "timestamp": TIME,
        "payload": {"query_type": text},
        **fields,
    }
