"""Disks that fill up, folders that go away, rights that are missing, trees without end."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentcanvas.errors import SandboxError, Unpatchable
from agentcanvas.sandbox import copying, listing, manifest
from agentcanvas.sandbox import generation as generation_module
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import (
    edits_since,
    generation_numbers,
    take_generation,
)
from agentcanvas.sandbox.prepare import open_sandbox, prepare_sandbox, restore_work
from agentcanvas.sandbox.trees import remove_path
from tests.sandbox.conftest import RUN, git, tree_of, write
from tests.sandbox.digging import dig
from tests.sandbox.ordinary_user import as_ordinary_user

pytestmark = pytest.mark.req("S1", "D7")

_NODEV_NOSUID = 6


@contextmanager
def in_memory(place: Path, options: bytes) -> Iterator[str]:
    """Mount a disk in memory; gives the reason where that is not possible."""
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", _NODEV_NOSUID, ctypes.c_char_p(options)):
        yield os.strerror(ctypes.get_errno())
        return
    try:
        yield ""
    finally:
        libc.umount2(os.fsencode(place), 2)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of eight megabytes, really full when it is full."""
    with in_memory(tmp_path / "disk", b"size=8m") as refusal:
        if refusal:
            pytest.skip(f"no mount here: {refusal}")
        yield tmp_path / "disk"


@pytest.fixture
def quick_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk on which many files are made quickly, an ordinary one where there is none."""
    with in_memory(tmp_path / "disk", b"size=512m,nr_inodes=600k"):
        yield tmp_path / "disk"


def used(place: Path) -> int:
    status = os.statvfs(place)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


async def test_a_disk_that_fills_up_while_the_workspace_is_frozen_is_as_before(
    small_disk: Path,
) -> None:
    write(small_disk, {f"file{number}": b"x" * 500_000 for number in range(10)})
    before = used(small_disk)
    with pytest.raises(SandboxError, match=r"No space left.*agentcanvas sandbox clean"):
        await take_generation(small_disk, RUN)
    assert generation_numbers(small_disk, RUN) == []
    assert used(small_disk) - before < 100_000
    for number in range(6):
        (small_disk / f"file{number}").unlink()
    assert len((await take_generation(small_disk, RUN)).seen) == 4


async def test_a_disk_that_fills_up_while_a_sandbox_is_made_is_as_before(
    small_disk: Path,
) -> None:
    write(small_disk, {f"file{number}": b"x" * 500_000 for number in range(6)})
    base = await take_generation(small_disk, RUN)
    before = used(small_disk)
    with pytest.raises(SandboxError, match="No space left"):
        await prepare_sandbox(base, "coder")
    assert used(small_disk) - before < 100_000
    with pytest.raises(SandboxError, match="has no sandbox"):
        await open_sandbox(small_disk, RUN, "coder")
    for number in range(4):
        (small_disk / f"file{number}").unlink()
    sandbox = await prepare_sandbox(base, "coder")
    assert tree_of(sandbox.work_dir) == tree_of(base.tree)


async def test_a_disk_that_fills_up_while_work_is_taken_back_leaves_no_half_sandbox(
    small_disk: Path,
) -> None:
    write(small_disk, {f"file{number}": b"x" * 500_000 for number in range(5)})
    base = await take_generation(small_disk, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    for number in range(5):
        (sandbox.work_dir / f"file{number}").unlink()
    write(small_disk, {"fill": b"x" * 2_000_000})
    with pytest.raises(SandboxError, match="taken back"):
        await restore_work(sandbox)
    with pytest.raises(SandboxError, match="has no sandbox"):
        await open_sandbox(small_disk, RUN, "coder")
    (small_disk / "fill").unlink()
    again = await prepare_sandbox(base, "coder")
    assert tree_of(again.work_dir) == tree_of(base.tree)


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("files", [1, 4])
async def test_an_error_at_any_file_leaves_no_half_sandbox(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, kind: int, files: int
) -> None:
    base = await take_generation(workspace, RUN)
    copy, left = copying.copy_file, iter(range(files))

    def failing(*arguments: object, **places: object) -> object:
        if next(left, None) is None:
            raise OSError(kind, os.strerror(kind))
        return copy(*arguments, **places)  # type: ignore[arg-type]  # passed through as it came

    with monkeypatch.context() as patch:
        patch.setattr(copying, "copy_file", failing)
        with pytest.raises(SandboxError, match=os.strerror(kind)):
            await prepare_sandbox(base, "coder")
    root = workspace / ".agentcanvas/sandboxes" / RUN / "coder"
    assert not (root / "work").exists()
    assert not (root / "input").exists()
    assert tree_of((await prepare_sandbox(base, "coder")).work_dir) == tree_of(workspace)


async def test_a_folder_that_goes_away_while_it_is_listed_is_not_in_the_base(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {"a/1": "1", "b/2": "2", "c/3": "3"})
    looked = listing._is_left_out

    def leaving(base: bytes, inside: bytes, name: bytes) -> bool:
        if name == b"b":
            remove_path(folder / "b")
        return looked(base, inside, name)

    monkeypatch.setattr(listing, "_is_left_out", leaving)
    base = await take_generation(folder, RUN)
    assert set(base.seen) == {b"a/1", b"c/3"}


@pytest.mark.parametrize("becomes", ["nothing", "link", "folder", "pipe", "another file"])
async def test_a_file_that_becomes_something_else_while_it_is_copied(
    workspace: Path, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every change between the listing and the copy: the base is of one moment a file."""
    settle = manifest.settle
    readme = workspace / "README.md"

    def changing(folder: Path, newest: int) -> None:
        settle(folder, newest)
        readme.unlink()
        if becomes == "link":
            readme.symlink_to("tool.sh")
        elif becomes == "folder":
            write(workspace, {"README.md/inside": "i"})
        elif becomes == "pipe":
            os.mkfifo(readme)
        elif becomes == "another file":
            readme.write_text("other")

    monkeypatch.setattr(generation_module, "settle", changing)
    base = await take_generation(workspace, RUN)
    assert len(base.seen) == (5 if becomes in {"link", "another file"} else 4)
    assert (b"README.md" in base.seen) == (base.tree / "README.md").exists()
    monkeypatch.undo()
    edits = await edits_since(base)
    assert [edit.path for edit in edits] == ([b"README.md/inside"] if becomes == "folder" else [])


