"""A full disk: everybody in the batch is told, nothing of it is kept, and the store goes on."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.errors import StoreFull
from agentcanvas.store import Retention, Store, StoreLimits, Transaction

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]

CHILD = Path(__file__).parent / "full_disk_child.py"


async def outcomes(store: Store, number: int, body: bytes) -> list[object]:
    results: list[object] = []

    async def writer() -> None:
        try:
            results.append(await store.append("s", "k", body))
        except StoreFull as error:
            results.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(number):
            group.start_soon(writer)
    return results


async def test_everybody_in_the_batch_is_told_and_nothing_of_it_is_kept(path: Path) -> None:
    async with await Store.open(path, limits=StoreLimits(max_bytes=400_000)) as store:
        assert await outcomes(store, 10, bytes(1000)) == list(range(1, 11))
        refused = await outcomes(store, 500, bytes(1000))
        assert all(isinstance(outcome, StoreFull) for outcome in refused)
        assert len({id(outcome) for outcome in refused}) == 500
        assert "nothing of this batch was kept. Make room" in str(refused[0])
        assert store.head == 10
        assert len(await store.events()) == 10
        assert await outcomes(store, 10, bytes(1000)) == list(range(11, 21))
        assert await store.check() == []


async def test_a_full_store_is_usable_again_after_something_was_forgotten(path: Path) -> None:
    async with await Store.open(path, limits=StoreLimits(max_bytes=400_000)) as store:
        refused = 0
        while not refused:
            refused = sum(
                isinstance(each, StoreFull) for each in await outcomes(store, 1, bytes(4000))
            )
        number = store.head
        assert await store.retain(Retention(streams="s", keep_last=number // 2))
        assert await store.append("s", "k", bytes(4000)) == number + 1


async def test_a_unit_that_fills_the_disk_is_told_with_the_rest_of_its_batch(path: Path) -> None:
    def fill(transaction: Transaction) -> None:
        transaction.append("s", "huge", bytes(1_000_000))

    async with await Store.open(path, limits=StoreLimits(max_bytes=400_000)) as store:
        failed: list[str] = []

        async def attempt(name: str) -> None:
            try:
                await (store.transact(fill) if name == "fill" else store.append("s", "k", b"{}"))
            except StoreFull:
                failed.append(name)

        async with anyio.create_task_group() as group:
            for name in ("before", "fill", "after"):
                group.start_soon(attempt, name)
        assert failed == ["before", "fill", "after"]
        assert await store.append("s", "k", b"{}") == 1


async def test_a_unit_cannot_carry_on_after_the_disk_was_full(path: Path) -> None:
    def carry_on(transaction: Transaction) -> None:
        transaction.append("s", "before", b"{}")
        with suppress(sqlite3.OperationalError):
            transaction.append("s", "huge", bytes(1_000_000))

    async with await Store.open(path, limits=StoreLimits(max_bytes=400_000)) as store:
        with pytest.raises(StoreFull, match="nothing of it was kept"):
            await store.transact(carry_on)
        assert await store.append("s", "k", b"{}") == 1
        assert [event.kind for event in await store.events()] == ["k"]


class FullAtCommit:
    """A connection whose disk fills up at the last moment."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.commits_to_refuse = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.commits_to_refuse:
            self.commits_to_refuse -= 1
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def test_a_disk_that_fills_up_during_the_commit_is_no_different(store: Store) -> None:
    faulty = FullAtCommit(store._writer._connection)
    store._writer._connection = faulty  # type: ignore[assignment] # stands in for a full disk
    faulty.commits_to_refuse = 1
    refused = await outcomes(store, 5, b"{}")
    assert all(isinstance(outcome, StoreFull) for outcome in refused)
    assert await outcomes(store, 5, b"{}") == [1, 2, 3, 4, 5]
    assert len(await store.events()) == 5


@pytest.mark.parametrize(
    "fault",
    [
        "pwrite64:error=ENOSPC:when=20..50",
        "pwrite64:error=EDQUOT:when=20..50",
        "fdatasync:error=ENOSPC:when=5..8",
    ],
)
async def test_what_was_acknowledged_around_a_full_disk_is_what_is_there(
    path: Path, fault: str
) -> None:
    async with await Store.open(path):
        pass  # so that the child's first writes are its events
    report = report_of_the_child(path, fault)
    assert report["refused"]
    assert max(report["acknowledged"]) > max(report["refused"])
    async with await Store.open(path) as store:
        assert [int(event.body) for event in await store.events()] == report["acknowledged"]
        assert await store.check() == []


def report_of_the_child(path: Path, fault: str) -> dict[str, list[int]]:
    """Let the kernel refuse some calls on the store's log; skip where that is not allowed."""
    strace = shutil.which("strace") or "strace"
    call = fault.partition(":")[0]
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-P", f"{path}-wal"]
    command += ["-e", f"trace={call}", "-e", f"inject={fault}"]
    try:
        subprocess.run([*command, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs strace, and the right to use it")
    finished = subprocess.run(
        [*command, sys.executable, str(CHILD), str(path)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    return msgspec.json.decode(finished.stdout, type=dict[str, list[int]])
