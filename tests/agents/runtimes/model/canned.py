"""An endpoint that plays back what was put in, byte for byte, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct


class Asked(Struct, frozen=True):
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Any


class Canned(Struct, frozen=True):
    """An answer; ``broken`` closes the connection in the middle of it."""

    body: str
    status: int = 200
    media: str = "text/event-stream"
    headers: Mapping[str, str] = {}
    broken: bool = False


class CannedEndpoint:
    """Answers one request after the other, in the order of ``answers``."""

    def __init__(self, answers: Iterable[Canned]) -> None:
        self._answers = list(answers)
        self.asked: list[Asked] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            request, *lines = head.split("\r\n")
            headers = {
                name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
            }
            raw = await reader.readexactly(int(headers.get("content-length", 0)))
            self.asked.append(Asked(request.split()[1], headers, json.loads(raw)))
            answer = self._answers.pop(0)
            body = answer.body.encode()
            more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
            length = len(body) + (100 if answer.broken else 0)
            writer.write(
                f"HTTP/1.1 {answer.status} X\r\ncontent-type: {answer.media}\r\n"
                f"content-length: {length}\r\nconnection: close\r\n{more}\r\n".encode()
                + body
            )
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: Canned) -> AsyncIterator[CannedEndpoint]:
    """Serve on this machine until the block ends."""
    endpoint = CannedEndpoint(answers)
    server = await asyncio.start_server(endpoint.handle, "127.0.0.1", 0)
    endpoint.port = server.sockets[0].getsockname()[1]
    try:
        yield endpoint
    finally:
        server.close()
        await server.wait_closed()


def refusal(status: int, message: str, code: str = "", **headers: str) -> Canned:
    """An error as OpenAI and Anthropic both word it."""
    body = {"type": "error", "error": {"type": code, "code": code, "message": message}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Canned(json.dumps(body), status, "application/json", named)


def chat(*deltas: Mapping[str, Any], end: str | None = "stop") -> Canned:
    """A stream of chat completions."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "stub-1"}
    chunks = [{**base, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if end:
        chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 5},
        }
        chunks.append({**base, "choices": [], "usage": usage})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Canned("".join([*lines, "data: [DONE]\n\n"] if end else lines))


def chat_call(name: str, **arguments: Any) -> Canned:
    """A chat completion that wants a tool, its arguments in two pieces."""
    said = json.dumps(arguments)
    function = {"name": name, "arguments": said[:5]}
    first = {"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": function}]}
    rest = {"tool_calls": [{"index": 0, "function": {"arguments": said[5:]}}]}
    return chat(first, rest, end="tool_calls")


def responses(*output: Mapping[str, Any], status: str = "completed", text: str = "") -> Canned:
    """A stream of the responses protocol."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 5},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    response = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "stub-1",
        "status": status,
        "output": list(output),
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": {"code": "server_error", "message": "it broke"} if status == "failed" else None,
    }
    events: list[Mapping[str, Any]] = [
        {
            "type": "response.output_text.delta",
            "item_id": "m1",
            "output_index": 0,
            "content_index": 0,
            "delta": text,
            "sequence_number": 1,
            "logprobs": [],
        },
        {"type": f"response.{status}", "sequence_number": 2, "response": response},
    ]
    return Canned("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events))


def message_item(text: str) -> dict[str, Any]:
    """An answer in the responses protocol."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def messages(*blocks: Mapping[str, Any], stop: str | None = "end_turn") -> Canned:
    """A stream of Anthropic's messages; a block's text or input comes in one piece."""
    usage = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 5}
    start: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "stub-1",
        "content": [],
        "stop_reason": None,
        "usage": usage,
    }
    events: list[Mapping[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        empty, delta = _halves(block)
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            *({"type": "content_block_delta", "index": index, "delta": each} for each in delta),
            {"type": "content_block_stop", "index": index},
        ]
    if stop:
        end = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}})
        events.append({"type": "message_stop"})
    return Canned("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events))


def _halves(block: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            return (
                {**block, "thinking": "", "signature": ""},
                [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ],
            )
        case _:
            said = json.dumps(block["input"])
            return (
                {**block, "input": {}},
                [{"type": "input_json_delta", "partial_json": said}],
            )
