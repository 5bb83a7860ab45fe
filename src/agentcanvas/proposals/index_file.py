"""Git's index as a file: written for git to apply a patch to, and read when it has done so.

Version 2 with what a private index needs: mode, blob id and path. What git remembers of files on a
disk is zero here, because there are none. Which entries may be in it is left to ``patch``.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Final

from agentcanvas.errors import GitUnusable

_HEAD: Final = struct.Struct(">4sII")
_ENTRY: Final = struct.Struct(">24xI12x20sH")
"""Mode, id and flags; what is left out are times, numbers and size of a file on a disk."""

_SIGNATURE: Final = b"DIRC"
_VERSION: Final = 2
_LONGEST_NAMED: Final = 0xFFF
_MULTIPLE: Final = 8
_CHECKSUM: Final = 20

Ids = Mapping[bytes, tuple[str, str]]
"""Mode and blob id by path."""


def write_index(entries: Ids) -> bytes:
    """Make an index of entries."""
    parts = [_HEAD.pack(_SIGNATURE, _VERSION, len(entries))]
    for path, (mode, oid) in sorted(entries.items()):
        flags = min(len(path), _LONGEST_NAMED)
        entry = _ENTRY.pack(int(mode, 8), bytes.fromhex(oid), flags) + path
        parts.append(entry.ljust(_end_of(len(entry)), b"\0"))
    data = b"".join(parts)
    return data + _checksum(data)


def read_index(data: bytes) -> dict[bytes, tuple[str, str]]:
    """The entries of an index that git has written."""
    body = data[:-_CHECKSUM]
    if len(data) < _HEAD.size + _CHECKSUM or data[-_CHECKSUM:] != _checksum(body):
        raise GitUnusable("The index that git has written is damaged; try again.")
    signature, version, count = _HEAD.unpack_from(body)
    if (signature, version) != (_SIGNATURE, _VERSION):
        raise GitUnusable(f"Git has written an index of version {version}, and not of {_VERSION}.")
    found, at = {}, _HEAD.size
    for _ in range(count):
        mode, oid, _flags = _ENTRY.unpack_from(body, at)
        start = at + _ENTRY.size
        end = body.index(b"\0", start)
        found[body[start:end]] = (f"{mode:06o}", oid.hex())
        at += _end_of(end - at)
    return found


def _end_of(length: int) -> int:
    """Where an entry ends: at least one zero after its path, and at a multiple of eight."""
    return (length // _MULTIPLE + 1) * _MULTIPLE


def _checksum(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
