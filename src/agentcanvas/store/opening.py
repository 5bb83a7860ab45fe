"""From a path to a database that is ours alone, whole, and of today's schema.

What cannot be used is refused before a byte of it is changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from agentcanvas.store.database import (
    connect,
    damaged,
    keep_index_in_memory,
    make_writer,
    structural_problems,
    told_plainly,
)
from agentcanvas.store.limits import StoreLimits
from agentcanvas.store.lock import OwnerLock, lock_file
from agentcanvas.store.migrations import Migration, migrate, refuse_foreign
from agentcanvas.store.room import refuse_without_room


class Database:
    """An open database and the lock that makes it ours; ``None`` for a path is one in memory."""

    def __init__(
        self,
        path: Path | None,
        limits: StoreLimits,
        migrations: Sequence[Migration],
        projections: Sequence[str],
        *,
        alone: bool = False,
    ) -> None:
        """Open it, or raise a StoreError that says why not; ``alone`` needs no room for it."""
        self.path = path
        self.where = "in memory" if path is None else str(path)
        with ExitStack() as undo, told_plainly(self.where, opening=True):
            if path is not None:
                undo.enter_context(OwnerLock(lock_file(path)))
                if not alone:
                    refuse_without_room(path)
            self.connection = connect(path)
            undo.callback(self.connection.close)
            if alone:
                keep_index_in_memory(self.connection)
            self._refuse_unusable(limits, migrations)
            make_writer(self.connection, path, limits.max_bytes)
            migrate(self.connection, migrations)
            _register(self.connection, projections)
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Fold the log into the file, so that one file holds everything, and let go of both."""
        with self._undo, suppress(sqlite3.Error):  # nothing is lost: the next open reads the log
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _refuse_unusable(self, limits: StoreLimits, migrations: Sequence[Migration]) -> None:
        if self.path is not None and self.path.stat().st_size <= limits.examined_bytes:
            found = structural_problems(self.connection, thorough=False)
            if found:
                raise damaged(self.where, found[0])
        refuse_foreign(self.connection, self.where, migrations)


def _register(connection: sqlite3.Connection, projections: Sequence[str]) -> None:
    """Make projections known, so that no event is forgotten before they have written it."""
    connection.executemany(
        "INSERT OR IGNORE INTO projections (name, seq) VALUES (?, 0)",
        [(name,) for name in projections],
    )
