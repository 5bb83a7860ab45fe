"""SQLite connections, set up alike, and SQLite's complaints in our words.

What is in the database is left to ``migrations``, who uses it to ``writer`` and ``readers``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentcanvas.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from agentcanvas.store import room
from agentcanvas.store.lock import lock_file

APPLICATION_ID = 0x41674376
"""``AgCv`` in the file's header: tells a store of ours from any other SQLite file."""

_PAGE_BYTES = 4096
_PATIENCE_S = 5.0
_INCREMENTAL = 2

# A checkpoint costs two fsyncs and copies pages, within a commit that callers wait for. Four times
# SQLite's default: 16 MB of log, and a quarter of these pauses.
_PAGES_A_CHECKPOINT = 4000
_LOG_KEPT_BYTES = 64 * 1024 * 1024

RESTORE = "Restore the newest back-up with `agentcanvas store restore BACKUP`."


def connect(path: Path | None) -> sqlite3.Connection:
    """Open a database that is created if need be; ``None`` is one in memory."""
    if path is not None:
        make_private(path)
    return _connect(":memory:" if path is None else str(path))


def keep_index_in_memory(connection: sqlite3.Connection) -> None:
    """Use no file for the index of the log; nobody else can read the store meanwhile."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")


def make_private(path: Path) -> None:
    """Let nobody else on the machine read what is kept; SQLite gives its log the same mode."""
    with suppress(OSError):  # it is there already, or SQLite says why it cannot be
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_writer(connection: sqlite3.Connection, path: Path | None, max_bytes: int | None) -> None:
    """Set a connection up to be the one that writes."""
    # Asked first: to set it writes a page, for which a full disk has no room.
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (_INCREMENTAL,):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    if path is not None:
        _use_a_log(connection, path)
    connection.execute("PRAGMA synchronous = FULL")
    # macOS: without these an fsync stops at the drive's cache. Others take no notice.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    # What a savepoint may take back: more than 64 kB of it would be a file, made and removed.
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_A_CHECKPOINT}")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_KEPT_BYTES}")
    connection.execute("PRAGMA foreign_keys = ON")
    if max_bytes is not None:
        connection.execute(f"PRAGMA max_page_count = {max(1, max_bytes // _PAGE_BYTES)}")


def _use_a_log(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"The store {path} needs SQLite's write-ahead log, which this file system does not "
            "support; put the workspace on a local disk."
        )


def connect_beside(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write, to a store that nobody may have open."""
    if lock_file(path).exists():  # else it is a back-up, which needs no index
        room.refuse_without_room(path)
    return connect_reader(path)


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write."""
    return _connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    # isolation_level None: transactions begin and end in our words, not when the module thinks.
    # check_same_thread off: connections pass between threads, to one at a time.
    connection = sqlite3.connect(
        name, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False, uri=uri
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def told_plainly(where: str, *, opening: bool = False) -> Iterator[None]:
    """Turn SQLite's complaints about the file or the disk into ours; others pass unchanged."""
    try:
        yield
    except sqlite3.Error as error:
        plain = in_our_words(error, where, opening=opening)
        if plain is None:
            raise
        raise plain from error


_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_ROOM = frozenset(
    {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE}
)
# The files beside the database, which SQLite makes when it opens it.
_BESIDE = frozenset({sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN})
_DISK = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_WRITING = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_FILE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)


def in_our_words(error: sqlite3.Error, where: str, *, opening: bool = False) -> StoreError | None:
    """Name what is wrong with the file or the disk; ``None`` if neither is.

    While a store is ``opening``, nothing of anybody's was to be written yet.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    kind = code & 0xFF
    if kind in _DAMAGE:
        return damaged(where, str(error))
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return room.full(Path(where))
    if kind in _DISK or code in _BESIDE or (opening and kind in _WRITING):
        unusable = room.why_unusable(Path(where))
        if unusable is not None:
            return unusable
    if kind == sqlite3.SQLITE_FULL or code in _NO_ROOM:
        return StoreFull(
            f"The store {where} could not be written ({error}); nothing of this batch was kept. "
            "Make room on the disk or raise the store's size limit, then try again."
        )
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"Another program holds the store {where} ({error}); close it, try again.")
    if kind in _FILE:
        return StoreError(f"The store {where} could not be used: {error}.")
    return None


def damaged(where: str, finding: str) -> StoreDamaged:
    """Say what is damaged and what to do."""
    return StoreDamaged(f"The store {where} is damaged: {finding.rstrip('.')}. {RESTORE}")


def finding(error: sqlite3.DatabaseError) -> str:
    """Give the text of an error that means damage; any other is raised again."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
        raise error
    return str(error)


def structural_problems(connection: sqlite3.Connection, *, thorough: bool) -> list[str]:
    """Let SQLite look at every page, and when ``thorough`` also compare indexes with rows."""
    pragma = "integrity_check" if thorough else "quick_check"
    try:
        found = connection.execute(f"PRAGMA {pragma}(20)").fetchall()
    except sqlite3.DatabaseError as error:
        return [finding(error)]
    lines = [line for (text,) in found for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]
