"""One owner at a time (D1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.errors import StoreBusy, StoreError, StoreTooNew
from agentcanvas.store import OwnerLock, Store
from agentcanvas.store.migrations import MIGRATIONS, Migration

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]

HOLDER = """
import sys
from pathlib import Path
from agentcanvas.store import OwnerLock

with OwnerLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_owner_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    lock = tmp_path / "server.lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreBusy, match=f"held by process {holder.pid}"):
            OwnerLock(lock).acquire()
        holder.kill()
    with OwnerLock(lock):
        assert lock.read_text() == f"{os.getpid()}\n"


def test_a_lock_is_free_after_release_and_in_the_same_process_too(tmp_path: Path) -> None:
    lock = tmp_path / "server.lock"
    with OwnerLock(lock), pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
        OwnerLock(lock).acquire()
    with OwnerLock(lock):
        pass
    assert lock.read_text() == ""


def test_a_lock_is_had_also_where_its_holder_cannot_be_written_down(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from agentcanvas.errors import StoreBusy\n"
        "from agentcanvas.store import OwnerLock\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # as on a full disk\n"
        "with OwnerLock(Path(sys.argv[1])):\n"
        "    try:\n"
        "        OwnerLock(Path(sys.argv[1])).acquire()\n"
        "    except StoreBusy as busy:\n"
        "        print(busy)\n"
    )
    lock = str(tmp_path / "server.lock")
    done = subprocess.run([sys.executable, "-c", code, lock], capture_output=True, check=False)
    assert done.stderr == b""
    assert b"held by another process" in done.stdout


def test_a_lock_that_cannot_be_made_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        OwnerLock(tmp_path / "missing" / "server.lock").acquire()


async def test_a_store_has_one_owner(path: Path) -> None:
    async with await Store.open(path) as store:
        with pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
            await Store.open(path)
        assert await store.append("s", "k", b"{}") == 1
    async with await Store.open(path) as store:
        assert store.head == 1


async def test_a_store_that_fails_to_open_is_not_left_locked(path: Path) -> None:
    newer = [*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, "newer", "CREATE TABLE newer (x);")]
    async with await Store.open(path, migrations=newer):
        pass
    with pytest.raises(StoreTooNew):
        await Store.open(path)
    async with await Store.open(path, migrations=newer):
        pass
