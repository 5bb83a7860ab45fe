"""A person at a terminal: a child on a pseudo-terminal, read and typed to without sleeps."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Person:
    """Reads what the child prints and types to it."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.raw = b""
        self._read_to = 0

    @property
    def screen(self) -> str:
        """Everything that was printed, without colours and cursor moves."""
        return _SEQUENCE.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def sees(self, text: str) -> None:
        """Wait until ``text`` appears below what was seen before."""
        while (at := self.screen.find(text, self._read_to)) < 0:
            if not self._read():
                raise AssertionError(f"{text!r} never came. Seen:\n{self.screen}")
        self._read_to = at + len(text)

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def presses_ctrl_c(self) -> None:
        """Strike the key: the terminal sends the signal to whoever is in the foreground."""
        self.types("\x03")

    def leaves(self) -> int:
        """Wait for the end of the child; its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        if not ready:
            raise AssertionError(f"Nothing came for {PATIENCE_S} s. Seen:\n{self.screen}")
        try:
            chunk = os.read(self._master, 65_536)
        except OSError:  # Linux says so when the other side is gone
            return False
        self.raw += chunk
        return bool(chunk)


@contextmanager
def at_terminal(
    scenario: str,
    *words: str,
    cwd: Path,
    columns: int = 80,
    rows: int = 40,
    env: Mapping[str, str] | None = None,
) -> Iterator[Person]:
    """The command line over a fake office, on a terminal of its own."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.fake_office", scenario, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=cwd,
        env=_environment(env or {}),
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  # nothing else makes a terminal its own
    )
    os.close(slave)
    try:
        yield Person(process, master)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S)
        os.close(master)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    # The window's size is the terminal's to say.
    ours = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
    return {**ours, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PAGER": "cat", **more}


def _take_terminal() -> None:
    """Make the pseudo-terminal the one whose Ctrl-C the child gets."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
