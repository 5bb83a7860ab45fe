"""The server: picks the format by the path, checks the key, and remembers what it was asked."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.model_server.formats import Anthropic, Chat, Gemini, Responses, reply_to

KEY = "stub-key-0123456789"
"""The only key that is let in."""

_GEMINI = re.compile(r"/models/([^/:]+):(\w+)$")
_MODELS = ("stub-model", "claude-sonnet-4-5", "gpt-5.5", "gemini-2.5-pro")


class ModelServer:
    """A running one; ``requests`` are the bodies it got, ``keys`` what came in the key's place."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.hangs = threading.Event()
        """Set when a request waits for an answer that never comes."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: Request) -> Response:
        """Answer any request."""
        path = request.url.path.rstrip("/")
        if request.method == "GET":
            return self._models() if path.endswith("/models") else PlainTextResponse("stub")
        gemini = _GEMINI.search(path)
        kind: Any = None
        if path.endswith("/messages"):
            kind = Anthropic
        elif path.endswith("/chat/completions"):
            kind = Chat
        elif path.endswith("/responses"):
            kind = Responses
        elif gemini and "enerateContent" in gemini[2]:
            kind = Gemini
        if kind is None:
            counts = path.endswith("count_tokens") or (gemini and gemini[2] == "countTokens")
            tokens = {"input_tokens": 10, "totalTokens": 10}
            return JSONResponse(tokens) if counts else PlainTextResponse("no such path", 404)
        return await self._reply(kind, request, gemini)

    async def _reply(self, kind: Any, request: Request, gemini: re.Match[str] | None) -> Response:
        body = await request.json()
        key = _key(request)
        script, tools, system = kind.read(body)
        if key != KEY:
            return JSONResponse(kind.error(401, "invalid api key (stub)"), 401)
        self.requests.append(body)
        self.keys.append(key)
        if script.error:
            status, words = script.error
            return JSONResponse(kind.error(status, words), status)
        if script.said("HANG") is not None and script.next is None:
            self.hangs.set()
            await anyio.sleep_forever()
        if seconds := script.said("SLEEP"):
            await anyio.sleep(float(seconds))
        model = gemini[1] if gemini else str(body.get("model", "stub-model"))
        by_text = "SEARCH/REPLACE" in system
        reply = reply_to(script, tools, model, edits_by_text=by_text)
        streams = gemini[2].startswith("stream") if gemini else body.get("stream")
        if not streams:
            return JSONResponse(kind.whole(reply))
        return StreamingResponse(kind.streamed(reply), media_type="text/event-stream")

    def _models(self) -> Response:
        names = [{"id": name, "object": "model", "type": "model"} for name in _MODELS]
        return JSONResponse({"object": "list", "data": names, "has_more": False})


def _key(request: Request) -> str:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    headers = request.headers
    return bearer or headers.get("x-api-key") or headers.get("x-goog-api-key") or ""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Run one in a thread of its own, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stub = ModelServer(int(listener.getsockname()[1]))
        app = Starlette(routes=[Route("/{path:path}", stub.answer, methods=["GET", "POST"])])
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)
