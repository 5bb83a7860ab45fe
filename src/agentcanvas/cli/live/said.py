"""What an agent said and did, as lines a person can read."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from agentcanvas.cli.live.clean import lines_of, one_line
from agentcanvas.protocol import records as r

_LINES_OF_OUTPUT = 20


def lines_said(event: r.TranscriptEvent, *, most: int = _LINES_OF_OUTPUT) -> list[str]:
    """Clean lines for one event; none for what only machines read."""
    match event:
        case r.TextEvent(text=text) | r.ResultEvent(text=text):
            return lines_of(text) if text.strip() else []
        case r.ThinkingEvent(text=text):
            return [f"({line})" for line in lines_of(text) if line] if text.strip() else []
        case r.ToolCallEvent(name=name, input=given):
            return [f"→ {one_line(name, 60)} {_given(given)}".rstrip()]
        case r.ToolResultEvent():
            return _result(event, most)
        case r.RawEvent(line=line):
            return lines_of(line) if line.strip() else []
        case _:
            return _mark(event)


def _mark(event: r.TranscriptEvent) -> list[str]:
    match event:
        case r.NetworkEvent():
            return [_request(event)]
        case r.FileChangeEvent(path=path, status=status):
            return [f"± {one_line(path)} {status}"]
        case r.RetryEvent(attempt=attempt, reason=reason):
            return [f"… tries again ({attempt}): {one_line(reason)}"]
        case r.ErrorEvent(error_class=kind, message=message):
            return [f"! {kind}: {one_line(message)}"]
        case _:
            return []


def _request(event: r.NetworkEvent) -> str:
    """A request in one line: where to, and what came of it."""
    where = one_line(f"{event.method} {event.host}:{event.port}")
    if not event.allowed:
        return f"⇄ {where} refused: {one_line(event.reason)}"
    came = event.status if event.status is not UNSET else "no answer"
    size = f"{event.sent:,} B out, {event.received:,} B in, {event.ms:,} ms"
    return f"⇄ {where} {came} ({size})" + (f": {one_line(event.reason)}" if event.reason else "")


def _given(given: msgspec.Raw | msgspec.UnsetType) -> str:
    """A tool's input; its one value where it has only one."""
    if given is UNSET:
        return ""
    try:
        value = msgspec.json.decode(given)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return one_line(text)


def _result(event: r.ToolResultEvent, most: int) -> list[str]:
    if isinstance(event.output, r.BlobRef):
        lines = [f"{event.output.size:,} bytes, kept apart"]
    else:
        lines = lines_of(event.output) if event.output.strip() else []
    if len(lines) > most:
        lines = [f"… {len(lines) - most + 1} lines more …", *lines[-most + 1 :]]
    failed = event.failed or (event.exit_code is not UNSET and event.exit_code != 0)
    if failed:
        code = "" if event.exit_code is UNSET else f" (exit code {event.exit_code})"
        lines.append(f"failed{code}")
    return [f"  {line}" for line in lines]
