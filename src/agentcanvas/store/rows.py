"""Many rows by few statements.

Each statement gives the interpreter lock away and has to win it back: beside a busy event loop that
wait is all that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_MOST = 256
_SIZES = [1 << power for power in range(_MOST.bit_length())]


class Rows:
    """How rows are written into a table; its first column is never null."""

    def __init__(self, table: str, *columns: str) -> None:
        self._width = len(columns)
        row = f"({', '.join('?' * len(columns))})"
        # OR FAIL, because a statement of many rows that may have to be undone by itself makes
        # SQLite copy every page it touches first. Ours need not be: a failure takes back the
        # savepoint around it.
        into = f"INSERT OR FAIL INTO {table} ({', '.join(columns)})"
        self._statements = {
            size: f"{into} SELECT * FROM (VALUES {', '.join([row] * size)}) "  # noqa: S608
            "WHERE column1 IS NOT NULL"
            for size in _SIZES
        }

    def insert(self, execute: Callable[[str, Sequence[Any]], object], values: list[Any]) -> None:
        """Write rows; their values come one after the other."""
        width, done = self._width, 0
        while left := len(values) // width - done:
            size = _size_for(left)
            some = values[done * width : (done + size) * width]
            some += [None] * (size * width - len(some))  # rows that are left out
            execute(self._statements[size], some)
            done += min(size, left)


def _size_for(rows: int) -> int:
    """Return the size of the next statement; up to a quarter of it may stay empty."""
    above = next((size for size in _SIZES if size >= rows), _MOST)
    return above if rows >= above * 3 // 4 else above // 2
