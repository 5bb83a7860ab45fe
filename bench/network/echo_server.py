"""The bare echo that the hub is measured against: uvicorn with the hub's own settings."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Send back whatever comes."""
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": message["text"]})


def main() -> None:
    """Serve until killed; the address is the first line."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        echo,
        loop="none",
        lifespan="off",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="error",
    )
    asyncio.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    main()
