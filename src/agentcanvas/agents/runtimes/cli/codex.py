"""Codex: events of items; its own sandbox is turned off where ours holds."""

from __future__ import annotations

from typing import Any

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import KEY, Adapter, Ask, Facts, Invocation, Server
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import CODEX_KEY, OPENAI_RESPONSES
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, toml
from agentcanvas.protocol.records import ChangeStatus, Usage

FACTS = Facts(
    id="codex",
    title="Codex",
    programs=("codex",),
    install="npm install -g @openai/codex",
    oldest=(0, 100),
    tested="0.166.0",
    tested_on="2026-11-18",
    providers=(OPENAI_RESPONSES, CODEX_KEY),
    login=("login",),
    credentials=(".codex/auth.json",),
    hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
    totals=("input_tokens", "output_tokens", "cache_read"),
    lacks=("a limit on turns of its own",),
)

_STATUS = {
    "add": ChangeStatus.ADDED,
    "update": ChangeStatus.MODIFIED,
    "delete": ChangeStatus.DELETED,
}
_SCHEMA = ".codex/answer.schema.json"


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin; everything else is in its private config.toml."""
    flags = ["--json", "--disable", "plugins", "--skip-git-repo-check"]
    if ask.confined:
        flags.append("--dangerously-bypass-approvals-and-sandbox")
    else:
        flags += ["--sandbox", "workspace-write" if ask.writable else "read-only"]
    if ask.model.model:
        flags += ["-m", ask.model.model]
    for image in ask.images:
        flags += ["-i", str(image)]
    files = {".codex/config.toml": _config(ask)}
    if ask.schema is not None and _is_strict(ask.schema):
        files[_SCHEMA] = as_json(ask.schema)
        flags += ["--output-schema", str(ask.home / _SCHEMA)]
    resume = ("resume", *flags, ask.resume) if ask.resume else tuple(flags)
    env = {"CODEX_HOME": str(ask.home / ".codex")}
    if ask.model.key:
        env[KEY] = ask.model.key
    return Invocation(argv=("codex", "exec", *resume, "-"), env=env, stdin=ask.prompt, files=files)


def _config(ask: Ask) -> str:
    lines = [
        "check_for_update_on_startup = false",
        'history = {"persistence" = "none"}',
        "analytics = {enabled = false}",
    ]
    if ask.system:
        lines.append(f"developer_instructions = {toml(ask.system)}")
    if ask.model.key:
        provider = {
            "name": "agentcanvas",
            "base_url": ask.model.url,
            "env_key": KEY,
            "wire_api": "responses",
            "request_max_retries": ask.retries,
            "stream_max_retries": ask.retries,
        }
        lines += [
            'model_provider = "agentcanvas"',
            f"model_providers = {toml({'agentcanvas': provider})}",
            f"shell_environment_policy = {toml({'exclude': [KEY]})}",
        ]
    if ask.servers:
        servers = {server.name: _server(server) for server in ask.servers}
        lines.append(f"mcp_servers = {toml(servers)}")
    return "\n".join(lines) + "\n"


def _server(server: Server) -> dict[str, Any]:
    if server.url:
        return {"url": server.url, "http_headers": dict(server.headers)}
    command, *words = server.command
    return {"command": command, "args": words, "env": dict(server.env)}


def _is_strict(schema: Any) -> bool:
    """Whether OpenAI takes a schema: closed objects that need all they name."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        named = set(properties) if isinstance(properties, dict) else set()
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != named:
            return False
    return all(map(_is_strict, schema.values()))


class CodexReader(JsonReader):
    """Reads ``codex exec --json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one event."""
        heard = self.heard
        match js.text(message, "type"):
            case "thread.started":
                heard.begin(js.text(message, "thread_id"))
            case "item.started":
                self._started(js.at(message, "item"))
            case "item.completed":
                self._completed(js.at(message, "item"))
            case "turn.started" | "item.updated":
                pass
            case "turn.completed":
                heard.count(_usage(message), more=True)
                heard.recover()
                heard.end()
            case "turn.failed":
                heard.fail(js.text(message, "error", "message") or "the turn failed")
            case "error":
                self._error(js.text(message, "message"))
            case _:
                return False
        return True

    def _error(self, message: str) -> None:
        """An error at the top may be a notice that it tries again."""
        if message.startswith("Reconnecting"):
            attempt = message.partition("...")[2].strip().partition("/")[0]
            self.heard.retry(int(attempt) if attempt.isdecimal() else 1, message)
        else:
            self.heard.fail(message or "it says there was an error")

    def _started(self, item: Any) -> None:
        match js.text(item, "type"):
            case "command_execution":
                given = {"command": js.text(item, "command")}
                self.heard.call("shell", js.text(item, "id"), given)
            case "mcp_tool_call":
                name = f"{js.text(item, 'server')}.{js.text(item, 'tool')}"
                self.heard.call(name, js.text(item, "id"), js.at(item, "arguments"))

    def _completed(self, item: Any) -> None:
        heard, item_id = self.heard, js.text(item, "id")
        went_wrong = js.text(item, "status") in {"failed", "declined"}
        match js.text(item, "type"):
            case "agent_message":
                heard.say(js.text(item, "text"), item_id)
            case "reasoning":
                heard.think(js.text(item, "text"))
            case "command_execution":
                code = js.whole(item, "exit_code")
                heard.result(
                    js.text(item, "aggregated_output"),
                    item_id,
                    exit_code=code,
                    failed=went_wrong or bool(code),
                )
            case "mcp_tool_call":
                heard.result(js.words(js.at(item, "result")), item_id, failed=went_wrong)
            case "file_change":
                for change in js.entries(item, "changes") if not went_wrong else ():
                    kind = _STATUS.get(js.text(change, "kind"), ChangeStatus.MODIFIED)
                    heard.change(js.text(change, "path"), kind)
            case "error":
                heard.aside(js.text(item, "message"))


def _usage(message: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=js.count(message, "usage", "input_tokens"),
        output_tokens=js.count(message, "usage", "output_tokens"),
        cache_read=js.count(message, "usage", "cached_input_tokens"),
    )


def _reader(heard: Heard) -> CodexReader:
    return CodexReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
