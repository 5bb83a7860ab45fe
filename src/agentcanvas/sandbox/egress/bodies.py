"""Bodies of HTTP messages: read by the length that their head says, passed on piece by piece.

Chunks are taken apart and made anew, so that what one side means by them is what the other reads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from agentcanvas.errors import EgressRefused
from agentcanvas.sandbox.egress.heads import Chunked

PIECE = 64 * 1024
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(;[\t\x20-\x7e\x80-\xff]{0,1024})?\r\n")
_LONGEST_TRAILER = 8 * 1024
END_OF_CHUNKS = b"0\r\n\r\n"


async def pieces(
    reader: asyncio.StreamReader, length: int | Chunked | None
) -> AsyncIterator[bytes]:
    """Read a body; None for one that ends with the connection."""
    if length is None:
        while data := await reader.read(PIECE):
            yield data
    elif isinstance(length, int):
        async for data in _exactly(reader, length):
            yield data
    else:
        while size := await _size(reader):
            async for data in _exactly(reader, size):
                yield data
            if await reader.readexactly(2) != b"\r\n":
                raise EgressRefused("A chunk is longer than it says", status=400)
        await _skip_trailer(reader)


async def _exactly(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    while length:
        data = await reader.read(min(length, PIECE))
        if not data:
            raise EgressRefused("The body ends before its length", status=400)
        length -= len(data)
        yield data


async def _size(reader: asyncio.StreamReader) -> int:
    found = _SIZE.fullmatch(await _line(reader))
    if not found:
        raise EgressRefused("The size of a chunk is not a number", status=400)
    return int(found[1], 16)


async def _skip_trailer(reader: asyncio.StreamReader) -> None:
    skipped = 0
    while (line := await _line(reader)) != b"\r\n":
        skipped += len(line)
        if skipped > _LONGEST_TRAILER:
            raise EgressRefused("The trailer is too long", status=400)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError) as error:
        raise EgressRefused("A body does not end as it should", status=400) from error


def chunk(data: bytes) -> bytes:
    """Write one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)
