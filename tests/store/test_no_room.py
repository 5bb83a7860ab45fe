"""A disk that is full, or read-only, keeps a store from being opened; it is not called damaged."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentcanvas.errors import StoreError, StoreFull
from agentcanvas.store import Store, backup, check, restore
from tests.full_disks import fill, make_room, small_disk

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]

FULL = (
    r"The disk is full \(.* free on .*/disk\), so .*/agentcanvas.db cannot be opened; nothing is "
    "lost or damaged. Make room, for example: agentcanvas sandbox clean"
)
OPEN = """
import sys, anyio, pathlib
from agentcanvas.errors import StoreFull
from agentcanvas.store import Store, check
async def main():
    async with await Store.open(pathlib.Path(sys.argv[1])): pass
try:
    anyio.run(main) if sys.argv[2] == "open" else check(pathlib.Path(sys.argv[1]))
except StoreFull as error:
    print(error)
"""


@pytest.fixture(params=[4096, 1024])
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    with small_disk(request.param) as top:
        yield top


async def stored(path: Path) -> None:
    async with await Store.open(path) as store:
        assert await store.append("s", "k", b"{}") == 1


async def test_a_store_that_cannot_be_opened_for_want_of_room_is_whole(disk: Path) -> None:
    path = disk / "agentcanvas.db"
    await stored(path)
    fill(disk)
    with pytest.raises(StoreFull, match=FULL):
        await Store.open(path)
    with pytest.raises(StoreFull, match=FULL):
        check(path)
    make_room(disk)
    assert check(path) == []
    async with await Store.open(path) as store:
        assert await store.append("s", "k", b"{}") == 2


def opened_elsewhere(path: Path, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", OPEN, str(path), how]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_to_its_end(program: str, path: Path) -> None:
    subprocess.run([sys.executable, "-c", program, path], check=True)


@pytest.mark.parametrize("how", ["open", "check"])
@pytest.mark.parametrize("left", [4, 12, 20, 28, 36])
@pytest.mark.parametrize("block_bytes", [1024, 4096])
async def test_little_room_kills_nobody_who_opens_a_store(
    block_bytes: int, left: int, how: str
) -> None:
    with small_disk(block_bytes) as disk:
        path = disk / "agentcanvas.db"
        await stored(path)
        fill(disk, but=left * 1024)
        done = opened_elsewhere(path, how)
        assert done.returncode != -signal.SIGBUS
        assert (done.returncode, done.stderr) == (0, "")
        assert "nothing is lost or damaged" in done.stdout or not done.stdout
        make_room(disk)
        assert check(path) == []


async def test_a_store_that_could_not_be_made_is_made_when_there_is_room(disk: Path) -> None:
    path = disk / "agentcanvas.db"
    for left in (0, 12, 40, 80):
        fill(disk, but=left * 1024)
        with pytest.raises(StoreFull, match="nothing is lost or damaged"):
            await Store.open(path)
        make_room(disk)
    await stored(path)


async def test_a_store_that_nobody_else_reads_can_be_read_on_a_full_disk(disk: Path) -> None:
    path = disk / "agentcanvas.db"
    await stored(path)
    fill(disk)
    async with await Store.open(path, alone=True) as store:
        assert [event.kind for event in await store.events()] == ["k"]
    make_room(disk)
    async with await Store.open(path) as store:
        assert await store.append("s", "k", b"{}") == 2


async def test_a_store_alone_reads_what_a_killed_process_left_in_the_log(disk: Path) -> None:
    path = disk / "agentcanvas.db"
    killed = (
        "import sys, os, anyio, pathlib\n"
        "from agentcanvas.store import Store\n"
        "async def main():\n"
        "    store = await Store.open(pathlib.Path(sys.argv[1]))\n"
        "    await store.append('s', 'k', b'{}')\n"
        "    os._exit(0)\n"
        "anyio.run(main)\n"
    )
    run_to_its_end(killed, path)
    path.with_name("agentcanvas.db-shm").unlink()  # a machine that went down does not keep it
    assert path.with_name("agentcanvas.db-wal").stat().st_size
    fill(disk)
    async with await Store.open(path, alone=True) as store:
        assert [event.kind for event in await store.events()] == ["k"]


async def test_a_back_up_can_be_examined_and_restored_from_a_full_disk(
    disk: Path, tmp_path: Path
) -> None:
    path, copy = tmp_path / "agentcanvas.db", disk / "copy"
    await stored(path)
    backup(path, copy)
    fill(disk)
    assert check(copy) == []
    restore(copy, path)
    assert check(path) == []


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


async def test_a_read_only_file_system_is_named_and_not_called_damage(disk: Path) -> None:
    path = disk / "agentcanvas.db"
    await stored(path)
    said = r"The file system .*/disk is read-only, so .* cannot be opened; nothing is lost or dam"
    with read_only(disk):
        with pytest.raises(StoreError, match=said):
            await Store.open(path)
        with pytest.raises(StoreError, match=said):
            check(path)
    assert check(path) == []


async def test_a_reader_beside_an_open_store_needs_no_room(disk: Path) -> None:
    path = disk / "agentcanvas.db"
    async with await Store.open(path) as store:
        assert await store.append_many([("s", "k", bytes(2000))] * 200)
        assert await store.check() == []
        index = path.with_name("agentcanvas.db-shm").stat()
        if index.st_blocks * 512 < 32768:
            pytest.skip("the index has holes where blocks are smaller than pages")
        fill(disk)
        assert await store.check() == []
