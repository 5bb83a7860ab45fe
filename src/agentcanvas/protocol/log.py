"""Messages as they are kept for reading: the log line, and the tree of a conversation (M4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw

from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.scan import is_utf8
from agentcanvas.protocol.shape import Breach

_members = msgspec.json.Decoder(dict[str, Raw])


def log_line(
    data: bytes, *, logged_at: str, processing_duration_ms: float, breaches: Sequence[Breach] = ()
) -> bytes:
    """The message as it came, with when and how it was taken in, as one line of JSON.

    What is no JSON object is logged too, as text under ``unreadable``.
    """
    members = _as_members(data)
    members["logged_at"] = logged_at
    members["processing_duration_ms"] = processing_duration_ms
    if breaches:
        members["validation_errors"] = [str(breach) for breach in breaches]
    return msgspec.json.format(msgspec.json.encode(members), indent=-1)


def _as_members(data: bytes) -> dict[str, object]:
    try:
        if is_utf8(data):
            return dict(_members.decode(data))
    except (msgspec.MsgspecError, RecursionError):
        pass
    return {"unreadable": data.decode(errors="backslashreplace")}


class Thread(msgspec.Struct, frozen=True):
    """A message and those that hang below it, in the order they came."""

    envelope: Envelope
    replies: tuple[Thread, ...] = ()


def threads(envelopes: Iterable[Envelope]) -> tuple[Thread, ...]:
    """One tree per correlation id, rooted at its first message.

    A message hangs below the one it replies to, else below the root. Messages without a
    correlation id stand alone unless they reply to one that is here.
    """
    messages = list(envelopes)
    below: dict[int, list[int]] = {}
    roots: list[int] = []
    by_id: dict[str, int] = {}
    first: dict[str, int] = {}
    for index, envelope in enumerate(messages):
        parent = by_id.get(envelope.reply_to) if envelope.reply_to else None
        if parent is None and envelope.correlation_id:
            parent = first.get(envelope.correlation_id)
        if parent is None:
            roots.append(index)
        else:
            below.setdefault(parent, []).append(index)
        by_id.setdefault(envelope.id, index)
        if envelope.correlation_id:
            first.setdefault(envelope.correlation_id, index)

    # Children always come after their parent, so the trees can be built from the end.
    built: dict[int, Thread] = {}
    for index in range(len(messages) - 1, -1, -1):
        replies = tuple(built[child] for child in below.get(index, ()))
        built[index] = Thread(messages[index], replies)
    return tuple(built[index] for index in roots)
