"""A hash chain: each entry seals all before it, so none can be changed, dropped or moved unseen.

For tables whose history must be provable, such as the audit trail (D37). Which bytes an entry
consists of, and where its hashes are kept, is left to the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

GENESIS = bytes(sha256().digest_size)
"""What the first entry has for the hash of the one before it."""


def link(previous: bytes, entry: bytes) -> bytes:
    """Return the hash of ``entry`` in its place after ``previous``."""
    assert len(previous) == len(GENESIS), "a fixed length keeps the two parts apart"
    return sha256(previous + entry).digest()


def first_break(
    entries: Iterable[tuple[bytes, bytes, bytes]], *, after: bytes = GENESIS
) -> int | None:
    """Return the index of the first (previous, entry, hash) that does not follow, if any does not.

    ``after`` is the hash that came before the first of them.
    """
    expected = after
    for index, (previous, entry, stored) in enumerate(entries):
        if previous != expected or stored != link(previous, entry):
            return index
        expected = stored
    return None
