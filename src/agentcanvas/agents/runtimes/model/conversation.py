"""A conversation with a model in nobody's own dialect, and how it is kept for a revision (D18)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentcanvas.protocol.records import Usage


class Picture(Struct, frozen=True):
    """An image as it travels: base64, as all endpoints take it."""

    media: str
    data: str


class Said(Struct, frozen=True, tag="said"):
    """What the model is told."""

    text: str
    pictures: tuple[Picture, ...] = ()


class Call(Struct, frozen=True):
    """A tool the model wants used; ``arguments`` is the JSON it wrote, sound or not."""

    id: str
    name: str
    arguments: str


class Reply(Struct, frozen=True, tag="reply"):
    """What the model answered.

    ``native`` are the endpoint's own parts of it. They go back as they came, since some hold what
    the next call needs (signed thinking, encrypted reasoning).
    """

    text: str
    calls: tuple[Call, ...] = ()
    native: tuple[Any, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    cut_off: bool = False
    """Whether it ran out of room before its end."""


class Done(Struct, frozen=True, tag="done"):
    """What a tool gave back."""

    call_id: str
    output: str
    failed: bool = False


Entry = Said | Reply | Done


def keep(path: Path, api: str, entries: list[Entry]) -> None:
    """Write a conversation down, whole or not at all, where its agent cannot lead us elsewhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(_Kept(api, tuple(entries))))
    fresh.replace(path)


def recall(path: Path, api: str) -> list[Entry]:
    """Read a conversation back; none if it is not there, is damaged, or was held elsewhere."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return []
    return list(kept.entries) if kept.api == api else []


class _Kept(Struct, frozen=True):
    api: str
    entries: tuple[Entry, ...]
