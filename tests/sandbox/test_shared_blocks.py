"""Where copies share their blocks a sandbox takes next to nothing of the disk (XFS, btrfs)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox
from agentcanvas.sandbox.trees import shares_blocks
from tests.sandbox.conftest import RUN, tree_of, write
from tools.loop_disks import NoDisk, fresh_disk

pytestmark = pytest.mark.req("S1", "S3")

FILES = 300
BYTES = 64 * 1024
MEGABYTES = 400
"""XFS does not come smaller than 300."""


@pytest.fixture(params=["xfs", "btrfs"])
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Give an empty disk of the kind; needs root and the kind's mkfs."""
    try:
        with fresh_disk(request.param, MEGABYTES) as top:
            yield top
    except NoDisk as reason:
        pytest.skip(f"no {request.param} disk here: {reason}")


def used(disk: Path) -> int:
    subprocess.run(["sync", "--file-system", disk], check=True)
    return shutil.disk_usage(disk).used


async def prepared(disk: Path) -> tuple[Sandbox, int, int]:
    """Make a workspace and a sandbox on a disk; gives what each of them takes."""
    before = used(disk)
    workspace = disk / "workspace"
    write(workspace, {f"part{n % 20}/file{n}": os.urandom(BYTES) for n in range(FILES)})
    one = used(disk) - before
    sandbox = await prepare_sandbox(await take_generation(workspace, RUN), "coder")
    return sandbox, one, used(disk) - before - one


async def test_a_sandbox_takes_a_tenth_of_two_copies_at_most(disk: Path) -> None:
    assert shares_blocks(disk)
    sandbox, one, ours = await prepared(disk)
    assert one >= FILES * BYTES
    assert ours <= 0.1 * 2 * one
    assert len(tree_of(sandbox.work_dir)) == len(tree_of(sandbox.paths.input_dir)) == FILES


async def test_what_an_agent_writes_into_shared_blocks_is_its_own(disk: Path) -> None:
    sandbox, _, _ = await prepared(disk)
    workspace = sandbox.base.workspace
    before = tree_of(workspace)
    changed = sandbox.work_dir / "part0/file0"
    with changed.open("r+b") as file:
        file.write(b"one block of sixteen")
    assert tree_of(workspace) == before
    assert tree_of(sandbox.paths.input_dir) == before
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"part0/file0"]
