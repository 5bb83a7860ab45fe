"""From lines of output to a reader: long ones put together again, JSON taken out of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from agentcanvas.agents.cli.adapter import Reader
from agentcanvas.agents.cli.json_lines import object_in
from agentcanvas.sandbox.process import Line, Source

LONGEST_LINE = 8 * 1024 * 1024
_SHOWN = 2_000


class JsonReader(Reader, ABC):
    """A stream of JSON objects, one a line; each CLI reads its own."""

    def line(self, text: str) -> None:
        """Take a line: an object, something with an object at its end, or neither."""
        found = object_in(text)
        if found is None:
            self.heard.raw(text)
            return
        before, message = found
        if before:
            self.stray(before)
        if not self.read(message):
            self.heard.raw(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")

    @abstractmethod
    def read(self, message: dict[str, Any]) -> bool:
        """Take one object; tell whether it is one that is known."""

    def stray(self, text: str) -> None:
        """Take what stood before an object on its line."""
        self.heard.raw(text)


class Lines:
    """Puts the pieces of long lines together, and hands whole ones to a reader.

    A line beyond all reason is not held: its beginning is kept, the rest is counted.
    """

    def __init__(self, reader: Reader, longest: int = LONGEST_LINE) -> None:
        self._reader = reader
        self._longest = longest
        self._begun: dict[Source, list[str]] = {source: [] for source in Source}
        self._size = dict.fromkeys(Source, 0)

    def __call__(self, line: Line) -> None:
        """Take a line or a piece of one."""
        if line.left_out:
            self._reader.heard.raw(f"[{line.left_out:,} bytes of output were dropped here]")
        source = line.source
        self._size[source] += len(line.text)
        if self._size[source] <= self._longest:
            self._begun[source].append(line.text)
        if not line.goes_on:
            self._finish(source)

    def close(self) -> None:
        """Take the end: a line may have none."""
        for source in Source:
            if self._begun[source]:
                self._finish(source)
        self._reader.close()
        self._reader.heard.close()

    def _finish(self, source: Source) -> None:
        text, size = "".join(self._begun[source]), self._size[source]
        self._begun[source], self._size[source] = [], 0
        if size > self._longest:
            self._reader.heard.raw(f"{text[:_SHOWN]}[a line of {size:,} characters, not read]")
        elif source is Source.STDOUT:
            self._reader.line(text)
        else:
            self._reader.error_line(text)
