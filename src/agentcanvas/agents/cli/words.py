"""Pieces that several CLIs are asked with: a prompt with everything in it, MCP servers as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agentcanvas.agents.cli.adapter import Ask, Server

AS_JSON = {"ensure_ascii": False, "indent": 2}


def with_images(ask: Ask) -> str:
    """The prompt, naming the images as files; for CLIs whose tools open them."""
    if not ask.images:
        return ask.prompt
    names = "".join(f"- {path}\n" for path in ask.images)
    return f"{ask.prompt}\nImages to look at:\n{names}"


def with_system(ask: Ask, prompt: str | None = None) -> str:
    """The prompt behind the system prompt; for CLIs that take none apart."""
    said = ask.prompt if prompt is None else prompt
    return f"{ask.system.strip()}\n\n{said}" if ask.system.strip() else said


def as_json(value: Any) -> str:
    """A file of private configuration."""
    return json.dumps(value, **AS_JSON) + "\n"  # type: ignore[arg-type]  # a dict of options


def servers_as_json(
    servers: Iterable[Server], *, url: str = "url", kind: str = "type"
) -> dict[str, Any]:
    """MCP servers in the form that most CLIs took over from each other."""
    found: dict[str, Any] = {}
    for server in servers:
        if server.url:
            found[server.name] = {url: server.url, "headers": dict(server.headers)}
            if kind:
                found[server.name][kind] = "http"
        else:
            command, *words = server.command
            found[server.name] = {"command": command, "args": words, "env": dict(server.env)}
            if kind:
                found[server.name][kind] = "stdio"
    return found


def toml(value: Any) -> str:
    """A value in TOML: what JSON and TOML write alike, and tables in one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(name)} = {toml(each)}" for name, each in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)