async def test_a_workspace_that_is_written_to_all_the_time_is_frozen_file_by_file(
    workspace: Path,
) -> None:
    """A writer that replaces files as editors do: each copy is one version, never a mixture."""
    versions = [bytes([65 + number]) * 50_000 for number in range(8)]
    done = threading.Event()

    def write_on() -> None:
        number = 0
        while not done.is_set():
            number += 1
            fresh = workspace / ".git" / f"fresh{number % 3}"
            fresh.write_bytes(versions[number % 8])
            fresh.replace(workspace / f"busy{number % 3}")

    for number in range(3):
        (workspace / f"busy{number}").write_bytes(versions[0])
    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for number in range(10):
            try:
                base = await take_generation(workspace, f"{RUN}_{number}")
            except SandboxError as error:
                assert "keeps changing" in str(error)  # noqa: PT017 -- both outcomes are right
                continue
            for name in ("busy0", "busy1", "busy2"):
                assert (base.tree / name).read_bytes() in versions
    finally:
        done.set()
        writer.join()


async def test_a_tree_deeper_than_a_path_can_say_is_refused_and_can_be_removed(
    workspace: Path,
) -> None:
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    dig(sandbox.work_dir, 2500)
    with pytest.raises(Unpatchable, match="deeper than a path can say"):
        await make_patch(sandbox)
    restored = await restore_work(sandbox)
    assert tree_of(restored.work_dir) == tree_of(workspace)
    assert (await make_patch(restored)).changes == ()


def test_a_deep_tree_is_removed_whatever_its_names_and_rights(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    dig(root, 1500, name="n" * 100)
    dig(root, 1200, name=".lifted-1")
    (root / ".lifted-2").write_text("in the way")
    write(root, {"wide/a/b": "b"})
    (root / "wide/a").chmod(0)
    remove_path(root)
    assert not root.exists()


CLOSED = """
import sys, anyio
from pathlib import Path
from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import prepare_sandbox, restore_work
from agentcanvas.sandbox.diff import make_patch

async def main(root):
    base = await take_generation(root, "run_20260219_100000")
    sandbox = await prepare_sandbox(base, "coder")
    work = sandbox.work_dir
    (work / "src/deep/er/mod.py").write_text("changed")
    (work / "src/deep").chmod(0o500)
    (work / "src/deep/er").chmod(0)
    (work / "README.md").chmod(0)
    print([c.path for c in (await make_patch(sandbox)).changes])
    restored = await restore_work(sandbox)
    print([c.path for c in (await make_patch(restored)).changes])
    (root / ".agentcanvas/sandboxes/run_20260219_100000").chmod(0o500)
    try:
        await prepare_sandbox(base, "other")
    except SandboxError as error:
        print(error)

anyio.run(main, Path(sys.argv[1]))
"""


def test_rights_that_an_agent_took_away_are_taken_back(workspace: Path) -> None:
    first, second, third = as_ordinary_user(CLOSED, str(workspace)).splitlines()
    assert first == "[b'src/deep/er/mod.py']"
    assert second == "[]"
    assert third.startswith("The sandbox of 'other' could not be made:")
    assert "Permission denied" in third
    (workspace / ".agentcanvas/sandboxes" / RUN).chmod(0o700)


async def test_a_hundred_thousand_files_come_through(quick_disk: Path) -> None:
    """Empty ones, so that it is the number that counts."""
    workspace = quick_disk / "large"
    for folder in range(50):
        (workspace / f"f{folder}").mkdir(parents=True)
        for number in range(2000):
            os.close(os.open(workspace / f"f{folder}/{number}", os.O_CREAT | os.O_WRONLY, 0o644))
    git(workspace, "init", "-q")
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    assert len(base.seen) == len(sandbox.filled) == 100_000
    (sandbox.work_dir / "f7/77").write_text("changed")
    (sandbox.work_dir / "f49/1999").unlink()
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"f49/1999", b"f7/77"]
