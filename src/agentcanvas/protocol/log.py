"""Messages as they are read afterwards: the tree of a conversation (M4)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentcanvas.protocol.envelope import Envelope


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
