"""GitHub Copilot CLI, with a model of one's own or a GitHub token."""

from __future__ import annotations

from typing import Any

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, servers_as_json, with_images, with_system
from agentcanvas.protocol.records import ChangeStatus

FACTS = Facts(
    id="copilot",
    title="GitHub Copilot CLI",
    programs=("copilot",),
    install="npm install -g @github/copilot",
    oldest=(1, 0),
    tested="1.0.102",
    tested_on="2026-11-18",
    node=(20,),
    providers=(OPENAI, ANTHROPIC),
    login=("login",),
    credentials=(".copilot/config.json",),
    hosts=("github.com", "api.github.com", "*.githubcopilot.com"),
    lacks=("counts of tokens with a model of one's own", "a limit on turns", "a JSON Schema"),
)

_SERVERS = ".agentcanvas/copilot-mcp.json"
_USUAL = {Api.ANTHROPIC: "claude-sonnet-4-5", Api.CHAT: "gpt-5.5"}
_KINDS = {"create": ChangeStatus.ADDED, "delete": ChangeStatus.DELETED}
_QUIET = ("session.", "model.", "user.", "hook.", "permission.", "external_tool.", "skill.")
_KNOWN = {
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.message_start",
    "assistant.message_delta",
    "assistant.reasoning_delta",
    "assistant.tool_call_delta",
    "assistant.idle",
    "assistant.usage",
    "tool.shell_output",
    "tool.execution_progress",
    "tool.execution_partial_result",
}


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin."""
    argv = ["copilot", "--output-format", "json", "--disable-builtin-mcps"]
    argv += (
        ["--allow-all-tools", "--allow-all-paths"] if ask.confined else ["--allow-tool", "write"]
    )
    argv += ["--resume", ask.resume] if ask.resume else ["--session-id", ask.session]
    env = {"COPILOT_AUTO_UPDATE": "false"}
    model = ask.model
    name = model.model
    if model.key:
        is_anthropic = model.api is Api.ANTHROPIC
        name = name or _USUAL[Api.ANTHROPIC if is_anthropic else Api.CHAT]
        env |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": model.url,
            "COPILOT_PROVIDER_TYPE": "anthropic" if is_anthropic else "openai",
            "COPILOT_PROVIDER_API_KEY": model.key,
        }
    if name:
        argv += ["--model", name]
    files = {}
    if ask.servers:
        files[_SERVERS] = as_json({"mcpServers": servers_as_json(ask.servers)})
        argv += ["--additional-mcp-config", f"@{ask.home / _SERVERS}"]
    prompt = with_images(ask)
    prompt = prompt if ask.resume else with_system(ask, prompt)
    return Invocation(argv=tuple(argv), env=env, stdin=prompt, files=files)


class CopilotReader(JsonReader):
    """Reads ``--output-format json``."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(heard)
        self._retries = 0

    def read(self, message: dict[str, Any]) -> bool:
        """Take one event."""
        heard, data = self.heard, js.at(message, "data")
        kind = js.text(message, "type")
        match kind:
            case "assistant.message":
                heard.say(js.text(data, "content"), js.text(data, "messageId"))
            case "assistant.reasoning":
                heard.think(js.text(data, "content"))
            case "tool.execution_start":
                given = js.at(data, "arguments")
                heard.call(js.text(data, "toolName"), js.text(data, "toolCallId"), given)
            case "tool.execution_complete":
                self._complete(data)
            case "session.error":
                said = js.text(data, "message") or js.text(data, "errorType") or "it failed"
                heard.fail(said, js.whole(data, "statusCode"))
            case "result":
                self._result(message)
            case _:
                return self._aside(kind, data)
        return True

    def _aside(self, kind: str, data: Any) -> bool:
        """Take what is about the work, and not the work itself."""
        match kind:
            case "assistant.turn_retry":
                self._retries += 1
                self.heard.retry(self._retries, js.text(data, "reason") or "it tries again")
            case "session.start" | "session.resume":
                self.heard.begin(js.text(data, "sessionId"), js.text(data, "selectedModel"))
            case "model.call_start":
                self.heard.begin("", js.text(data, "model"))
            case _:
                return kind in _KNOWN or kind.startswith(_QUIET)
        return True

    def _result(self, message: dict[str, Any]) -> None:
        heard = self.heard
        heard.begin(js.text(message, "sessionId"))
        if js.whole(message, "exitCode") not in (0, None) and heard.failure is None:
            heard.fail("it ended with an error")
        heard.end()

    def _complete(self, data: Any) -> None:
        heard = self.heard
        code = js.whole(data, "shellExecution", "exitCode")
        said = js.text(data, "result", "content") or js.text(data, "error", "message")
        failed = not js.flag(data, "success")
        if failed and "permission" in said.lower():
            heard.deny(js.text(data, "toolName") or "a tool")
        heard.result(said, js.text(data, "toolCallId"), exit_code=code, failed=failed or bool(code))
        for edit in () if failed else js.entries(data, "fileEdits"):
            status = _KINDS.get(js.text(edit, "kind"), ChangeStatus.MODIFIED)
            heard.change(js.text(edit, "path"), status)


def _reader(heard: Heard) -> CopilotReader:
    return CopilotReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
