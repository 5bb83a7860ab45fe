"""Hunks put to work on the file they were made for, without git.

Each must sit exactly where it says, on exactly the lines it shows; anything else is another file.
Only text: what a binary patch holds is left to git.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentcanvas.proposals.outline import Hunk

_CONTEXT: Final = 3
_LOOKS_BINARY: Final = 8_000


class MisfitError(ValueError):
    """The file is not the one that the hunks were made for."""


def content_after(before: bytes, hunks: Iterable[Hunk]) -> bytes:
    """The file once the hunks are in it; they are in the order of its lines."""
    lines = lines_of(before)
    after: list[bytes] = []
    reached = 0
    for hunk in hunks:
        old, new = _sides(hunk)
        end = hunk.old_index + len(old)
        if hunk.old_index < reached or lines[hunk.old_index : end] != old:
            raise MisfitError(f"the hunk at line {hunk.old_start} does not fit")
        after += lines[reached : hunk.old_index]
        after += new
        reached = end
    return b"".join(after + lines[reached:])


def surely_apart(before: bytes, now: bytes, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether an edit of the whole file is so far from these lines that git merges both.

    A no is no answer: then git has to say. All that differs counts as one stretch, widened by
    every line around it that a diff could take for one of its own, and by the usual context.
    """
    if any(b"\0" in data[:_LOOKS_BINARY] for data in (before, now)):
        return False
    old, new = lines_of(before), lines_of(now)
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    start, end = head, len(old) - tail
    own = {*old[head:end], *new[head : len(new) - tail]}
    while start > 0 and old[start - 1] in own:
        start -= 1
    while end < len(old) and old[end] in own:
        end += 1
    return all(span[1] < start - _CONTEXT or end + _CONTEXT < span[0] for span in spans)


def lines_of(data: bytes) -> list[bytes]:
    """Lines as git counts them: only a line feed ends one."""
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _sides(hunk: Hunk) -> tuple[list[bytes], list[bytes]]:
    """The lines that a hunk takes away and those it leaves, context in both."""
    old: list[bytes] = []
    new: list[bytes] = []
    touched: list[list[bytes]] = []
    for line in hunk.lines:
        sign = line[:1]
        if sign == b"\\":
            for side in touched:
                side[-1] = side[-1][:-1]
            continue
        touched = {b"-": [old], b"+": [new]}.get(sign, [old, new])
        for side in touched:
            side.append(line[1:] + b"\n")
    return old, new


def blob_id(data: bytes, form: str = "sha1") -> str:
    """The name that git gives a content, in patches as in the quarantine.

    ``form`` is the way in which a repository names its objects.
    """
    head = f"blob {len(data)}\0".encode()
    return hashlib.new(form, head + data, usedforsecurity=False).hexdigest()
