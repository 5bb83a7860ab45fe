"""Older files are upgraded, all steps or none; newer ones are refused (D2)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentcanvas.errors import StoreError, StoreTooNew
from agentcanvas.store import Store
from agentcanvas.store.database import APPLICATION_ID
from agentcanvas.store.migrations import MIGRATIONS, Migration, version
from tests.store.helpers import content, run_python

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]

LAST = MIGRATIONS[-1].number
MAILBOXES = Migration(
    LAST + 1,
    "mailboxes",
    """
    CREATE TABLE mailboxes (agent TEXT PRIMARY KEY);
    -- a comment; with a semicolon
    CREATE TRIGGER no_dots BEFORE INSERT ON mailboxes WHEN NEW.agent = '.' BEGIN
        SELECT raise(ABORT, 'no; dots');
    END;
    INSERT INTO mailboxes VALUES ('a;b');
    """,
)


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return version(connection)


def test_migrations_are_numbered_without_gaps_and_named_once() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(1, LAST + 1))
    assert len({migration.name for migration in MIGRATIONS}) == LAST


async def test_a_new_file_gets_every_step_and_an_identity_it_keeps(path: Path) -> None:
    identities = set()
    for _ in range(2):
        async with await Store.open(path) as store:
            identities.add(
                await store.read(lambda look: look.one("SELECT value FROM meta WHERE key = 'id'"))
            )
    assert len(identities) == 1
    assert version_of(path) == LAST


async def test_an_older_file_is_upgraded_and_keeps_what_it_holds(path: Path) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "k", b"{}")
    async with await Store.open(path, migrations=[*MIGRATIONS, MAILBOXES]) as store:
        assert store.head == 1
        assert await store.read(lambda look: look.query("SELECT * FROM mailboxes")) == [("a;b",)]
        with pytest.raises(sqlite3.IntegrityError, match="no; dots"):
            await store.transact(lambda t: t.execute("INSERT INTO mailboxes VALUES ('.')"))
    assert version_of(path) == LAST + 1


async def test_a_newer_file_is_refused_naming_both_versions_and_stays_as_it_is(path: Path) -> None:
    async with await Store.open(path, migrations=[*MIGRATIONS, MAILBOXES]):
        pass
    before = content(path)
    with pytest.raises(StoreTooNew, match=rf"version {LAST + 1}; .* up to {LAST}. Upgrade"):
        await Store.open(path)
    assert content(path) == before


async def test_a_step_that_fails_leaves_the_old_version_whole(path: Path) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        raise ZeroDivisionError

    async with await Store.open(path) as store:
        await store.append("s", "k", b"{}")
    before = tables(path)
    with pytest.raises(ZeroDivisionError):
        await Store.open(
            path, migrations=[*MIGRATIONS, MAILBOXES, Migration(LAST + 2, "bad", fail)]
        )
    assert tables(path) == before
    assert version_of(path) == LAST
    async with await Store.open(path) as store:
        assert store.head == 1


KILLED_MIGRATION = """
import os, signal, sys
from pathlib import Path

import anyio

from agentcanvas.store import Store
from agentcanvas.store.migrations import MIGRATIONS, Migration

def die(connection):
    connection.execute("CREATE TABLE half (x)")
    connection.execute("INSERT INTO half VALUES (zeroblob(3000000))")
    os.kill(os.getpid(), signal.SIGKILL)

last = MIGRATIONS[-1].number
steps = [*MIGRATIONS, Migration(last + 1, "good", "CREATE TABLE good (x);")]
steps.append(Migration(last + 2, "deadly", die))

async def main():
    await Store.open(Path(sys.argv[1]), migrations=steps)

anyio.run(main)
"""


async def test_a_process_killed_in_the_middle_of_a_migration_leaves_the_old_version(
    path: Path,
) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "k", b"{}")
    before = tables(path)
    assert run_python(KILLED_MIGRATION, path) == -9
    assert tables(path) == before
    async with await Store.open(path) as store:
        assert await store.check() == []
        assert store.head == 1
    assert version_of(path) == LAST


async def test_an_sqlite_file_of_somebody_else_is_refused_and_stays_as_it_is(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name)")
        connection.commit()
    before = content(path)
    with pytest.raises(StoreError, match="not a store of AgentCanvas"):
        await Store.open(path)
    assert content(path) == before


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    assert tables(path) == set()  # which made an empty file
    async with await Store.open(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
