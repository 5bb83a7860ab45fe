"""Damage is noticed, named, and answered with the way back (D2)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentcanvas.errors import StoreDamaged, StoreError
from agentcanvas.store import Store, StoreLimits, check
from tests.store.helpers import content, overwrite

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]

RESTORE = "agentcanvas store restore BACKUP"
PAGE = 4096


async def filled(path: Path, number: int = 200) -> None:
    async with await Store.open(path) as store:
        await store.append_many(
            [(f"s{index % 5}", "k", b'{"marked": %d}' % index) for index in range(number)]
        )


def root_page(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)
        ).fetchone()
    return int(page)


@pytest.mark.parametrize("name", ["events", "events_by_stream", "meta"])
async def test_a_damaged_page_is_found_when_the_store_is_opened(path: Path, name: str) -> None:
    await filled(path)
    overwrite(path, (root_page(path, name) - 1) * PAGE, b"\xde\xad\xbe\xef" * 64)
    damaged = content(path)
    with pytest.raises(StoreDamaged, match=f"{path.name} is damaged: .*{RESTORE}"):
        await Store.open(path)
    assert content(path) == damaged


async def test_a_file_that_is_no_database_is_called_damaged(path: Path) -> None:
    await filled(path)
    overwrite(path, 0, b"this was a store once " * 10)
    with pytest.raises(StoreDamaged, match=f"not a database. .*{RESTORE}"):
        await Store.open(path)
    with pytest.raises(StoreDamaged):
        await Store.open(path, limits=StoreLimits(examined_bytes=0))


async def test_a_file_cut_short_is_called_damaged(path: Path) -> None:
    await filled(path, 2000)
    with path.open("r+b") as file:
        file.truncate(5 * PAGE)
    with pytest.raises(StoreDamaged, match=RESTORE):
        await Store.open(path)


async def test_damage_in_a_file_too_large_to_examine_is_noticed_when_it_is_met(path: Path) -> None:
    await filled(path)
    overwrite(path, (root_page(path, "events") - 1) * PAGE, b"\xde\xad\xbe\xef" * 64)
    async with await Store.open(path, limits=StoreLimits(examined_bytes=0)) as store:
        with pytest.raises(StoreDamaged, match=RESTORE):
            await store.events()
        with pytest.raises(StoreDamaged, match=RESTORE):
            await store.append("s", "k", b"{}")
        with pytest.raises(StoreDamaged, match=RESTORE):
            await store.transact(lambda t: t.query("SELECT count(body) FROM events"))


async def test_a_damaged_row_is_named_when_it_is_read_and_the_others_are_not_lost(
    path: Path,
) -> None:
    await filled(path)
    offset = content(path).index(b'{"marked": 123}')
    overwrite(path, offset, b'{"marked": 124}')
    async with await Store.open(path) as store:  # the structure is whole
        with pytest.raises(StoreDamaged, match=rf"row 124 of the table events .*{RESTORE}"):
            await store.events()
        assert len(await store.events(limit=123)) == 123
        assert len(await store.events(after=124)) == 76
        assert await store.append("s", "k", b"{}") == 201
        assert await store.check() == ["row 124 of the table events does not read back as written"]
    assert len(check(path)) == 1


async def test_check_names_what_is_wrong_without_needing_the_store(path: Path) -> None:
    await filled(path)
    assert check(path) == []
    overwrite(path, (root_page(path, "events_by_stream") - 1) * PAGE, bytes(PAGE))
    assert any("Page" in problem or "page" in problem for problem in check(path))
    overwrite(path, 0, bytes(100))
    assert check(path) == ["file is not a database"]


async def test_check_finds_an_index_that_does_not_match_its_table(path: Path) -> None:
    await filled(path, 10)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = 'CREATE INDEX events_by_stream ON events (kind)' "
            "WHERE name = 'events_by_stream'"
        )
        connection.commit()
    assert "row 1 missing from index events_by_stream" in check(path)


def test_check_of_nothing_says_so(path: Path) -> None:
    with pytest.raises(StoreError, match="There is no store at"):
        check(path)


async def test_a_store_in_a_folder_that_is_not_there_is_refused_plainly(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        await Store.open(tmp_path / "missing" / "agentcanvas.db")


async def test_a_store_that_is_a_folder_is_refused_plainly(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be used: unable to open database file"):
        await Store.open(tmp_path)
