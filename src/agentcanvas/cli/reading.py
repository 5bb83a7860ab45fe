"""Files that hold messages, as given on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer

STANDARD_INPUT = "-"


def read(name: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``; a file that is not there ends it."""
    try:
        if name != STANDARD_INPUT:
            return Path(name).read_bytes()
        if sys.stdin is not None:
            return sys.stdin.buffer.read()
        reason = "standard input is closed"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:  # a name that no file can have
        reason = str(error)
    print(f"agentcanvas: cannot read {name}: {reason}", file=sys.stderr)
    raise typer.Exit(2)


def messages_in(name: str) -> Iterator[tuple[str, bytes]]:
    """Every message in a file with a name for it; a .jsonl file holds one a line."""
    data = read(name)
    shown = "standard input" if name == STANDARD_INPUT else name
    if not name.endswith(".jsonl"):
        yield shown, data
        return
    lines = [(n, line) for n, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    for number, line in lines or [(1, b"")]:
        yield f"{shown}:{number}", line
