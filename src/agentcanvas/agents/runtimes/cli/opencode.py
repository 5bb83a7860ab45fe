"""opencode: parts of messages; a tool is told when it is finished, and no event ends the turn."""

from __future__ import annotations

from typing import Any

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import KEY, Adapter, Ask, Facts, Invocation, Server
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, with_system
from agentcanvas.protocol.records import Usage

FACTS = Facts(
    id="opencode",
    title="opencode",
    programs=("opencode",),
    install="npm install -g opencode-ai",
    oldest=(1, 0),
    tested="1.18.33",
    tested_on="2026-11-18",
    providers=(ANTHROPIC, OPENAI),
    login=("auth", "login"),
    credentials=(".local/share/opencode/auth.json",),
    hosts=("opencode.ai", "*.opencode.ai", "api.anthropic.com", "api.openai.com"),
    lacks=("a limit on turns that holds", "a JSON Schema for its answer"),
)

_PROVIDER = "agentcanvas"
_USUAL = {Api.ANTHROPIC: "claude-sonnet-4-5", Api.CHAT: "gpt-5.5"}
_WRITERS = {"write": "filePath", "edit": "filePath"}
_CONTEXT, _OUTPUT = 200_000, 16_000
_CONFIG = ".config/opencode/opencode.json"


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin."""
    argv = ["opencode", "run", "--format", "json"]
    if ask.confined:
        argv.append("--auto")
    config: dict[str, Any] = {"autoupdate": False, "share": "disabled"}
    model = ask.model.model
    env = {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_CONFIG": str(ask.home / _CONFIG),
    }
    if ask.model.key:
        model = model or _USUAL.get(ask.model.api, _USUAL[Api.CHAT])
        config["provider"] = {_PROVIDER: _provider(ask, model)}
        model = f"{_PROVIDER}/{model}"
        config |= {"model": model, "small_model": model}
        env[KEY] = ask.model.key
    if model:
        argv += ["-m", model]
    if ask.resume:
        argv += ["--session", ask.resume]
    for image in ask.images:
        argv += ["--file", str(image)]
    if ask.servers:
        config["mcp"] = {server.name: _server(server) for server in ask.servers}
    files = {_CONFIG: as_json(config)}
    # A new session only: one that goes on has heard it.
    prompt = ask.prompt if ask.resume else with_system(ask)
    return Invocation(argv=tuple(argv), env=env, stdin=prompt, files=files)


def _provider(ask: Ask, model: str) -> dict[str, Any]:
    is_anthropic = ask.model.api is Api.ANTHROPIC
    return {
        "npm": "@ai-sdk/anthropic" if is_anthropic else "@ai-sdk/openai-compatible",
        "options": {
            "baseURL": f"{ask.model.url}/v1" if is_anthropic else ask.model.url,
            "apiKey": f"{{env:{KEY}}}",
        },
        "models": {model: {"limit": {"context": _CONTEXT, "output": _OUTPUT}}},
    }


def _server(server: Server) -> dict[str, Any]:
    if server.url:
        return {
            "type": "remote",
            "url": server.url,
            "headers": dict(server.headers),
            "enabled": True,
        }
    return {
        "type": "local",
        "command": list(server.command),
        "environment": dict(server.env),
        "enabled": True,
    }


class OpencodeReader(JsonReader):
    """Reads ``run --format json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one event."""
        heard, part = self.heard, js.at(message, "part")
        heard.begin(js.text(message, "sessionID"))
        match js.text(message, "type"):
            case "step_start":
                pass
            case "text":
                heard.say(js.text(part, "text"), js.text(part, "messageID"))
            case "reasoning":
                heard.think(js.text(part, "text"))
            case "tool_use":
                self._tool(part)
            case "step_finish":
                heard.count(_usage(part), more=True)
                if js.text(part, "reason") == "stop":
                    heard.recover()
                    heard.end()
            case "error":
                self._error(js.at(message, "error"))
            case _:
                return False
        return True

    def _tool(self, part: Any) -> None:
        heard, state = self.heard, js.at(part, "state")
        name, call_id, given = js.text(part, "tool"), js.text(part, "callID"), js.at(state, "input")
        failed = js.text(state, "status") == "error"
        path = js.text(given, _WRITERS.get(name, ""))
        existed = js.at(state, "metadata", "exists")
        heard.call(name, call_id, given, writes=path)
        said = js.words(js.at(state, "output")) or js.text(state, "error")
        if failed and "rejected permission" in said:
            heard.deny(name)
        heard.result(
            said,
            call_id,
            exit_code=js.whole(state, "metadata", "exit"),
            failed=failed,
            adds=None if existed is None else existed is False,
        )

    def _error(self, error: Any) -> None:
        said = js.text(error, "data", "message") or js.text(error, "name") or "it failed"
        self.heard.fail(said, js.whole(error, "data", "statusCode"))


def _usage(part: Any) -> Usage:
    """Its input is without what came from the cache."""
    fresh, cached = js.count(part, "tokens", "input"), js.count(part, "tokens", "cache", "read")
    cost = js.amount(part, "cost")
    usage = Usage(
        input_tokens=(fresh or 0) + (cached or 0),
        output_tokens=js.count(part, "tokens", "output"),
        cache_read=cached,
        cache_write=js.count(part, "tokens", "cache", "write"),
    )
    # It says 0 of a model whose price it does not know.
    return Usage(**{**_fields(usage), "cost": cost}) if cost else usage


def _fields(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def _reader(heard: Heard) -> OpencodeReader:
    return OpencodeReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
