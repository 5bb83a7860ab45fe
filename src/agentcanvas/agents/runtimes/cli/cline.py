"""cline: is told its model by a command of its own first, and leaves a daemon behind."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import KEY, Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import with_images, with_system
from agentcanvas.protocol.records import Usage

FACTS = Facts(
    id="cline",
    title="Cline",
    programs=("cline",),
    install="npm install -g cline",
    oldest=(3, 0),
    tested="3.0.65",
    tested_on="2026-11-18",
    node=(20,),
    providers=(OPENAI, ANTHROPIC),
    login=("auth",),
    credentials=(".cline/data/secrets.json",),
    hosts=("api.cline.bot", "app.cline.bot"),
    resumes=False,
    speaks_mcp=False,
    lacks=(
        "resuming a session: what was said before is told again",
        "MCP servers by configuration of ours",
        "prompts beyond what fits a command line",
        "its telemetry cannot be turned off; the closed network keeps it in",
    ),
)

_USUAL = {Api.ANTHROPIC: "claude-sonnet-4-5", Api.CHAT: "gpt-5.5"}
_PROVIDERS = {Api.ANTHROPIC: "anthropic", Api.CHAT: "openai-compatible"}
# The key stays out of the command line: whoever lists processes can read those.
_LOG_IN_FIRST = (
    'cline auth -p "$1" -k "$' + KEY + '" -m "$2" -b "$3" >/dev/null || exit; '
    'provider=$1 model=$2; shift 3; exec cline --json -P "$provider" -m "$model" "$@"'
)
_EDITORS = {"editor"}


def invoke(ask: Ask) -> Invocation:
    """Ask once; it takes its prompt as a word only."""
    prompt = with_system(ask, with_images(ask))
    env = {"DO_NOT_TRACK": "1", "CLINE_NO_AUTO_UPDATE": "1"}
    model = ask.model
    if not model.key:
        return Invocation(argv=("cline", "--json", prompt), env=env)
    env[KEY] = model.key
    name = model.model or _USUAL.get(model.api, _USUAL[Api.CHAT])
    provider = _PROVIDERS.get(model.api, _PROVIDERS[Api.CHAT])
    words = (provider, name, model.url, prompt)
    return Invocation(argv=("/bin/sh", "-c", _LOG_IN_FIRST, "cline", *words), env=env)


class ClineReader(JsonReader):
    """Reads ``--json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one object."""
        match js.text(message, "type"):
            case "agent_event":
                return self._event(js.at(message, "event"))
            case "run_result":
                self._result(message)
            case "hook_event" | "run_start":
                pass
            case "error":
                self.heard.fail(js.text(message, "message") or "it failed")
            case _:
                return False
        return True

    def _event(self, event: Any) -> bool:
        heard = self.heard
        is_tool = js.text(event, "contentType") == "tool"
        match js.text(event, "type"):
            case "content_start" if is_tool:
                name, given = js.text(event, "toolName"), js.at(event, "input")
                path = js.text(given, "path") if name in _EDITORS else ""
                adds = js.at(given, "old_text") is None
                heard.call(name, js.text(event, "toolCallId"), given, writes=path, adds=adds)
            case "content_end" if is_tool:
                self._tool_result(event)
            case "content_end" if js.text(event, "contentType") == "reasoning":
                heard.think(js.text(event, "text"))
            case "content_end":
                heard.say(js.text(event, "text"))
            case "error":
                said = js.text(event, "error", "message") or "it failed"
                heard.fail(said)
            case "content_start" | "content_update" | "usage" | "done" | "notice":
                pass
            case "iteration_start" | "iteration_end":
                pass
            case _:
                return False
        return True

    def _tool_result(self, event: Any) -> None:
        output = js.at(event, "output")
        parts = js.entries(event, "output") or ([output] if isinstance(output, dict) else [])
        said = "\n".join(filter(None, (js.words(js.at(part, "result")) for part in parts)))
        failed = any(js.at(part, "success") is False for part in parts)
        said = said or js.words(output) or js.text(event, "error")
        failed = failed or bool(js.text(event, "error"))
        self.heard.result(said, js.text(event, "toolCallId"), failed=failed)

    def _result(self, message: dict[str, Any]) -> None:
        heard = self.heard
        heard.begin("", js.text(message, "model", "id"))
        heard.count(_usage(message))
        reason, said = js.text(message, "finishReason"), js.text(message, "text")
        if reason == "error":
            heard.fail(said or "it failed")
            return
        if reason in {"max_iterations", "aborted", "cancelled"}:
            heard.fail(
                f"{reason.replace('_', ' ')}: {said}" if "max" not in reason else "max turns"
            )
            return
        heard.recover()
        heard.end(said)

    def error_line(self, text: str) -> None:
        """The same is said in the stream; without one this is all there is."""
        found = js.object_in(text)
        self.heard.aside(text if found is None else js.text(found[1], "message") or text)


def _usage(message: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=js.count(message, "usage", "inputTokens"),
        output_tokens=js.count(message, "usage", "outputTokens"),
        cache_read=js.count(message, "usage", "cacheReadTokens"),
        cache_write=js.count(message, "usage", "cacheWriteTokens"),
        # It says 0 of a model whose price it does not know.
        cost=js.amount(message, "usage", "totalCost") or UNSET,
    )


def _reader(heard: Heard) -> ClineReader:
    return ClineReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
