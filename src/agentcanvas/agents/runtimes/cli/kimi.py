"""Kimi Code: messages as in a chat; errors only on stderr, no counts of tokens."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import MOONSHOT
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, servers_as_json, toml, with_images, with_system

FACTS = Facts(
    id="kimi",
    title="Kimi Code",
    programs=("kimi",),
    install="npm install -g @moonshot-ai/kimi-code",
    oldest=(2, 0),
    tested="2.1.0",
    tested_on="2026-11-18",
    node=(22, 19),
    providers=(MOONSHOT,),
    login=("login",),
    credentials=(".kimi-code/credentials/kimi-code.json",),
    hosts=("*.kimi.com", "*.moonshot.ai", "*.moonshot.cn"),
    lacks=("counts of tokens", "prompts beyond what fits a command line", "a limit on turns"),
)

_USUAL = "kimi-k2-turbo-preview"
_CONTEXT = 128_000
_WRITERS = {"Write": True, "Edit": False}
_TROUBLE = "error: failed to run prompt:"


def invoke(ask: Ask) -> Invocation:
    """Ask once; it takes its prompt as a word only."""
    argv = ["kimi", "--output-format", "stream-json"]
    if ask.resume:
        argv += ["--session", ask.resume]
    files = {}
    lines = [f"[loop_control]\nmax_attempts_per_step = {ask.retries + 1}"]
    if ask.model.key:
        name = ask.model.model or _USUAL
        lines = ['default_model = "agentcanvas"', *lines]
        provider = {"type": "openai", "base_url": ask.model.url, "api_key": ask.model.key}
        model = {"provider": "agentcanvas", "model": name, "max_context_size": _CONTEXT}
        for table, values in (("providers.agentcanvas", provider), ("models.agentcanvas", model)):
            lines.append(f"[{table}]")
            lines += [f"{key} = {toml(value)}" for key, value in values.items()]
        files[".kimi-code/config.toml"] = "\n".join(lines) + "\n"
    if ask.servers:
        files[".kimi-code/mcp.json"] = as_json({"mcpServers": servers_as_json(ask.servers)})
    prompt = with_images(ask)
    argv += ["-p", prompt if ask.resume else with_system(ask, prompt)]
    env = {"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1"}
    return Invocation(argv=tuple(argv), env=env, files=files)


class KimiReader(JsonReader):
    """Reads ``--output-format stream-json``."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one message."""
        match js.text(message, "role"):
            case "meta":
                return self._meta(message)
            case "assistant":
                self.heard.think(js.text(message, "reasoning_content"))
                self.heard.say(js.words(js.at(message, "content")))
                for call in js.entries(message, "tool_calls"):
                    self._call(call)
            case "tool":
                said = js.words(js.at(message, "content"))
                self.heard.result(said, js.text(message, "tool_call_id"))
            case _:
                return False
        return True

    def _meta(self, message: dict[str, Any]) -> bool:
        heard = self.heard
        match js.text(message, "type"):
            case "session.resume_hint":
                heard.begin(js.text(message, "session_id"))
                heard.end()
            case "turn.step.retrying":
                reason = js.text(message, "error_message") or "the model did not answer"
                heard.retry(
                    js.whole(message, "failed_attempt"), reason, js.amount(message, "delay_ms")
                )
            case "system.version":
                pass
            case _:
                return False
        return True

    def _call(self, call: dict[str, Any]) -> None:
        name, words = js.text(call, "function", "name"), js.text(call, "function", "arguments")
        given: Any = words
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):  # else it stays a text
            given = msgspec.json.decode(words)
        path = js.text(given, "path") if name in _WRITERS else ""
        adds = _WRITERS.get(name, False)
        self.heard.call(name, js.text(call, "id"), given, writes=path, adds=adds)

    def error_line(self, text: str) -> None:
        """Its only word on what went wrong."""
        self.heard.aside(text)
        if text.startswith(_TROUBLE):
            self.heard.fail(text.removeprefix(_TROUBLE).strip())


def _reader(heard: Heard) -> KimiReader:
    return KimiReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
