"""Durable writes: our group commit against bare sqlite3 on the same table, index and disk.

Bare sqlite3 gets its rows ready-made, in batches of the size that 256 waiting writers make, and
computes no checksums; the store is given one event at a time by 256 tasks that each wait.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread

import anyio

from agentcanvas.store import Event, Store, events
from agentcanvas.store.migrations import EVENTS
from bench.harness import Contender, Contest, Figure, at_most, times_better

WRITERS = 256
TURNS = 16
BODY = b'{"step": "%s"}' % (b"x" * 288)
STREAMS = [f"run/run_20260101_{number:06}" for number in range(WRITERS)]
INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"


@contextmanager
def bare(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the same table as a plain user of sqlite3 would, safe against loss of power."""
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(EVENTS)
        yield connection


def rows(numbers: Iterator[int]) -> list[tuple[int, str, str, int, bytes, int]]:
    """Make a batch as bare sqlite3 wants it."""
    return [(next(numbers), stream, "step", 1_767_225_600_000, BODY, 0) for stream in STREAMS]


@contextmanager
def bare_batches(folder: Path, per_commit: int = WRITERS) -> Iterator[Callable[[], None]]:
    """Insert and commit in batches of one size."""
    with bare(folder) as connection:
        numbers = count(1)

        def work() -> None:
            for _ in range(TURNS):
                batch = rows(numbers)
                for start in range(0, len(batch), per_commit):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(INSERT, batch[start : start + per_commit])
                    connection.execute("COMMIT")

        yield work


class Log:
    """A projection like that of run events: a line an event, a file a stream."""

    name = "bench"

    def path(self, event: Event) -> str:
        """Give each stream its file."""
        return f"{event.stream}.jsonl"

    def line(self, event: Event) -> bytes:
        """Wrap the body."""
        return b'{"ts":%d,"seq":%d,"event":%s}' % (event.at_ms, event.seq, event.body)


@asynccontextmanager
async def store_writers(
    folder: Path, *projections: Log
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Let tasks append one event after the other, each waiting for its own to be on disk."""
    async with await Store.open(folder / "store.db", projections=projections) as store:
        yield lambda: write(store, TURNS)


async def write(store: Store, turns: int) -> None:
    """Let all writers write ``turns`` events each."""

    async def writer(stream: str) -> None:
        for _ in range(turns):
            await store.append(stream, "step", BODY)

    async with anyio.create_task_group() as group:
        for stream in STREAMS:
            group.start_soon(writer, stream)


async def write_once(path: Path, turns: int) -> None:
    """Open a store, write, close; what the system calls are counted of."""
    async with await Store.open(path) as store:
        await write(store, turns)


def fsyncs_a_write(folder: Path, turns: int) -> float:
    """Count what the kernel is asked for, opening and closing included."""
    strace = shutil.which("strace")
    assert strace
    calls = folder / "calls"
    path = folder / f"counted-{len(list(folder.iterdir()))}.db"
    traced = [strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(calls)]
    command = [sys.executable, "-m", "bench.store", str(path), str(turns)]
    subprocess.run([*traced, *command], check=True)
    return len(re.findall(r"f(?:data)?sync\(", calls.read_text())) / (turns * WRITERS)


@contextmanager
def beside_a_busy_thread(
    folder: Path, insert: Callable[[sqlite3.Connection, Iterator[int]], None]
) -> Iterator[Callable[[], None]]:
    """Insert a batch while another thread, as a busy event loop does, never rests."""
    done = Flag()

    def never_rest() -> None:
        while not done.is_set():
            sum(range(1000))

    with bare(folder) as connection:
        numbers = count(1)

        def work() -> None:
            thread = Thread(target=never_rest)
            thread.start()
            connection.execute("BEGIN IMMEDIATE")
            insert(connection, numbers)
            connection.execute("COMMIT")
            done.set()
            thread.join()
            done.clear()

        yield work


def by_executemany(connection: sqlite3.Connection, numbers: Iterator[int]) -> None:
    """Insert row by row, as sqlite3 does it."""
    connection.executemany(INSERT, rows(numbers))


def by_our_insert(connection: sqlite3.Connection, numbers: Iterator[int]) -> None:
    """Insert as the store does it."""
    batch = [(stream, "step", BODY) for stream in STREAMS]
    first, *_ = [next(numbers) for _ in batch]
    events.insert(connection, first, 1_767_225_600_000, batch)


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of the store (D2)."""
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        folder = Path(name)

        def inside(place: str) -> Path:
            path = folder / place
            path.mkdir()
            return path

        many, plain, logged = inside("many"), inside("plain"), inside("logged")
        yield Contest(
            name="a durable write, 256 writers at once",
            baseline="sqlite3 executemany, 256 a commit",
            contenders=[
                Contender.opened(
                    "sqlite3 executemany, 256 a commit",
                    lambda: bare_batches(many),
                    operations=WRITERS * TURNS,
                ),
                Contender.opened(
                    "store",
                    lambda: store_writers(plain),
                    operations=WRITERS * TURNS,
                    bar=times_better(0.8, than="sqlite3 executemany, 256 a commit"),
                ),
                Contender.opened(
                    "store with a JSONL projection",
                    lambda: store_writers(logged, Log()),
                    operations=WRITERS * TURNS,
                ),
            ],
            note="the same table and index; the store also numbers, dates and checksums each row",
        )

        row_by_row, at_once = inside("row-by-row"), inside("at-once")
        yield Contest(
            name="a batch of 256 beside a busy thread",
            baseline="sqlite3 executemany",
            contenders=[
                Contender.opened(
                    "sqlite3 executemany",
                    lambda: beside_a_busy_thread(row_by_row, by_executemany),
                ),
                Contender.opened(
                    "one statement, as in the store",
                    lambda: beside_a_busy_thread(at_once, by_our_insert),
                ),
            ],
            note="each statement gives the interpreter lock away and has to win it back; "
            "with no core to spare nobody is quick enough to take it, and the two are equal",
        )

        if shutil.which("strace"):
            yield Contest(
                name="fsyncs a write, 256 writers at once",
                figure=Figure("fsyncs/write", better="lower"),
                contenders=[
                    Contender(
                        "store",
                        lambda: fsyncs_a_write(folder, turns=4 if quick else 40),
                        bar=at_most(0.02),
                    )
                ],
                note="counted by strace, with opening and closing",
            )


if __name__ == "__main__":
    anyio.run(write_once, Path(sys.argv[1]), int(sys.argv[2]))
