"""JSONL files for people and other tools, written from committed events (D2, V3).

How far a file has come is kept in the store, and only what is on disk counts: the rest is written
again after a crash, over whatever the crash left. So each event has its line once, however often
the process dies. The product never reads these files back.

Which files exist, and what their lines say, is left to each ``Projection``; when to write, to
``projector``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from agentcanvas.store import lines
from agentcanvas.store.events import Event
from agentcanvas.store.transaction import Row, Snapshot, Transaction

T = TypeVar("T")

_EVENTS_A_READ = 1000
_BYTES_A_READ = 8 * 1024 * 1024
_KNOWN_FILE = "SELECT path, projection, first_seq, seq, size FROM projection_files WHERE path = ?"


class Projection(Protocol):
    """A family of files. For the same event both methods must always give the same answer."""

    @property
    def name(self) -> str:
        """What the store remembers it by."""
        ...

    def path(self, event: Event) -> str | None:
        """Tell the file this event belongs in, relative to the folder; ``None`` for no file."""
        ...

    def line(self, event: Event) -> bytes:
        """Tell the event's line, without its end."""
        ...


class Access(Protocol):
    """The store, as a thread beside it uses it."""

    def read_blocking(self, look: Callable[[Snapshot], T], /) -> T: ...
    def submit(self, work: Callable[[Transaction], T], /) -> Future[T]: ...


def events_after(store: Access, after: int) -> list[Event]:
    """Return the next events, as many as are handled at a time."""
    return store.read_blocking(
        lambda look: look.events(after=after, limit=_EVENTS_A_READ, most_bytes=_BYTES_A_READ)
    )


class ProjectionError(Exception):
    """A projection gave an answer that cannot be used."""


@dataclass
class _File:
    """How far one file has come: it has the lines up to ``seq`` in its first ``size`` bytes."""

    first_seq: int
    seq: int
    size: int


@dataclass
class _Addition:
    """Lines on their way into a file."""

    first_seq: int
    seq: int = 0
    data: bytearray = field(default_factory=bytearray)


class Follower:
    """Writes the files of one projection; used by one thread.

    A call that fails may be repeated: each file knows by itself how far it has come.
    """

    def __init__(self, projection: Projection, folder: Path, store: Access) -> None:
        self.name = projection.name
        self.seq = 0
        self.ready = False
        self.unrecorded = 0
        self._folder = folder
        self._store = store
        self._projection = projection
        self._files: dict[str, _File] = {}
        self._changed: set[str] = set()

    def complete(self) -> None:
        """Take up where the last owner of the store left off, and mend what happened since."""
        name = self.name
        found = self._store.read_blocking(
            lambda look: look.one("SELECT seq FROM projections WHERE name = ?", (name,))
        )
        assert found, f"projection {name} is not registered"
        self.seq = found[0]
        recorded = self._store.read_blocking(
            lambda look: look.query(
                "SELECT path, first_seq, seq, size FROM projection_files WHERE projection = ?",
                (name,),
            )
        )
        for path, *position in recorded:
            file = _File(*position)
            if not lines.is_good(self._folder / path, file.size):
                self._files[path] = file
                self._append(path, file, b"")
        self.ready = True

    def follow(self, events: Sequence[Event]) -> None:
        """Write the lines of those events that were not met before."""
        if not events or events[-1].seq <= self.seq:
            return
        additions = self._additions(event for event in events if event.seq > self.seq)
        self._meet(additions)
        for path, addition in additions.items():
            file = self._files[path]
            if addition.seq > file.seq:
                self._append(path, file, bytes(addition.data))
                file.seq = addition.seq
        self.unrecorded += events[-1].seq - self.seq
        self.seq = events[-1].seq

    def record(self) -> None:
        """Bring the files to the disk, then remember how far they have come."""
        if not self.unrecorded and not self._changed:
            return
        changed = sorted(self._changed)
        for path in changed:
            lines.sync(self._folder / path)
        name, seq = self.name, self.seq
        positions = [(self._files[path].seq, self._files[path].size, path) for path in changed]

        def remember(transaction: Transaction) -> None:
            transaction.execute_many(
                "UPDATE projection_files SET seq = ?, size = ? WHERE path = ?", positions
            )
            transaction.execute("UPDATE projections SET seq = ? WHERE name = ?", (seq, name))

        self._store.submit(remember).result()
        self._changed.clear()
        self.unrecorded = 0

    def _additions(self, events: Iterable[Event]) -> dict[str, _Addition]:
        additions: dict[str, _Addition] = {}
        for event in events:
            path = self._projection.path(event)
            if path is None:
                continue
            known = self._files.get(path)
            if known is not None and event.seq <= known.seq:
                continue  # written before a failure that made us come back
            addition = additions.setdefault(path, _Addition(event.seq))
            addition.data += self._line(event)
            addition.seq = event.seq
        return additions

    def _line(self, event: Event) -> bytes:
        line = self._projection.line(event)
        if b"\n" in line:
            raise ProjectionError(f"the line of event {event.seq} has more than one line")
        return line + b"\n"

    def _meet(self, additions: dict[str, _Addition]) -> None:
        """Know each file before its first line is written, or a crash would make it a stranger."""
        unknown = [path for path in additions if path not in self._files]
        sizes = {path: lines.adopt(_inside(self._folder, path)) for path in unknown}

        def meet(transaction: Transaction) -> list[Row]:
            transaction.execute_many(
                "INSERT OR IGNORE INTO projection_files (path, projection, first_seq, seq, size) "
                "VALUES (?, ?, ?, ?, ?)",
                [
                    (path, self.name, first := additions[path].first_seq, first - 1, size)
                    for path, size in sizes.items()
                ],
            )
            return [row for path in sizes for row in transaction.query(_KNOWN_FILE, (path,))]

        if unknown:
            for path, owner, first_seq, seq, size in self._store.submit(meet).result():
                if owner != self.name:
                    raise ProjectionError(f"the file {path} belongs to the projection {owner}")
                self._files[path] = _File(first_seq, seq, size)

    def _append(self, path: str, file: _File, data: bytes) -> None:
        self._changed.add(path)
        place = self._folder / path
        try:
            file.size = lines.append(place, file.size, data)
        except lines.CutShortError:
            file.size = lines.rewrite(place, self._lines_from_the_store(path, file))
            file.size = lines.append(place, file.size, data)

    def _lines_from_the_store(self, path: str, file: _File) -> Iterator[bytes]:
        after = file.first_seq - 1
        while after < file.seq:
            events = events_after(self._store, after)
            for event in events:
                if event.seq <= file.seq and self._projection.path(event) == path:
                    yield self._line(event)
            after = events[-1].seq if events else file.seq


def _inside(folder: Path, path: str) -> Path:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise ProjectionError(f"the path {path!r} leads out of the folder")
    return folder / pure
