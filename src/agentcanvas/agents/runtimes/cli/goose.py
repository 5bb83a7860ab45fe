"""goose: says its errors as words of the assistant, and ends with 0 whatever happens."""

from __future__ import annotations

from typing import Any

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation, Server
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api
from agentcanvas.agents.cli.streams import JsonReader
from agentcanvas.agents.cli.words import as_json, with_images
from agentcanvas.protocol.records import FailureClass, Usage

FACTS = Facts(
    id="goose",
    title="goose",
    programs=("goose",),
    install="npm install -g @aaif/goose, or see the installers of the goose project",
    oldest=(1, 20),
    tested="1.34.0",
    tested_on="2026-11-18",
    providers=(ANTHROPIC, OPENAI),
    login=("configure",),
    credentials=(".config/goose/secrets.yaml",),
    hosts=("api.anthropic.com", "api.openai.com"),
    totals=("input_tokens", "output_tokens"),
    lacks=("a JSON Schema for its answer",),
)

_ERROR = "Ran into this error:"
_TOO_MANY = "reached the maximum number of actions"
_USUAL = {Api.ANTHROPIC: "claude-sonnet-4-5", Api.CHAT: "gpt-5.5"}
_WRITERS = {"write": True, "edit": False, "text_editor": False}
_SESSION = "agentcanvas-"
_SERVER_S = 300


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin; its sessions go by names of ours."""
    session = ask.resume or f"{_SESSION}{ask.session}"
    argv = ["goose", "run", "-q", "--output-format", "stream-json"]
    argv += ["--with-builtin", "developer"]
    argv += ["--resume"] if ask.resume else []
    argv += ["--name", session, "-i", "-"]
    if ask.system:
        argv += ["--system", ask.system]
    if ask.max_turns:
        argv += ["--max-turns", str(ask.max_turns)]
    env = {
        "GOOSE_MODE": "auto" if ask.confined else "smart_approve",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
    }
    model = ask.model
    if model.key:
        usual = _USUAL.get(model.api, _USUAL[Api.CHAT])
        env["GOOSE_MODEL"] = model.model or usual
        if model.api is Api.ANTHROPIC:
            env["GOOSE_PROVIDER"] = "anthropic"
            env |= {"ANTHROPIC_HOST": model.url, "ANTHROPIC_API_KEY": model.key}
        else:
            env["GOOSE_PROVIDER"] = "openai"
            host, _, path = model.url.rpartition("/v1")
            env |= {"OPENAI_HOST": host or model.url, "OPENAI_API_KEY": model.key}
            env["OPENAI_BASE_PATH"] = f"v1{path}/chat/completions" if host else "chat/completions"
    elif model.model:
        env["GOOSE_MODEL"] = model.model
    files = {}
    if ask.servers:
        extensions = {server.name: _server(server) for server in ask.servers}
        files[".config/goose/config.yaml"] = as_json({"extensions": extensions})  # JSON is YAML
    prompt = with_images(ask)
    return Invocation(argv=tuple(argv), env=env, stdin=prompt, files=files, session=session)


def _server(server: Server) -> dict[str, Any]:
    common = {"name": server.name, "enabled": True, "timeout": _SERVER_S}
    if server.url:
        reached = {"type": "streamable_http", "uri": server.url}
        return common | reached | {"headers": dict(server.headers)}
    command, *words = server.command
    return common | {"type": "stdio", "cmd": command, "args": words, "envs": dict(server.env)}


class GooseReader(JsonReader):
    """Reads ``--output-format stream-json``."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(heard)
        self._open = ""
        """The tool that is being used."""

    def read(self, message: dict[str, Any]) -> bool:
        """Take one object."""
        match js.text(message, "type"):
            case "message":
                self._message(js.at(message, "message"))
            case "complete":
                self._complete(message)
            case "error":
                self.heard.fail(js.words(js.at(message, "error")) or js.text(message, "message"))
            case "notification" | "model_change":
                pass
            case _:
                return False
        return True

    def stray(self, text: str) -> None:
        """Its last words may stand before the object that ends the stream."""
        self.heard.aside(text)

    def _message(self, message: Any) -> None:
        heard, message_id = self.heard, js.text(message, "id") or "goose"
        is_agent = js.text(message, "role") == "assistant"
        for block in js.entries(message, "content"):
            match js.text(block, "type"):
                case "text" if is_agent:
                    heard.add(js.text(block, "text"), message_id)
                case "thinking":
                    heard.think(js.text(block, "thinking"))
                case "toolRequest":
                    call = js.at(block, "toolCall", "value")
                    name, given = js.text(call, "name"), js.at(call, "arguments")
                    short = name.rpartition("__")[2]
                    path = js.text(given, "path") if short in _WRITERS else ""
                    adds = _WRITERS.get(short, False)
                    self._open = js.text(block, "id")
                    heard.call(name, js.text(block, "id"), given, writes=path, adds=adds)
                case "toolResponse":
                    self._response(block)

    def _response(self, block: dict[str, Any]) -> None:
        self._open = ""
        given = js.at(block, "toolResult", "value")
        code = js.whole(given, "structuredContent", "exit_code")
        refused = js.text(block, "toolResult", "status") == "error"
        self.heard.result(
            js.words(js.at(given, "content")) or js.text(block, "toolResult", "error"),
            js.text(block, "id"),
            exit_code=code,
            failed=refused or js.flag(given, "isError") or bool(code),
        )

    def _complete(self, message: dict[str, Any]) -> None:
        heard = self.heard
        heard.count(
            Usage(
                input_tokens=js.count(message, "input_tokens"),
                output_tokens=js.count(message, "output_tokens"),
            )
        )
        if self._open:  # it ends like this when it is interrupted
            heard.fail("it was interrupted while it used a tool", failure=FailureClass.CANCELLED)
            return
        heard.end()
        said = heard.answer.strip()
        if said.startswith(_ERROR):
            heard.fail(said.removeprefix(_ERROR).strip())
        elif _TOO_MANY in said:
            heard.fail(said, failure=FailureClass.TURN_LIMIT)


def _reader(heard: Heard) -> GooseReader:
    return GooseReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
