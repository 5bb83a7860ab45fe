"""What a process says: cut into lines, and kept within a limit by its beginning and its end.

Pure: bytes in, lines out. Reading the pipes and handing the lines on is left to ``process``.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

import msgspec

_LONGEST_LINE = 64 * 1024
_LONGEST_CHARACTER, _INSIDE = 4, 0x80  # of UTF-8


class Source(StrEnum):
    """Where a line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Line(msgspec.Struct, frozen=True):
    """One line of output without its end, or a piece of one that is very long.

    ``goes_on`` says that the next piece of this source belongs to the same line; ``left_out``
    counts the bytes, of both sources, that were dropped just before it.
    """

    source: Source
    text: str
    goes_on: bool = False
    left_out: int = 0


class Output:
    """Cuts what comes into lines; over the limit, the middle is left out.

    The first half of the limit is given out as it comes. From then on the newest lines are held
    back, as many as fit into the other half, and given out at the end.
    """

    def __init__(self, limit: int) -> None:
        self._head = limit - limit // 2
        self._tail = limit // 2
        self._longest = max(1, min(_LONGEST_LINE, limit // 4))
        self._begun = dict.fromkeys(Source, b"")
        self._held: deque[tuple[Line, int]] = deque()
        self._held_bytes = 0
        self._is_full = False
        self.dropped = 0

    def feed(self, source: Source, data: bytes) -> list[Line]:
        """Take what was read; gives the lines to hand on now."""
        *whole, begun = (self._begun[source] + data).split(b"\n")
        now: list[Line] = []
        for line in whole:
            *pieces, last = self._pieces(line)
            now += self._said(source, pieces, go_on=True)
            now += self._said(source, [last])
        *pieces, self._begun[source] = self._pieces(begun)
        return now + self._said(source, pieces, go_on=True)

    def finish(self, source: Source) -> list[Line]:
        """Take the end of a source: its last line may have none."""
        begun, self._begun[source] = self._begun[source], b""
        return self._said(source, [begun] if begun else [])

    def held_back(self) -> list[Line]:
        """Give the lines of the end, the first of them with the size of the gap before it."""
        lines = [line for line, _ in self._held]
        self._held.clear()
        if lines:
            lines[0] = msgspec.structs.replace(lines[0], left_out=self.dropped)
        return lines

    def _pieces(self, line: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        while len(line) > self._longest:
            cut = self._longest
            while cut > self._longest - _LONGEST_CHARACTER and line[cut] & 0xC0 == _INSIDE:
                cut -= 1  # never through a character
            pieces.append(line[: max(1, cut)])
            line = line[max(1, cut) :]
        return [*pieces, line]

    def _said(self, source: Source, texts: list[bytes], *, go_on: bool = False) -> list[Line]:
        """Give those that still are of the beginning; the others are held back."""
        now: list[Line] = []
        for text in texts:
            line, size = Line(source, text.decode("utf-8", "replace"), go_on), len(text)
            size += not go_on  # the line's end
            if not self._is_full and size <= self._head:
                self._head -= size
                now.append(line)
            else:
                self._is_full = True
                self._hold(line, size)
        return now

    def _hold(self, line: Line, size: int) -> None:
        self._held.append((line, size))
        self._held_bytes += size
        while self._held_bytes > self._tail:
            _, size = self._held.popleft()
            self._held_bytes -= size
            self.dropped += size
