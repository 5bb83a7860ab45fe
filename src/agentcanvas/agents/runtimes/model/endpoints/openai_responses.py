"""OpenAI's responses. Nothing is kept at the endpoint: each call brings the whole conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from agentcanvas.agents.runtimes.model.conversation import Call, Done, Entry, Reply, Said
from agentcanvas.agents.runtimes.model.endpoint import Address, Hear, Request
from agentcanvas.agents.runtimes.model.endpoints.openai_client import client_for, tokens, told_apart
from agentcanvas.agents.tools import Tool
from agentcanvas.protocol.records import Usage

_ENDS = {"response.completed", "response.incomplete", "response.failed"}


class Responses:
    """An endpoint at ``/responses``."""

    def __init__(self, address: Address) -> None:
        self._client = client_for(address)

    async def close(self) -> None:
        """Let go of its connections."""
        await self._client.close()

    async def reply(self, request: Request, hear: Hear) -> Reply:
        """Have the model answer, piece by piece."""
        ended: Any = None
        create: Any = self._client.responses.create
        with told_apart():
            async with await create(stream=True, **_body(request)) as stream:
                async for event in stream:
                    if event.type == "response.output_text.delta":
                        hear.text(event.delta)
                    elif event.type == "response.reasoning_summary_text.delta":
                        hear.thinking(event.delta)
                    elif event.type in _ENDS:
                        ended = event.response
            return _reply(ended)


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for entry in request.entries for item in _items(entry)],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return body


def _items(entry: Entry) -> Iterator[Any]:
    match entry:
        case Said():
            yield {"role": "user", "content": list(_content(entry))}
        case Done():
            yield {
                "type": "function_call_output",
                "call_id": entry.call_id,
                "output": entry.output,
            }
        case Reply():
            yield from entry.native


def _content(said: Said) -> Iterator[dict[str, Any]]:
    yield {"type": "input_text", "text": said.text}
    for picture in said.pictures:
        url = f"data:{picture.media};base64,{picture.data}"
        yield {"type": "input_image", "image_url": url, "detail": "auto"}


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _reply(ended: Any) -> Reply:
    if ended is None:
        raise ValueError("the stream ended before the answer did")
    if ended.status == "failed":
        raise ValueError(getattr(ended.error, "message", None) or "the answer failed")
    calls = tuple(
        Call(item.call_id, item.name, item.arguments or "{}")
        for item in ended.output
        if item.type == "function_call"
    )
    return Reply(
        text=ended.output_text,
        calls=calls,
        native=tuple(item.model_dump(mode="json", exclude_none=True) for item in ended.output),
        usage=_usage(ended.usage, ended.model),
        model=ended.model or "",
        cut_off=ended.status == "incomplete",
    )


def _usage(said: Any, model: str) -> Usage:
    if said is None:
        return Usage()
    details = getattr(said, "input_tokens_details", None)
    return Usage(
        input_tokens=tokens(said.input_tokens),
        output_tokens=tokens(said.output_tokens),
        cache_read=tokens(getattr(details, "cached_tokens", None)),
        model=model or UNSET,
    )
