"""A run as plain lines: one sentence an event, for logs, pipes and screen readers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from agentcanvas.cli.live.clean import lines_of
from agentcanvas.cli.live.view import RunView
from agentcanvas.cli.live.words import duration, told
from agentcanvas.runs.events import Recorded


class PlainScreen:
    """Prints a line for each event that has something to say; repeats are left out."""

    wants_transcripts = False

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._last = ""

    def show(self, view: RunView, recorded: Recorded | None = None) -> None:
        """Print the event."""
        if recorded is None:
            return
        sentence = told(recorded.event, view)
        if sentence and sentence != self._last:
            self._last = sentence
            self._print(f"{duration(recorded.ts - view.started_ms):>7}  {sentence}")

    def say(self, sentence: str) -> None:
        """Print it as it is."""
        for line in lines_of(sentence):
            self._print(line)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing to clear: lines stay where they are."""
        yield

    def _print(self, line: str) -> None:
        # Looked up when it is used: a test, or a redirection, may have put another in its place.
        print(line, file=self._out or sys.stdout, flush=True)
