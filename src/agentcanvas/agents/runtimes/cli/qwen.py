"""Qwen Code: the stream of Claude Code's form, and limits that end without a result."""

from __future__ import annotations

from typing import Any

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import DASHSCOPE
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, servers_as_json, with_images
from agentcanvas.protocol.records import FailureClass, Usage

FACTS = Facts(
    id="qwen",
    title="Qwen Code",
    programs=("qwen",),
    install="npm install -g @qwen-code/qwen-code",
    oldest=(0, 15),
    tested="0.24.4",
    tested_on="2026-11-18",
    node=(20,),
    providers=(DASHSCOPE,),
    credentials=(".qwen/oauth_creds.json",),
    hosts=("chat.qwen.ai", "*.aliyuncs.com"),
    exit_codes={53: FailureClass.TURN_LIMIT, 55: FailureClass.TIMEOUT},
    totals=("input_tokens", "output_tokens", "cache_read"),
    lacks=(
        "fewer than seven tries of a call",
        "a JSON Schema for its answer",
    ),
)

_USUAL = "qwen3-coder-plus"
_WRITERS = {"write_file": True, "edit": False}


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin."""
    argv = ["qwen", "-o", "stream-json"]
    argv += ["--yolo"] if ask.confined else ["--approval-mode", "auto-edit"]
    env = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
    if ask.model.key:
        argv += ["--auth-type", "openai", "-m", ask.model.model or _USUAL]
        env |= {"OPENAI_API_KEY": ask.model.key, "OPENAI_BASE_URL": ask.model.url}
    elif ask.model.model:
        argv += ["-m", ask.model.model]
    if ask.system:
        argv += ["--append-system-prompt", ask.system]
    if ask.max_turns:
        argv += ["--max-session-turns", str(ask.max_turns)]
    if ask.resume:
        argv += ["--resume", ask.resume]
    settings: dict[str, Any] = {
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        # Its own loop around these tries seven times, which nothing changes.
        "model": {"generationConfig": {"maxRetries": 0}},
    }
    if ask.servers:
        # It hides the tools of MCP servers until it searches for them; ours are few.
        settings["tools"] = {"exclude": ["tool_search", "tool_call"]}
        settings["mcpServers"] = {
            name: {**server, "trust": True}
            for name, server in servers_as_json(ask.servers, url="httpUrl", kind="").items()
        }
    files = {".qwen/settings.json": as_json(settings)}
    return Invocation(argv=tuple(argv), env=env, stdin=with_images(ask), files=files)


class QwenReader(JsonReader):
    """Reads ``-o stream-json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one object."""
        match js.text(message, "type"):
            case "system":
                if js.text(message, "subtype") == "init":
                    self.heard.begin(js.text(message, "session_id"), js.text(message, "model"))
            case "assistant":
                self._assistant(message)
            case "user":
                for block in js.entries(message, "message", "content"):
                    if js.text(block, "type") == "tool_result":
                        self.heard.result(
                            js.words(js.at(block, "content")),
                            js.text(block, "tool_use_id"),
                            failed=js.flag(block, "is_error"),
                        )
            case "result":
                self._result(message)
            case "stream_event":
                pass
            case _:
                return False
        return True

    def _assistant(self, message: dict[str, Any]) -> None:
        heard = self.heard
        for block in js.entries(message, "message", "content"):
            match js.text(block, "type"):
                case "text":
                    heard.say(js.text(block, "text"), js.text(message, "message", "id"))
                case "thinking":
                    heard.think(js.text(block, "thinking"))
                case "tool_use":
                    name, given = js.text(block, "name"), js.at(block, "input")
                    path = js.text(given, "file_path") if name in _WRITERS else ""
                    adds = _WRITERS.get(name, False)
                    heard.call(name, js.text(block, "id"), given, writes=path, adds=adds)

    def _result(self, message: dict[str, Any]) -> None:
        heard = self.heard
        heard.begin(js.text(message, "session_id"))
        heard.count(_usage(message))
        for denial in js.entries(message, "permission_denials"):
            heard.deny(js.text(denial, "tool_name") or "a tool")
        if js.flag(message, "is_error"):
            said = js.text(message, "error", "message") or js.text(message, "result")
            heard.fail(said or js.text(message, "subtype").replace("_", " ") or "it failed")
            return
        heard.recover()
        heard.end(js.text(message, "result"))


def _usage(message: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=js.count(message, "usage", "input_tokens"),
        output_tokens=js.count(message, "usage", "output_tokens"),
        cache_read=js.count(message, "usage", "cache_read_input_tokens"),
    )


def _reader(heard: Heard) -> QwenReader:
    return QwenReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
