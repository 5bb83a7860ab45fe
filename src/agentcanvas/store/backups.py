"""Checking, copying and bringing back a store.

Every function works on files; none needs the store to be open. Those that run beside an open store
read it like any other reader. When to make back-ups, and how many to keep, is left to the user.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import StoreDamaged, StoreError, StoreFull
from agentcanvas.store import events, lines
from agentcanvas.store.database import (
    connect_beside,
    damaged,
    finding,
    make_private,
    structural_problems,
    told_plainly,
)
from agentcanvas.store.lock import OwnerLock, lock_file
from agentcanvas.store.migrations import MIGRATIONS, give_an_identity, refuse_foreign, version
from agentcanvas.store.transaction import Snapshot

T = TypeVar("T")

_MOST_NAMED = 20


def problems(connection: sqlite3.Connection) -> list[str]:
    """Look at every page, index, reference and checksum; return what is wrong, in sentences."""
    found = structural_problems(connection, thorough=True)
    try:
        for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
            found.append(f"row {row} of the table {table} refers to a missing row of {parent}")
        for seq in events.damaged_rows(connection):
            found.append(events.damaged_row(seq))
            if len(found) >= _MOST_NAMED:
                break
    except sqlite3.DatabaseError as error:
        found.append(finding(error))
    return found


def check(path: Path) -> list[str]:
    """Examine a store or a back-up, in use or not; an empty list means that all is well."""
    _refuse_missing(path)
    with told_plainly(str(path), opening=True), closing(connect_beside(path)) as connection:
        found = structural_problems(connection, thorough=False)
        if not found:
            refuse_foreign(connection, str(path))
            found = problems(connection)
        return found


def read_file(path: Path, look: Callable[[Snapshot], T]) -> T:
    """Run ``look`` on one committed state of a store, in use or not; nothing of it is changed."""
    _refuse_missing(path)
    where = str(path)
    with told_plainly(where, opening=True), closing(connect_beside(path)) as connection:
        refuse_foreign(connection, where)
        if version(connection) < MIGRATIONS[-1].number:
            raise StoreError(
                f"The store {where} is from an older AgentCanvas; use it once with this one, which "
                "upgrades it."
            )
        connection.execute("BEGIN")
        return look(Snapshot(connection, where=where))


def backup(path: Path, to: Path) -> None:
    """Copy a store, in use or not, as it is at one moment; ``to`` is replaced at once or not."""
    _refuse_missing(path)
    if to.exists() and to.samefile(path):
        raise StoreError(f"{to} is the store itself; name another file for the back-up.")
    fresh = _beside(to)
    with _told_plainly(to):
        try:
            if found := _copy(path, fresh):
                # Better an old back-up that is whole than a new one that is not.
                raise damaged(str(path), f"{found[0]}; no back-up was made of it")
            lines.sync(fresh)
            fresh.replace(to)
        finally:
            fresh.unlink(missing_ok=True)
        lines.sync_folder(to.parent)


def restore(backup_path: Path, path: Path, *, clock: Clock | None = None) -> Path | None:
    """Put a back-up in the place of the store; return where the replaced store was kept.

    The back-up is examined first, the store must not be in use, and a crash on the way leaves the
    old store or the new one. Lines that projections wrote after the back-up was made leave their
    files when the store is opened again, because their events are no longer in it.
    """
    _refuse_missing(backup_path)
    fresh = _beside(path)
    with OwnerLock(lock_file(path)), _told_plainly(path):
        try:
            if found := _copy(backup_path, fresh):
                raise StoreDamaged(
                    f"The back-up {backup_path} is damaged: {found[0]}. Use another."
                )
            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                give_an_identity(connection)
            lines.sync(fresh)
            kept = _set_aside(path, clock or SystemClock())
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
        lines.sync_folder(path.parent)
        return kept


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _copy(path: Path, fresh: Path) -> list[str]:
    """Copy what is committed into one file without a log; tell what is wrong in it."""
    fresh.unlink(missing_ok=True)
    make_private(fresh)
    with (
        closing(connect_beside(path)) as source,
        closing(sqlite3.connect(fresh, isolation_level=None)) as target,
    ):
        with told_plainly(str(path)):
            refuse_foreign(source, str(path))
            source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
        return problems(target)


def _set_aside(path: Path, clock: Clock) -> Path | None:
    """Give the store a second name, then take its log away from the first.

    In this order there is a store under the first name at any moment; and the log must be gone
    before another database takes that name, because SQLite would replay it there.
    """
    if not path.exists():
        return None
    stamp = clock.now().replace(":", "").replace("-", "")
    kept = path.with_name(f"{path.name}.replaced-{stamp}")
    for suffix in ("", "-wal"):
        old = path.with_name(path.name + suffix)
        if old.exists():
            _second_name(old, kept.with_name(kept.name + suffix))
    lines.sync_folder(path.parent)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    lines.sync_folder(path.parent)
    return kept


def _second_name(old: Path, new: Path) -> None:
    new.unlink(missing_ok=True)
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        shutil.copyfile(old, new)
        lines.sync(new)


@contextmanager
def _told_plainly(path: Path) -> Iterator[None]:
    """Say it in our words when ``path`` cannot be written."""
    try:
        with told_plainly(str(path)):
            yield
    except OSError as error:
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
        raise kind(
            f"{path} could not be written: {error.strerror}. Nothing was replaced."
        ) from error


def _refuse_missing(path: Path) -> None:
    if not path.is_file():
        raise StoreError(f"There is no store at {path}; name the file of a store or a back-up.")
