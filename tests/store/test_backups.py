"""Back-ups are made while the store is in use, and bring everything back (D2)."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StoreBusy, StoreDamaged, StoreError, StoreTooNew
from agentcanvas.store import Event, Store, backup, check, lines, restore
from agentcanvas.store.migrations import MIGRATIONS, Migration
from tests.store.helpers import PerStream, content, expected_files, files_in, overwrite, run_python

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


async def events_in(path: Path) -> list[Event]:
    async with await Store.open(path) as store:
        return await store.events(limit=100_000)


async def identity(path: Path) -> object:
    async with await Store.open(path) as store:
        return await store.read(lambda look: look.one("SELECT value FROM meta WHERE key = 'id'"))


async def test_a_backup_holds_one_moment_of_a_store_that_is_written_meanwhile(
    path: Path, copy: Path
) -> None:
    async with await Store.open(path) as store:
        copied = False

        async def write() -> None:
            while not copied:
                await store.append_many([("s", "k", b"{}")] * 10)

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(write)
            await store.wait_beyond(100)
            await store.backup(copy)
            copied = True
    assert check(copy) == []
    found = await events_in(copy)
    assert len(found) >= 100
    assert len(found) % 10 == 0
    assert found == (await events_in(path))[: len(found)]


async def test_a_backup_is_one_file_and_replaces_an_older_one(path: Path, copy: Path) -> None:
    async with await Store.open(path) as store:
        for number in (1, 2):
            await store.append("s", "k", b"{}")
            await store.backup(copy)
            assert {name for name in names_in(copy.parent) if name.startswith("backup")} == {
                "backup.db"
            }
            assert check(copy) == []
            assert store.head == number
    assert len(await events_in(copy)) == 2


async def test_a_store_that_nobody_has_open_is_backed_up_with_its_log(
    path: Path, copy: Path
) -> None:
    script = """
import os, signal, sys
from pathlib import Path
import anyio
from agentcanvas.store import Store

async def main():
    store = await Store.open(Path(sys.argv[1]))
    await store.append("s", "k", b"{}")
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""
    assert run_python(script, path) == -signal.SIGKILL
    assert path.with_name(path.name + "-wal").exists()
    backup(path, copy)
    assert len(await events_in(copy)) == 1


async def test_a_damaged_store_does_not_replace_a_good_backup(path: Path, copy: Path) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "k", b'{"marked": 1}')
        await store.backup(copy)
    good = content(copy)
    overwrite(path, content(path).index(b'{"marked": 1}'), b'{"marked": 2}')
    async with await Store.open(path) as store:
        with pytest.raises(StoreDamaged, match=r"row 1 of the table events .* no back-up was made"):
            await store.backup(copy)
    assert content(copy) == good
    assert not copy.with_name("backup.db.new").exists()


async def test_nobody_else_can_read_a_store_its_log_or_its_backup(path: Path, copy: Path) -> None:
    before = os.umask(0)
    try:
        async with await Store.open(path):
            backup(path, copy)
            written = list(path.parent.glob(f"{path.name}*"))
            assert len(written) > 2  # the log and its index are beside it
            assert {stat.S_IMODE(file.stat().st_mode) for file in [*written, copy]} == {0o600}
    finally:
        os.umask(before)


async def test_a_backup_over_the_store_itself_is_refused(path: Path) -> None:
    async with await Store.open(path) as store:
        with pytest.raises(StoreError, match="is the store itself"):
            await store.backup(path)


async def test_a_backup_into_a_folder_that_is_not_there_is_refused_plainly(path: Path) -> None:
    async with await Store.open(path) as store:
        with pytest.raises(StoreError, match="could not be used: unable to open database file"):
            await store.backup(path.parent / "missing" / "backup.db")


async def test_a_store_in_memory_has_no_file_to_copy() -> None:
    async with await Store.in_memory() as store:
        with pytest.raises(StoreError, match="in memory"):
            await store.backup(Path("anywhere"))


