"""The schema, as a numbered list of steps; each file remembers how far it has come.

Packages above keep their tables here too: append a step, never change one that was released. All
steps a file lacks are taken in one transaction, so a crash leaves the old version whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from uuid import uuid4

from agentcanvas.errors import StoreError, StoreTooNew
from agentcanvas.store.database import APPLICATION_ID


class Migration(NamedTuple):
    """One step: SQL statements, or a function where SQL is not enough."""

    number: int
    name: str
    step: str | Callable[[sqlite3.Connection], None]


EVENTS = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- AUTOINCREMENT: a number is never given twice, also after its row was deleted, because it is the
-- event id of the live feed.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL
);

-- Within a stream the entries of an index are in the order of seq by themselves.
CREATE INDEX events_by_stream ON events (stream);
"""

PROJECTIONS = """
-- Every event up to seq is in the files of the projection, and these are on disk.
CREATE TABLE projections (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) WITHOUT ROWID;

-- The file holds, from first_seq to seq, what is its; its first size bytes are on disk.
CREATE TABLE projection_files (
    path TEXT PRIMARY KEY,
    projection TEXT NOT NULL REFERENCES projections (name),
    first_seq INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    size INTEGER NOT NULL
) WITHOUT ROWID;
"""

HUB = """
-- A conversation, who takes part, and along which edges they may speak (NULL: everybody to
-- everybody).
CREATE TABLE hub_sessions (
    session TEXT PRIMARY KEY,
    owner TEXT,
    members TEXT NOT NULL,
    edges TEXT
) WITHOUT ROWID;

-- One row for each copy of a message; seq is the event that holds its content. Rows that were taken
-- over stay a while, to recognise repeats. key and digest are 64 bits of the hashes of the id and
-- of the content; the id is a random number, and a small index keeps the pages that a batch touches
-- few.
CREATE TABLE hub_letters (
    seq INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    band INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    state INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    reason TEXT
);
CREATE INDEX hub_letters_by_key ON hub_letters (key);
CREATE INDEX hub_letters_waiting ON hub_letters (recipient) WHERE state = 0;
CREATE INDEX hub_letters_expiring ON hub_letters (expires_ms)
    WHERE state = 0 AND expires_ms IS NOT NULL;
CREATE INDEX hub_letters_dead ON hub_letters (state) WHERE state = 2;

-- What waits or died is somebody's mail: its content is not forgotten, whatever the rules say.
CREATE TRIGGER hub_letters_keep_their_events BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM hub_letters WHERE seq = OLD.seq AND state IN (0, 2))
BEGIN
    SELECT RAISE(IGNORE);
END;

-- opened: somebody was connected and may have seen what waits, should the hub end without a word.
CREATE TABLE hub_inboxes (
    agent TEXT PRIMARY KEY,
    waiting INTEGER NOT NULL DEFAULT 0,
    opened INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What one agent owes another: a task or a review.
CREATE TABLE hub_duties (
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    message TEXT NOT NULL,
    owner TEXT NOT NULL,
    assignee TEXT NOT NULL,
    open INTEGER NOT NULL,
    PRIMARY KEY (session, kind, name)
) WITHOUT ROWID;
CREATE INDEX hub_duties_by_message ON hub_duties (session, message);
CREATE INDEX hub_duties_open ON hub_duties (assignee) WHERE open = 1;

-- Which session a correlation id belongs to; whatever is not here belongs to the default one.
CREATE TABLE hub_threads (
    correlation TEXT PRIMARY KEY,
    session TEXT NOT NULL
) WITHOUT ROWID;
"""

HUB_DOORS = """
-- How often a letter was handed out again without a word about the time before (-1: it was resent).
ALTER TABLE hub_letters ADD COLUMN returns INTEGER NOT NULL DEFAULT 0;

-- For reading what came, taken over or not, from a cursor on.
CREATE INDEX hub_letters_by_recipient ON hub_letters (recipient);

-- Who may come in. The token itself is nowhere, only its hash.
CREATE TABLE hub_tokens (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    scopes TEXT NOT NULL,
    permissions TEXT NOT NULL,
    made_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) WITHOUT ROWID;
CREATE INDEX hub_tokens_by_principal ON hub_tokens (principal);

-- Messages that wait for a person's consent, and what became of those that did.
CREATE TABLE hub_approvals (
    ask TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    sender TEXT NOT NULL,
    id TEXT NOT NULL,
    digest INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    message BLOB NOT NULL,
    UNIQUE (session, sender, id)
) WITHOUT ROWID;

-- AUTOINCREMENT: a number is never given twice, so that a cut at the end shows too.
CREATE TABLE hub_audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    prev BLOB NOT NULL,
    entry BLOB NOT NULL,
    hash BLOB NOT NULL
);
"""

HUB_CALLBACKS = """
-- The address to call when it has ended, if the assignment names one.
ALTER TABLE hub_duties ADD COLUMN callback TEXT;

-- Calls to be made, and what became of them; ending is the id of the message that ended the task.
CREATE TABLE hub_callbacks (
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    ending TEXT NOT NULL,
    url TEXT NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    PRIMARY KEY (session, message)
) WITHOUT ROWID;
CREATE INDEX hub_callbacks_due ON hub_callbacks (next_ms) WHERE state = 'due';
"""


def give_an_identity(connection: sqlite3.Connection) -> None:
    """Name this history, so that a cursor into another one (before a restore) is recognised."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('id', ?)", (str(uuid4()),))


MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "events", EVENTS),
    Migration(2, "identity", give_an_identity),
    Migration(3, "projections", PROJECTIONS),
    Migration(4, "hub", HUB),
    Migration(5, "hub doors", HUB_DOORS),
    Migration(6, "hub callbacks", HUB_CALLBACKS),
)


def version(connection: sqlite3.Connection) -> int:
    """Tell how far this file has come."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_foreign(
    connection: sqlite3.Connection, where: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Refuse a file that is not ours, or from a later time than this program."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application_id != APPLICATION_ID:
        raise StoreError(
            f"{where} is an SQLite file, but not a store of AgentCanvas; name another."
        )
    known = migrations[-1].number
    if (found := version(connection)) > known:
        raise StoreTooNew(
            f"The store {where} has version {found}; this AgentCanvas knows up to {known}. "
            f"Upgrade AgentCanvas, or restore a back-up of version {known} or earlier with "
            "`agentcanvas store restore BACKUP`."
        )


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Take every step this file lacks, all or none."""
    found = version(connection)
    missing = [migration for migration in migrations if migration.number > found]
    if not missing:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in missing:
            _take(connection, migration)
        connection.execute(f"PRAGMA user_version = {missing[-1].number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _take(connection: sqlite3.Connection, migration: Migration) -> None:
    if callable(migration.step):
        migration.step(connection)
        return
    # Not executescript: that would commit what is open first.
    for statement in _statements(migration.step):
        connection.execute(statement)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), f"a migration ends in the middle of a statement: {statement!r}"
