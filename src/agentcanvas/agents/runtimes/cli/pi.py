"""pi: repeats the whole message with every word; what counts is said at the ends."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import KEY, Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json
from agentcanvas.protocol.records import Usage

FACTS = Facts(
    id="pi",
    title="pi",
    programs=("pi",),
    install="npm install -g @earendil-works/pi-coding-agent",
    oldest=(0, 70),
    tested="0.74.2",
    tested_on="2026-11-18",
    node=(20,),
    providers=(ANTHROPIC, OPENAI),
    credentials=(".pi/agent/auth.json",),
    hosts=("api.anthropic.com", "api.openai.com"),
    speaks_mcp=False,
    lacks=("MCP servers", "a limit on turns", "a JSON Schema for its answer"),
)

_PROVIDER = "agentcanvas"
_USUAL = {Api.ANTHROPIC: "claude-sonnet-4-5", Api.CHAT: "gpt-5.5"}
_APIS = {Api.ANTHROPIC: "anthropic-messages", Api.CHAT: "openai-completions"}
_WRITERS = {"write": True, "edit": False}
_QUIET = {
    "agent_start",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "tool_execution_update",
    "auto_retry_end",
    "agent_settled",
    "queue_update",
}


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin."""
    argv = ["pi", "--mode", "json", "-p"]
    env = {"PI_OFFLINE": "1"}
    files = {}
    model = ask.model
    if model.key:
        name = model.model or _USUAL.get(model.api, _USUAL[Api.CHAT])
        provider = {
            "baseUrl": model.url,
            "apiKey": KEY,
            "api": _APIS.get(model.api, _APIS[Api.CHAT]),
            "models": [{"id": name}],
        }
        files[".pi/agent/models.json"] = as_json({"providers": {_PROVIDER: provider}})
        argv += ["--provider", _PROVIDER, "--model", name]
        env[KEY] = model.key
    elif model.model:
        argv += ["--model", model.model]
    if ask.system:
        argv += ["--append-system-prompt", ask.system]
    if ask.resume:
        argv += ["--session", ask.resume]
    argv += [f"@{image}" for image in ask.images]
    settings = {"retry": {"enabled": True, "maxRetries": ask.retries}}
    files[".pi/agent/settings.json"] = as_json(settings)
    return Invocation(argv=tuple(argv), env=env, stdin=ask.prompt, files=files)


class PiReader(JsonReader):
    """Reads ``--mode json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one event."""
        heard = self.heard
        kind = js.text(message, "type")
        match kind:
            case "session":
                heard.begin(js.text(message, "id"))
            case "message_end":
                self._message(js.at(message, "message"))
            case "tool_execution_start":
                name, given = js.text(message, "toolName"), js.at(message, "args")
                path = js.text(given, "path") if name in _WRITERS else ""
                call_id, adds = js.text(message, "toolCallId"), _WRITERS.get(name, False)
                heard.call(name, call_id, given, writes=path, adds=adds)
            case "tool_execution_end":
                said = js.words(js.at(message, "result", "content"))
                failed = js.flag(message, "isError")
                heard.result(said, js.text(message, "toolCallId"), failed=failed)
            case "auto_retry_start":
                wait = js.amount(message, "delayMs")
                reason = js.text(message, "errorMessage") or "the model did not answer"
                heard.retry(js.whole(message, "attempt"), reason, wait)
                heard.recover()
            case "agent_end":
                if heard.failure is None:
                    heard.end()
            case _:
                return kind in _QUIET
        return True

    def _message(self, message: Any) -> None:
        heard = self.heard
        if js.text(message, "role") != "assistant":
            return
        for block in js.entries(message, "content"):
            match js.text(block, "type"):
                case "text":
                    heard.say(js.text(block, "text"), js.text(message, "responseId"))
                case "thinking":
                    heard.think(js.text(block, "thinking"))
        heard.begin("", js.text(message, "model"))
        heard.count(_usage(message), more=True)
        if js.text(message, "stopReason") in {"error", "aborted"}:
            heard.fail(js.text(message, "errorMessage") or "the model call failed")
        else:
            heard.recover()


def _usage(message: Any) -> Usage:
    fresh, cached = js.count(message, "usage", "input"), js.count(message, "usage", "cacheRead")
    cost = js.amount(message, "usage", "cost", "total")
    return Usage(
        input_tokens=(fresh or 0) + (cached or 0),
        output_tokens=js.count(message, "usage", "output"),
        cache_read=cached,
        cache_write=js.count(message, "usage", "cacheWrite"),
        cost=cost or UNSET,  # it says 0 of a model whose price it does not know
    )


def _reader(heard: Heard) -> PiReader:
    return PiReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
