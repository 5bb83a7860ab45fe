"""The person's terminal: a line of input at a time, a pager, an editor.

Waiting for a line can be cancelled, so that a run that is stopped takes its question along.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
from rich.console import Console, RenderableType
from rich.table import Table

from agentcanvas.cli.live.clean import clean, lines_of
from agentcanvas.errors import ResourceError

_CHUNK = 4096
_ROOM_FOR_QUESTION = 6
_WHOLE = 10_000
"""Columns; no line of ours is as long."""


def is_interactive() -> bool:
    """Whether a person can see what is printed and type an answer."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stdout)


def console_here(*, stderr: bool = False) -> Console:
    """A console in which texts are only texts; a file or a pipe gets its lines whole."""
    console = Console(markup=False, highlight=False, emoji=False, stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WHOLE
    return console


def listing() -> Table:
    """A table that fills a terminal, and elsewhere is as wide as what is in it."""
    return Table(box=None, pad_edge=False, expand=console_here().width < _WHOLE)


class Terminal:
    """Where questions are put; ``is_away`` while a pager or an editor has the keyboard."""

    def __init__(self, console: Console, keyboard: int | None = None) -> None:
        self.console = console
        self.is_away = False
        self._keyboard = sys.stdin.fileno() if keyboard is None else keyboard
        self._typed = b""

    def show(self, *what: RenderableType) -> None:
        """Print it."""
        for each in what:
            self.console.print(each)

    def say(self, sentence: str, style: str = "") -> None:
        """Print clean lines."""
        for line in lines_of(sentence):
            self.console.print(line, style=style)

    def forget_what_was_typed(self) -> None:
        """Keys that were struck before a question was asked are no answer to it."""
        self._typed = b""
        with suppress(termios.error):
            termios.tcflush(self._keyboard, termios.TCIFLUSH)

    async def line(self, prompt: str) -> str | None:
        """What the person types, without the line end; None when the input has ended."""
        self.console.print(prompt, end=" ", style="bold")
        self.console.file.flush()
        while b"\n" not in self._typed:
            chunk = await self._keys()
            if not chunk:
                self.console.print()
                return None
            self._typed += chunk
        line, _, self._typed = self._typed.partition(b"\n")
        return clean(line.decode("utf-8", "replace")).strip()

    async def _keys(self) -> bytes:
        try:
            await anyio.wait_readable(self._keyboard)
        except anyio.get_cancelled_exc_class():
            self.console.print()  # what comes next does not belong behind the question
            raise
        return os.read(self._keyboard, _CHUNK)

    async def page(self, text: RenderableType, *, room: int = _ROOM_FOR_QUESTION) -> None:
        """Print what fits the window, and page what does not."""
        with self.console.capture() as captured:
            self.console.print(text)
        rendered = captured.get()
        if rendered.count("\n") + room <= self.console.height or not await self._paged(rendered):
            self.console.file.write(rendered)
            self.console.file.flush()

    async def edit(self, text: str, suffix: str) -> str:
        """Let the person change a text in their editor."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory(prefix="agentcanvas-") as folder:
            file = Path(folder) / f"edit{suffix}"
            file.write_text(text, encoding="utf-8")
            try:
                code = await self._give_away([*shlex.split(editor), str(file)])
            except (OSError, ValueError) as wrong:
                raise ResourceError(
                    f"The editor {editor} cannot be started ({wrong}); set EDITOR to one that can"
                ) from None
            if code:
                raise ResourceError(f"The editor {editor} ended with {code}; nothing was changed")
            return file.read_text(encoding="utf-8", errors="replace")

    async def _paged(self, rendered: str) -> bool:
        pager = os.environ.get("PAGER") or "less"
        environment = {"LESS": "-RFX", **os.environ}
        with tempfile.TemporaryFile() as text:
            text.write(rendered.encode("utf-8", "replace"))
            text.seek(0)
            try:
                words = shlex.split(pager)
                # The file is its standard input; the keyboard it finds by itself.
                await self._give_away(words, stdin=text.fileno(), environment=environment)
            except (OSError, ValueError):
                return False
        return True

    async def _give_away(
        self,
        words: Sequence[str],
        *,
        stdin: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> int:
        with self._away():
            process = await anyio.open_process(
                words,
                stdin=self._keyboard if stdin is None else stdin,
                stdout=None,
                stderr=None,
                env=environment,
            )
            async with process:
                return await process.wait()

    @contextmanager
    def _away(self) -> Iterator[None]:
        self.is_away = True
        try:
            yield
        finally:
            self.is_away = False


def _is_terminal(stream: object) -> bool:
    try:
        return bool(getattr(stream, "isatty", lambda: False)())
    except ValueError:  # closed
        return False
