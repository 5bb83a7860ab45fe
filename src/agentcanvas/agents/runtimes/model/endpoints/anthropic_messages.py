"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import anthropic
import httpx2
from msgspec import UNSET, UnsetType

from agentcanvas.agents.runtimes.model.conversation import Call, Done, Entry, Reply, Said
from agentcanvas.agents.runtimes.model.endpoint import (
    ENOUGH_OUTPUT_TOKENS,
    Address,
    Hear,
    Request,
)
from agentcanvas.agents.runtimes.model.endpoints import failures
from agentcanvas.agents.tools import Tool
from agentcanvas.protocol.records import Usage


class Messages:
    """An endpoint at ``/v1/messages``."""

    def __init__(self, address: Address) -> None:
        # It does not try again by itself: the runtime does, and says so.
        self._client = anthropic.AsyncAnthropic(
            api_key=address.key, base_url=address.url, max_retries=0
        )

    async def close(self) -> None:
        """Let go of its connections."""
        await self._client.close()

    async def reply(self, request: Request, hear: Hear) -> Reply:
        """Have the model answer, piece by piece."""
        ask: Any = self._client.messages.stream
        try:
            async with ask(**_body(request)) as stream:
                async for event in stream:
                    if event.type == "text":
                        hear.text(event.text)
                    elif event.type == "thinking":
                        hear.thinking(event.thinking)
                return _reply(await stream.get_final_message())
        except anthropic.APIStatusError as error:
            raise failures.of_status(error) from error
        except anthropic.APIConnectionError as error:
            timed_out = isinstance(error, anthropic.APITimeoutError)
            raise failures.of_connection(error, timed_out=timed_out) from error
        except (
            anthropic.AnthropicError,
            httpx2.HTTPError,
            AssertionError,  # the client's own, where a stream lacks its beginning or its end
            *failures.NOT_UNDERSTOOD,
        ) as error:
            raise failures.of_stream(error) from error


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or ENOUGH_OUTPUT_TOKENS,
        "messages": list(_messages(request.entries)),
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return body


def _messages(entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """What tools gave back goes into one message, as the endpoint wants it."""
    results: list[dict[str, Any]] = []
    for entry in entries:
        if isinstance(entry, Done):
            results.append(
                {
                    "type": "tool_result",
                    "tool_use_id": entry.call_id,
                    "content": entry.output,
                    "is_error": entry.failed,
                }
            )
            continue
        if isinstance(entry, Said):
            yield {"role": "user", "content": [*results, *_content(entry)]}
            results = []
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        yield {"role": "assistant", "content": list(entry.native) or entry.text}
    if results:
        yield {"role": "user", "content": results}


def _content(said: Said) -> Iterator[dict[str, Any]]:
    for picture in said.pictures:
        source = {"type": "base64", "media_type": picture.media, "data": picture.data}
        yield {"type": "image", "source": source}
    yield {"type": "text", "text": said.text}


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


def _reply(message: Any) -> Reply:
    if message.stop_reason is None:
        raise ValueError("the stream ended before the answer did")
    blocks = message.content
    calls = tuple(
        Call(block.id, block.name, json.dumps(block.input))
        for block in blocks
        if block.type == "tool_use"
    )
    return Reply(
        text="".join(block.text for block in blocks if block.type == "text"),
        calls=calls,
        native=tuple(_native(block) for block in blocks),
        usage=_usage(message.usage, message.model),
        model=message.model,
        cut_off=message.stop_reason == "max_tokens",
    )


def _native(block: Any) -> dict[str, Any]:
    """A block as it may be sent back: without what the client added to it."""
    plain: dict[str, Any] = block.model_dump(mode="json", exclude_none=True)
    wanted = {
        "text": ("type", "text"),
        "tool_use": ("type", "id", "name", "input"),
    }.get(block.type)
    return {name: plain[name] for name in wanted} if wanted else plain


def _usage(said: Any, model: str) -> Usage:
    return Usage(
        input_tokens=_tokens(said.input_tokens),
        output_tokens=_tokens(said.output_tokens),
        cache_read=_tokens(said.cache_read_input_tokens),
        cache_write=_tokens(said.cache_creation_input_tokens),
        model=model or UNSET,
    )


def _tokens(count: Any) -> int | UnsetType:
    return count if isinstance(count, int) and count >= 0 else UNSET
