"""Gemini CLI: live text in pieces; it ignores polite signals and says most by exit codes."""

from __future__ import annotations

from typing import Any

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import GEMINI
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, servers_as_json, with_images
from agentcanvas.protocol.records import FailureClass, Usage

FACTS = Facts(
    id="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    install="npm install -g @google/gemini-cli",
    oldest=(0, 20),
    tested="0.61.0",
    tested_on="2026-11-18",
    node=(20,),
    providers=(GEMINI,),
    credentials=(".gemini/oauth_creds.json",),
    hosts=("*.googleapis.com", "accounts.google.com"),
    exit_codes={
        41: FailureClass.AUTH,
        53: FailureClass.TURN_LIMIT,
        55: FailureClass.DENIED,
    },
    lacks=("a JSON Schema for its answer",),
)

_WRITERS = {"write_file": True, "replace": False}


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin."""
    argv = ["gemini", "-o", "stream-json"]
    argv += ["--yolo"] if ask.confined else ["--approval-mode", "auto_edit"]
    if ask.model.model:
        argv += ["-m", ask.model.model]
    argv += ["--resume", ask.resume] if ask.resume else ["--session-id", ask.session]
    settings: dict[str, Any] = {
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {
            "enableAutoUpdate": False,
            "disableAutoUpdate": True,
            "maxAttempts": ask.retries + 1,
        },
    }
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"}
    if ask.model.key:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        env |= {"GEMINI_API_KEY": ask.model.key, "GOOGLE_GEMINI_BASE_URL": ask.model.url}
    else:
        settings["security"] = {"auth": {"selectedType": "oauth-personal"}}
    if ask.max_turns:
        settings["model"] = {"maxSessionTurns": ask.max_turns}
    if ask.servers:
        settings["mcpServers"] = {
            name: {**server, "trust": True}
            for name, server in servers_as_json(ask.servers, url="httpUrl", kind="").items()
        }
    files = {".gemini/settings.json": as_json(settings)}
    if ask.system:
        files[".gemini/GEMINI.md"] = ask.system
    return Invocation(argv=tuple(argv), env=env, stdin=with_images(ask), files=files)


class GeminiReader(JsonReader):
    """Reads ``-o stream-json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one event."""
        heard = self.heard
        match js.text(message, "type"):
            case "init":
                heard.begin(js.text(message, "session_id"), js.text(message, "model"))
            case "message":
                self._message(message)
            case "tool_use":
                name, given = js.text(message, "tool_name"), js.at(message, "parameters")
                path = js.text(given, "file_path") if name in _WRITERS else ""
                heard.call(
                    name,
                    js.text(message, "tool_id"),
                    given,
                    writes=path,
                    adds=_WRITERS.get(name, False),
                )
            case "tool_result":
                heard.result(
                    js.words(js.at(message, "output")) or js.text(message, "error", "message"),
                    js.text(message, "tool_id"),
                    failed=js.text(message, "status") == "error",
                )
            case "error":
                said = js.text(message, "message") or "it says there was an error"
                if js.text(message, "severity") == "warning":
                    heard.aside(said)
                else:
                    heard.fail(said)
            case "result":
                self._result(message)
            case _:
                return False
        return True

    def _message(self, message: dict[str, Any]) -> None:
        if js.text(message, "role") != "assistant":
            return
        if js.flag(message, "delta"):
            self.heard.add(js.text(message, "content"))
        else:
            self.heard.say(js.text(message, "content"))

    def _result(self, message: dict[str, Any]) -> None:
        self.heard.count(_usage(message))
        if js.text(message, "status") == "error":
            said = js.text(message, "error", "message")
            self.heard.fail(said or js.text(message, "error", "type") or "the turn failed")
            return
        self.heard.recover()
        self.heard.end()


def _usage(message: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=js.count(message, "stats", "input_tokens"),
        output_tokens=js.count(message, "stats", "output_tokens"),
        cache_read=js.count(message, "stats", "cached"),
    )


def _reader(heard: Heard) -> GeminiReader:
    return GeminiReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
