"""What several tests of the store need."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio.lowlevel

from agentcanvas.store import Event, Store, Transaction


class PerStream:
    """A projection: a file a stream, a line an event."""

    name = "per-stream"

    def path(self, event: Event) -> str | None:
        return f"logs/{event.stream}.jsonl" if event.kind != "private" else None

    def line(self, event: Event) -> bytes:
        return b'{"seq":%d,"body":%s}' % (event.seq, event.body)


def expected_files(events: list[Event]) -> dict[str, bytes]:
    """Say what ``PerStream`` makes of these events, from the beginning."""
    projection = PerStream()
    files: dict[str, bytes] = {}
    for event in events:
        path = projection.path(event)
        if path is not None:
            files[path] = files.get(path, b"") + projection.line(event) + b"\n"
    return files


def files_in(folder: Path) -> dict[str, bytes]:
    """Read what is in the files of ``PerStream``."""
    found = sorted(folder.glob("logs/**/*.jsonl"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


@contextmanager
def writer_kept_busy(store: Store) -> Iterator[None]:
    """Keep the writer's thread in a unit of work, so that whatever comes meanwhile queues."""
    began, may_end = threading.Event(), threading.Event()

    def occupy(_: Transaction) -> None:
        began.set()
        may_end.wait()

    occupied = store.submit(occupy)
    began.wait()
    try:
        yield
    finally:
        may_end.set()
        occupied.result()


async def turns() -> None:
    """Let every task run as far as it can without the writer."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


def content(path: Path) -> bytes:
    """Read a file."""
    return path.read_bytes()


def run_python(script: str, *arguments: object) -> int:
    """Run a script in a process of its own; return how it ended."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=False, timeout=60).returncode


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Damage a file as a failing disk would."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
