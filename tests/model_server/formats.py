"""The four wire formats: what a request holds, and how an answer is written, whole or streamed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.model_server.script import Call, Event, Script, Tools, call_for

Json = dict[str, Any]


class Reply(NamedTuple):
    """What the model answers: words, and perhaps a tool."""

    text: str
    call: Call | None
    script: Script
    model: str


def reply_to(script: Script, tools: Tools, model: str, *, edits_by_text: bool) -> Reply:
    """The next turn of a conversation."""
    if not tools:
        return Reply(script.as_blocks if edits_by_text else "Stub title", None, script, model)
    if script.next is None:
        return Reply(script.last_words, None, script, model)
    call = call_for(script.next, tools)
    if call is None:
        return Reply(f"STUB has no tool among {', '.join(tools)}", None, script, model)
    return Reply(f"Calling {call.name}", call, script, model)


def text_of(content: Any) -> str:
    """The text of a message, whether plain or in blocks."""
    if isinstance(content, str):
        return content
    found = [block.get("text") for block in content or () if isinstance(block, dict)]
    return "\n".join(each for each in found if isinstance(each, str))


def _id(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:20]}"


def sse(data: Any, event: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def _words(text: str) -> list[str]:
    return [f"{word} " for word in text.split(" ")[:-1]] + text.split(" ")[-1:]


# -- Anthropic -------------------------------------------------------------------------------------


class Anthropic:
    """Messages."""

    @staticmethod
    def read(body: Json) -> tuple[Script, Tools, str]:
        """Read a request: its script, its tools, and the system prompt."""
        events = []
        for message in body.get("messages", ()):
            content = message.get("content")
            if message.get("role") != "user":
                continue
            if isinstance(content, str):
                events.append(Event(is_result=False, text=content))
                continue
            results = [block for block in content if block.get("type") == "tool_result"]
            events += [Event(is_result=True)] * len(results)
            events.append(Event(is_result=False, text=text_of(content)))
        tools: Tools = {
            tool["name"]: ("function", tool.get("input_schema"))
            for tool in body.get("tools") or ()
            if "name" in tool
        }
        return Script(events), tools, text_of(body.get("system"))

    @staticmethod
    def whole(reply: Reply) -> Json:
        """An answer in one piece."""
        given, out = reply.script.tokens
        content: list[Json] = [{"type": "text", "text": reply.text}]
        if reply.call:
            content.append(
                {
                    "type": "tool_use",
                    "id": _id("toolu_"),
                    "name": reply.call.name,
                    "input": reply.call.given,
                }
            )
        return {
            "id": _id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": content,
            "stop_reason": "tool_use" if reply.call else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": given, "output_tokens": out, "cache_read_input_tokens": 5},
        }

    @staticmethod
    def streamed(reply: Reply) -> Iterator[bytes]:
        """An answer in events."""
        message = Anthropic.whole(reply)
        content, message["content"] = message["content"], []
        usage = message["usage"]
        stop, message["stop_reason"] = message["stop_reason"], None
        yield sse({"type": "message_start", "message": message}, "message_start")
        for index, block in enumerate(content):
            empty: Json = {"text": ""} if block["type"] == "text" else {"input": {}}
            start = {"type": "content_block_start", "index": index, "content_block": block | empty}
            yield sse(start, "content_block_start")
            if block["type"] == "text":
                deltas = [{"type": "text_delta", "text": word} for word in _words(block["text"])]
            else:
                given = json.dumps(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": given}]
            for delta in deltas:
                piece = {"type": "content_block_delta", "index": index, "delta": delta}
                yield sse(piece, "content_block_delta")
            yield sse({"type": "content_block_stop", "index": index}, "content_block_stop")
        end = {"stop_reason": stop, "stop_sequence": None}
        yield sse({"type": "message_delta", "delta": end, "usage": usage}, "message_delta")
        yield sse({"type": "message_stop"}, "message_stop")

    @staticmethod
    def error(status: int, words: str) -> Json:
        """A refusal."""
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        kind = kinds.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": words}}


# -- OpenAI ----------------------------------------------------------------------------------------


def _openai_error(status: int, words: str) -> Json:
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    return {"error": {"message": words, "type": "error", "param": None, "code": codes.get(status)}}


class Chat:
    """Chat completions."""

    @staticmethod
    def read(body: Json) -> tuple[Script, Tools, str]:
        """Read a request."""
        events, system = [], ""
        for message in body.get("messages", ()):
            content = text_of(message.get("content"))
            match message.get("role"):
                case "system" | "developer":
                    system += content
                case "user":
                    events.append(Event(is_result=False, text=content))
                case "tool":
                    events.append(Event(is_result=True))
        tools: Tools = {
            tool["function"]["name"]: ("function", tool["function"].get("parameters"))
            for tool in body.get("tools") or ()
            if tool.get("type") == "function"
        }
        return Script(events), tools, system

    @staticmethod
    def _usage(reply: Reply) -> Json:
        given, out = reply.script.tokens
        cached = {"cached_tokens": 5}
        total = given + out
        return {
            "prompt_tokens": given,
            "completion_tokens": out,
            "total_tokens": total,
            "prompt_tokens_details": cached,
        }

    @staticmethod
    def _call(reply: Reply) -> list[Json]:
        if not reply.call:
            return []
        function = {"name": reply.call.name, "arguments": json.dumps(reply.call.given)}
        return [{"id": _id("call_"), "type": "function", "function": function}]

    @staticmethod
    def whole(reply: Reply) -> Json:
        """An answer in one piece."""
        message: Json = {"role": "assistant", "content": reply.text}
        if calls := Chat._call(reply):
            message["tool_calls"] = calls
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        return {
            "id": _id("chatcmpl-"),
            "object": "chat.completion",
            "created": 1,
            "model": reply.model,
            "choices": [choice],
            "usage": Chat._usage(reply),
        }

    @staticmethod
    def streamed(reply: Reply) -> Iterator[bytes]:
        """An answer in chunks; the last one counts."""
        base = {
            "id": _id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": 1,
            "model": reply.model,
        }

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            return sse(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for word in _words(reply.text):
            yield chunk({"content": word})
        calls = Chat._call(reply)
        for call in calls:
            yield chunk({"tool_calls": [{"index": 0, **call}]})
        yield chunk({}, "tool_calls" if calls else "stop")
        yield sse(base | {"choices": [], "usage": Chat._usage(reply)})
        yield sse("[DONE]")

    error = staticmethod(_openai_error)


class Responses:
    """Responses, with the custom tools of Codex."""

    @staticmethod
    def read(body: Json) -> tuple[Script, Tools, str]:
        """Read a request."""
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
        events = []
        tools = _flat(body.get("tools"))
        for item in items:
            kind = item.get("type", "message")
            if kind == "message" and item.get("role") == "user":
                events.append(Event(is_result=False, text=text_of(item.get("content"))))
            elif kind.endswith("_call_output"):
                events.append(Event(is_result=True))
            elif kind == "additional_tools":
                tools |= _flat(item.get("tools"))
        return Script(events), tools, str(body.get("instructions") or "")

    @staticmethod
    def whole(reply: Reply) -> Json:
        """An answer in one piece."""
        given, out = reply.script.tokens
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        output: list[Json] = [
            {
                "type": "message",
                "id": _id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        ]
        if reply.call:
            output.append(_responses_call(reply.call))
        return {
            "id": _id("resp_"),
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": reply.model,
            "output": output,
            "usage": {
                "input_tokens": given,
                "input_tokens_details": {"cached_tokens": 5},
                "output_tokens": out,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": given + out,
            },
        }

    @staticmethod
    def streamed(reply: Reply) -> Iterator[bytes]:
        """An answer in events."""
        whole = Responses.whole(reply)
        begun = whole | {"status": "in_progress", "output": [], "usage": None}
        number = iter(range(1_000))

        def event(kind: str, **more: Any) -> bytes:
            return sse({"type": kind, "sequence_number": next(number), **more}, kind)

        yield event("response.created", response=begun)
        for index, item in enumerate(whole["output"]):
            place = {"output_index": index}
            yield event("response.output_item.added", item=item, **place)
            if item["type"] == "message":
                part = {"item_id": item["id"], "content_index": 0, **place}
                for word in _words(reply.text):
                    yield event("response.output_text.delta", delta=word, **part)
                yield event("response.output_text.done", text=reply.text, **part)
            yield event("response.output_item.done", item=item, **place)
        yield event("response.completed", response=whole)

    error = staticmethod(_openai_error)


def _flat(tools: Any, inside: str = "") -> Tools:
    found: Tools = {}
    for tool in tools or ():
        match tool.get("type"):
            case "function":
                found[inside + tool["name"]] = ("function", tool.get("parameters"))
            case "custom":
                found[inside + tool["name"]] = ("custom", None)
            case "namespace":
                found |= _flat(tool.get("tools"), f"{tool['name']}.")
            case "local_shell":
                found["local_shell"] = ("local_shell", None)
    return found


def _responses_call(call: Call) -> Json:
    inside, _, name = call.name.rpartition(".")
    common = {"id": _id("fc_"), "call_id": _id("call_"), "status": "completed"}
    if inside:
        common["namespace"] = inside
    if call.kind == "custom":
        return {"type": "custom_tool_call", "name": name, "input": call.given, **common}
    if call.kind == "local_shell":
        action = {"type": "exec", "command": ["bash", "-lc", call.given], "env": {}}
        return {"type": "local_shell_call", "action": action, **common}
    given = json.dumps(call.given)
    return {"type": "function_call", "name": name, "arguments": given, **common}


# -- Gemini ----------------------------------------------------------------------------------------


class Gemini:
    """generateContent."""

    @staticmethod
    def read(body: Json) -> tuple[Script, Tools, str]:
        """Read a request."""
        events = []
        for content in body.get("contents") or ():
            parts = content.get("parts") or ()
            events += [Event(is_result=True) for part in parts if "functionResponse" in part]
            if content.get("role", "user") == "user":
                events.append(Event(is_result=False, text=text_of(parts)))
        tools: Tools = {}
        for tool in body.get("tools") or ():
            for each in tool.get("functionDeclarations") or ():
                schema = each.get("parametersJsonSchema") or each.get("parameters")
                tools[each["name"]] = ("function", schema)
        return Script(events), tools, ""

    @staticmethod
    def whole(reply: Reply) -> Json:
        """An answer in one piece."""
        given, out = reply.script.tokens
        parts: list[Json] = [{"text": reply.text}]
        if reply.call:
            call = {"id": _id("fc_"), "name": reply.call.name, "args": reply.call.given}
            parts.append({"functionCall": call, "thoughtSignature": "c3R1Yg=="})
        candidate = {
            "content": {"role": "model", "parts": parts},
            "index": 0,
            "finishReason": "STOP",
        }
        return {
            "candidates": [candidate],
            "modelVersion": reply.model,
            "responseId": "stub",
            "usageMetadata": {
                "promptTokenCount": given,
                "candidatesTokenCount": out,
                "totalTokenCount": given + out,
                "cachedContentTokenCount": 5,
            },
        }

    @staticmethod
    def streamed(reply: Reply) -> Iterator[bytes]:
        """An answer in one event: clients take it."""
        yield sse(Gemini.whole(reply))

    @staticmethod
    def error(status: int, words: str) -> Json:
        """A refusal."""
        kinds = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        kind = kinds.get(status, "INTERNAL")
        return {"error": {"code": status, "message": words, "status": kind}}
