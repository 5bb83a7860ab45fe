"""OpenAI's chat completions, which most other endpoints speak as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from agentcanvas.agents.runtimes.model.conversation import Call, Done, Entry, Reply, Said
from agentcanvas.agents.runtimes.model.endpoint import Address, Hear, Request
from agentcanvas.agents.runtimes.model.endpoints.openai_client import client_for, tokens, told_apart
from agentcanvas.agents.tools import Tool
from agentcanvas.protocol.records import Usage


class Chat:
    """An endpoint at ``/chat/completions``."""

    def __init__(self, address: Address) -> None:
        self._client = client_for(address)

    async def close(self) -> None:
        """Let go of its connections."""
        await self._client.close()

    async def reply(self, request: Request, hear: Hear) -> Reply:
        """Have the model answer, piece by piece."""
        gathering = _Gathering(hear)
        create: Any = self._client.chat.completions.create
        with told_apart():
            async with await create(stream=True, **_body(request)) as stream:
                async for chunk in stream:
                    gathering.take(chunk)
            return gathering.reply()


def _body(request: Request) -> dict[str, Any]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [*system, *(_message(entry) for entry in request.entries)],
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.max_output_tokens is not None:
        body["max_completion_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return body


def _message(entry: Entry) -> dict[str, Any]:
    match entry:
        case Said():
            return {"role": "user", "content": list(_content(entry)) or ""}
        case Done():
            return {"role": "tool", "tool_call_id": entry.call_id, "content": entry.output}
        case Reply():
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in entry.calls
            ]
            said = {"role": "assistant", "content": entry.text or None}
            return {**said, "tool_calls": calls} if calls else said


def _content(said: Said) -> Iterator[dict[str, Any]]:
    yield {"type": "text", "text": said.text}
    for picture in said.pictures:
        url = f"data:{picture.media};base64,{picture.data}"
        yield {"type": "image_url", "image_url": {"url": url}}


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


class _Gathering:
    """Puts a reply together from its pieces."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._usage = Usage()
        self._model = ""
        self._end: str | None = None

    def take(self, chunk: Any) -> None:
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage, self._model)
        for choice in chunk.choices or ():
            self._end = choice.finish_reason or self._end
            delta = choice.delta
            # Not in OpenAI's own protocol, but what many compatible endpoints call it.
            if thought := getattr(delta, "reasoning_content", None):
                self._hear.thinking(thought)
            if words := delta.content or getattr(delta, "refusal", None):
                self._text.append(words)
                self._hear.text(words)
            for piece in delta.tool_calls or ():
                self._take_call(piece)

    def _take_call(self, piece: Any) -> None:
        call = self._calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
        call["id"] = piece.id or call["id"]
        if piece.function is not None:
            call["name"] = piece.function.name or call["name"]
            call["arguments"] += piece.function.arguments or ""

    def reply(self) -> Reply:
        if self._end is None:
            raise ValueError("the stream ended before the answer did")
        calls = tuple(
            Call(call["id"] or f"call-{index}", call["name"], call["arguments"] or "{}")
            for index, call in sorted(self._calls.items())
        )
        return Reply(
            text="".join(self._text),
            calls=calls,
            usage=self._usage,
            model=self._model,
            cut_off=self._end == "length",
        )


def _usage(said: Any, model: str) -> Usage:
    details = getattr(said, "prompt_tokens_details", None)
    return Usage(
        input_tokens=tokens(said.prompt_tokens),
        output_tokens=tokens(said.completion_tokens),
        cache_read=tokens(getattr(details, "cached_tokens", None)),
        model=model or UNSET,
    )
