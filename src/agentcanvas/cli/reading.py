"""Files that hold messages, as given on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer

STANDARD_INPUT = "-"


def read(name: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``; a file that is not there ends it."""
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        print(f"agentcanvas: cannot read {name}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(2) from None


def messages_in(name: str) -> Iterator[tuple[str, bytes]]:
    """Every message in a file with a name for it; a .jsonl file holds one a line."""
    data = read(name)
    shown = "standard input" if name == STANDARD_INPUT else name
    if not name.endswith(".jsonl"):
        yield shown, data
        return
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            yield f"{shown}:{number}", line
