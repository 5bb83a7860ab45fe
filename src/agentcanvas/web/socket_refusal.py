"""How somebody is told that a WebSocket is not opened: a MAC ERROR message with a status (M3)."""

from __future__ import annotations

from starlette.types import Scope, Send

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.web import problems
from agentcanvas.web.operation import JSON

_REFUSED = 1008
_REASON_BYTES = 123
"""A close frame holds no more."""


async def refuse_socket(error: AgentCanvasError, clock: Clock, scope: Scope, send: Send) -> None:
    """Answer the request to open one; a server that cannot say more says the sentence."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        reason = close_reason(str(error))
        await send({"type": "websocket.close", "code": _REFUSED, "reason": reason})
        return
    status, headers = problems.status_of(error), [(b"content-type", JSON.encode())]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    body = problems.to_body(error, time=clock.now())
    await send({"type": "websocket.http.response.body", "body": body})


def close_reason(sentence: str) -> str:
    """Cut a sentence to what a close frame can hold."""
    return sentence.encode()[:_REASON_BYTES].decode(errors="ignore")
