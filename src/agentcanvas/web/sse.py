"""The reading side of server-sent events: bytes as they arrive, frames as they are complete."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec


class Frame(msgspec.Struct, frozen=True):
    """One event; without a name it is a message."""

    data: bytes
    event: str = ""
    id: str = ""


async def frames_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Every whole frame; comments are skipped, and a torn last one is dropped."""
    rest = b""
    async for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        for block in blocks:
            frame = _read(block)
            if frame is not None:
                yield frame


def _read(block: bytes) -> Frame | None:
    fields: dict[bytes, bytes] = {}
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        fields[name] = value.removeprefix(b" ")
    if b"data" not in fields:
        return None
    return Frame(
        fields[b"data"], fields.get(b"event", b"").decode(), fields.get(b"id", b"").decode()
    )
