"""Claude Code: a stream of JSON that tells nearly everything, and retries even a wrong key."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, CLAUDE_TOKEN
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, servers_as_json, with_images
from agentcanvas.protocol.records import FailureClass, Usage

FACTS = Facts(
    id="claude",
    title="Claude Code",
    programs=("claude",),
    install="npm install -g @anthropic-ai/claude-code",
    oldest=(2, 0),
    tested="2.1.325",
    tested_on="2026-11-18",
    providers=(ANTHROPIC, CLAUDE_TOKEN),
    login=("auth", "login"),
    credentials=(".claude/.credentials.json", ".claude.json"),
    hosts=("api.anthropic.com", "console.anthropic.com", "claude.ai", "platform.claude.com"),
)

_WRITERS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path"}
_WRITERS |= {"NotebookEdit": "notebook_path"}
_ENDINGS = {"error_max_turns": FailureClass.TURN_LIMIT}
_SERVERS = ".agentcanvas/mcp.json"


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin."""
    argv = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
    # As root it refuses to skip its questions, unless it is told that something else confines it.
    if ask.confined:
        argv.append("--dangerously-skip-permissions")
    else:
        argv += ["--permission-mode", "acceptEdits"]
    if ask.model.model:
        argv += ["--model", ask.model.model]
    if ask.system:
        argv += ["--append-system-prompt", ask.system]
    if ask.max_turns:
        argv += ["--max-turns", str(ask.max_turns)]
    argv += ["--resume", ask.resume] if ask.resume else ["--session-id", ask.session]
    files = {}
    if ask.servers:
        files[_SERVERS] = as_json({"mcpServers": servers_as_json(ask.servers)})
        argv += ["--mcp-config", str(ask.home / _SERVERS), "--strict-mcp-config"]
    env = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(ask.retries),
        # It hides the tools of MCP servers until it searches for them; ours are few.
        "ENABLE_TOOL_SEARCH": "false",
    }
    if ask.confined:
        env["IS_SANDBOX"] = "1"
    if ask.model.key:
        bearer = ask.model.service == CLAUDE_TOKEN.key_env
        env["ANTHROPIC_BASE_URL"] = ask.model.url
        env["ANTHROPIC_AUTH_TOKEN" if bearer else "ANTHROPIC_API_KEY"] = ask.model.key
    return Invocation(argv=tuple(argv), env=env, stdin=with_images(ask), files=files)


class ClaudeReader(JsonReader):
    """Reads ``--output-format stream-json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one object; the result need not begin with its type."""
        match js.text(message, "type"):
            case "system":
                return self._system(message)
            case "assistant":
                self._assistant(message)
            case "user":
                self._results(message)
            case "result":
                self._result(message)
            case "stream_event" | "rate_limit_event" | "control_response":
                pass
            case _:
                return False
        return True

    def _system(self, message: dict[str, Any]) -> bool:
        heard = self.heard
        match js.text(message, "subtype"):
            case "init":
                heard.begin(js.text(message, "session_id"), js.text(message, "model"))
            case "api_retry":
                reason = js.text(message, "error") or "the model did not answer"
                status = js.whole(message, "error_status")
                said = f"{reason} ({status})" if status else reason
                wait = js.amount(message, "retry_delay_ms")
                heard.retry(js.whole(message, "attempt"), said, wait)
        return True

    def _assistant(self, message: dict[str, Any]) -> None:
        message_id = js.text(message, "message", "id")
        for block in js.entries(message, "message", "content"):
            match js.text(block, "type"):
                case "text":
                    self.heard.say(js.text(block, "text"), message_id)
                case "thinking":
                    self.heard.think(js.text(block, "thinking"))
                case "tool_use":
                    name, given = js.text(block, "name"), js.at(block, "input")
                    path = js.text(given, _WRITERS.get(name, ""))
                    self.heard.call(name, js.text(block, "id"), given, writes=path)

    def _results(self, message: dict[str, Any]) -> None:
        made = js.text(message, "tool_use_result", "type")
        for block in js.entries(message, "message", "content"):
            if js.text(block, "type") != "tool_result":
                continue
            self.heard.result(
                js.words(js.at(block, "content")),
                js.text(block, "tool_use_id"),
                failed=js.flag(block, "is_error"),
                adds=made == "create" if made else None,
            )

    def _result(self, message: dict[str, Any]) -> None:
        heard = self.heard
        heard.begin(js.text(message, "session_id"))
        heard.count(_usage(message))
        for denial in js.entries(message, "permission_denials"):
            heard.deny(js.text(denial, "tool_name") or "a tool")
        subtype = js.text(message, "subtype")
        said = js.text(message, "result")
        if js.flag(message, "is_error") or subtype.startswith("error"):
            status = js.whole(message, "api_error_status")
            errors = js.words(js.at(message, "errors"))
            failure = _ENDINGS.get(subtype)
            if js.text(message, "terminal_reason").startswith("aborted"):
                failure, errors = FailureClass.CANCELLED, "it was interrupted"
            heard.fail(said or errors or subtype.replace("_", " "), status, failure)
            return
        heard.recover()
        heard.end(said)


def _usage(message: dict[str, Any]) -> Usage:
    models = js.at(message, "modelUsage")
    model: str | UnsetType = UNSET
    if isinstance(models, dict) and models:
        model = max(models, key=lambda name: js.count(models, name, "outputTokens") or 0)
    return Usage(
        input_tokens=js.count(message, "usage", "input_tokens"),
        output_tokens=js.count(message, "usage", "output_tokens"),
        cache_read=js.count(message, "usage", "cache_read_input_tokens"),
        cache_write=js.count(message, "usage", "cache_creation_input_tokens"),
        model=model,
        cost=_cost(message),
    )


def _cost(message: dict[str, Any]) -> float | UnsetType:
    """What this run has cost; the total goes on counting over a session."""
    models = js.at(message, "model_usage_since_last_result")
    if isinstance(models, dict) and models:
        costs = [js.amount(models, name, "costUSD") for name in models]
        return sum(cost for cost in costs if not isinstance(cost, UnsetType))
    return js.amount(message, "total_cost_usd")


def _reader(heard: Heard) -> ClaudeReader:
    return ClaudeReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