async def test_restoring_brings_back_what_was_and_keeps_what_is(
    path: Path, copy: Path, clock: VirtualClock
) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "before", b"{}")
        await store.backup(copy)
        await store.append("s", "after", b"{}")
    kept = restore(copy, path, clock=clock)
    assert kept == path.with_name("agentcanvas.db.replaced-20260101T000000.000Z")
    assert [event.kind for event in await events_in(path)] == ["before"]
    assert [event.kind for event in await events_in(kept)] == ["before", "after"]
    assert [event.kind for event in await events_in(copy)] == ["before"]


async def test_a_restored_store_is_another_history(path: Path, copy: Path) -> None:
    async with await Store.open(path) as store:
        await store.backup(copy)
    before = await identity(path)
    restore(copy, path)
    assert await identity(path) != before


async def test_a_damaged_store_is_replaced_log_and_all(path: Path, copy: Path) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "k", b"{}")
        await store.backup(copy)
        await store.append("s", "later", bytes(100_000))
        log = content(path.with_name(path.name + "-wal"))
    overwrite(path, 0, bytes(5000))
    overwrite_new(path.with_name(path.name + "-wal"), log)
    kept = restore(copy, path)
    assert kept
    assert content(kept.with_name(kept.name + "-wal")) == log
    assert [event.kind for event in await events_in(path)] == ["k"]
    assert check(path) == []


def overwrite_new(path: Path, data: bytes) -> None:
    path.write_bytes(data)


async def test_a_store_is_restored_where_none_is(path: Path, copy: Path) -> None:
    async with await Store.open(copy) as store:
        await store.append("s", "k", b"{}")
    assert restore(copy, path) is None
    assert len(await events_in(path)) == 1


async def test_nothing_is_touched_when_the_backup_cannot_be_used(path: Path, copy: Path) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "k", b'{"marked": 1}')
        await store.backup(copy)
    before = content(path)
    overwrite(copy, content(copy).index(b'{"marked": 1}'), b'{"marked": 2}')
    with pytest.raises(StoreDamaged, match=r"The back-up .* is damaged: row 1"):
        restore(copy, path)
    overwrite(copy, 0, bytes(1000))
    with pytest.raises(StoreDamaged, match="not a database"):
        restore(copy, path)
    with pytest.raises(StoreError, match="There is no store at"):
        restore(copy.with_name("missing"), path)
    newer = [*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, "newer", "CREATE TABLE n (x);")]
    async with await Store.open(path.with_name("newer.db"), migrations=newer):
        pass
    with pytest.raises(StoreTooNew):
        restore(path.with_name("newer.db"), path)
    assert content(path) == before
    assert not any("replaced" in name or name.endswith(".new") for name in names_in(path.parent))


async def test_a_store_in_use_is_not_replaced(path: Path, copy: Path) -> None:
    async with await Store.open(path) as store:
        await store.backup(copy)
        with pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
            restore(copy, path)
        assert await store.append("s", "k", b"{}") == 1


async def test_the_files_of_projections_go_back_with_the_store(path: Path, copy: Path) -> None:
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append("s", "k", b'"before"')
        await store.flush_projections()
        await store.backup(copy)
        await store.append("s", "k", b'"undone"')
    restore(copy, path)
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append("s", "k", b'"after"')
    assert files_in(path.parent) == expected_files(await events_in(path))
    assert b"undone" not in content(path.parent / "logs/s.jsonl")


@pytest.mark.parametrize("step", range(4))
async def test_a_crash_on_the_way_leaves_the_old_store_or_the_new_one(
    path: Path, copy: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "before", b"{}")
        await store.backup(copy)
        await store.append("s", "after", b"{}")

    class Crash(BaseException):
        pass

    calls = iter(range(100))

    def crash_at_the_step(_: Path) -> None:
        if next(calls) == step:
            raise Crash

    # Each step of a restore ends by bringing names to the disk: a crash there is one between steps.
    monkeypatch.setattr(lines, "sync_folder", crash_at_the_step)
    with pytest.raises(Crash):
        restore(copy, path)
    assert [event.kind for event in await events_in(path)] in (["before"], ["before", "after"])
    monkeypatch.undo()
    restore(copy, path)
    assert [event.kind for event in await events_in(path)] == ["before"]
