"""A mount inside the workspace: what cannot be moved there in one step is refused by name."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.merge import ConflictKind
from agentcanvas.proposals.mounts import on_another_mount
from agentcanvas.proposals.tree import Tree
from tests.proposals.repositories import BRANCH, git, repository
from tests.proposals.workspaces import Files, scene, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("S6")]

_NODEV_NOSUID, _BIND, _DETACH = 6, 4096, 2
BEFORE: Files = {"a.txt": "1\n", "data/x.txt": "1\n", "data/y.txt": "1\n"}
DETAIL = (
    "lies on another disk or mount than .agentcanvas/, and files are moved into place within one"
)


@contextmanager
def mounted(what: bytes, place: Path, kind: bytes, flags: int) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(what, os.fsencode(place), kind, flags, ctypes.c_char_p(b"")):
        pytest.skip(f"no mount here: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(os.fsencode(place), _DETACH)


@contextmanager
def a_disk(root: Path) -> Iterator[None]:
    with mounted(b"tmpfs", root / "data", b"tmpfs", _NODEV_NOSUID):
        write_files(root, {path: text for path, text in BEFORE.items() if path != "a.txt"})
        yield


@contextmanager
def the_same_disk_once_more(root: Path) -> Iterator[None]:
    """No rename leads from one mount to another, though it is one disk."""
    other = write_files(root.parent / "other", {"x.txt": "1\n", "y.txt": "1\n"})
    with mounted(os.fsencode(other), root / "data", b"", _BIND):
        yield


@contextmanager
def one_file(root: Path) -> Iterator[None]:
    other = write_files(root.parent / "other", {"x.txt": "1\n"})
    with mounted(os.fsencode(other / "x.txt"), root / "data" / "x.txt", b"", _BIND):
        yield


MOUNTS = {"a disk": a_disk, "the same disk once more": the_same_disk_once_more, "a file": one_file}
AFTER: dict[str, Files] = {
    "edited": {**BEFORE, "a.txt": "2\n", "data/x.txt": "2\n"},
    "deleted": {path: text for path, text in BEFORE.items() if path != "data/x.txt"},
    "made in a new folder": {**BEFORE, "data/new/x.txt": "2\n"},
}
CASES = [
    (mount, change)
    for mount in MOUNTS
    for change in AFTER
    if (mount, change) != ("a file", "made in a new folder")
]


@pytest.mark.parametrize(("mount", "change"), CASES)
async def test_a_change_on_another_mount_is_refused_before_anything_is_done(
    tmp_path: Path, mount: str, change: str
) -> None:
    ready = scene(tmp_path, BEFORE, AFTER[change])
    with MOUNTS[mount](ready.workspace):
        landing = Landing(ready.workspace)
        (conflict,) = (await landing.check(ready.patch, ready.base)).conflicts
        assert (conflict.kind, conflict.detail) == (ConflictKind.ANOTHER_MOUNT, DETAIL)
        assert conflict.path.startswith("data/")
        with pytest.raises(ApplyConflict, match="Leave these files out, or land it on a branch"):
            await landing.apply("p1", ready.patch, ready.base)
        assert shot(ready.workspace) == shot(ready.base)
        assert [p.name for p in (ready.workspace / ".agentcanvas/apply").iterdir()] == ["lock"]


async def test_what_is_beside_the_mount_lands_and_is_taken_back(tmp_path: Path) -> None:
    ready = scene(tmp_path, BEFORE, {**BEFORE, "a.txt": "2\n", "new/b.txt": "b\n"})
    with a_disk(ready.workspace):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
        assert (ready.workspace / "a.txt").read_text() == "2\n"
        await Landing(ready.workspace).undo("p1")
        assert shot(ready.workspace) == shot(ready.base)


async def test_an_undo_that_a_mount_is_in_the_way_of_waits_for_it_to_go(tmp_path: Path) -> None:
    ready = scene(tmp_path, BEFORE, AFTER["edited"])
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base)
    landed = shot(ready.workspace)
    with ExitStack() as mounts:
        mounts.enter_context(a_disk(ready.workspace))
        write_files(ready.workspace, {"data/x.txt": "2\n"})
        with pytest.raises(ApplyConflict, match=r"data/x\.txt: lies on another disk or mount"):
            await landing.undo("p1")
    assert shot(ready.workspace) == landed
    await landing.undo("p1")
    assert shot(ready.workspace) == shot(ready.base)


async def test_a_branch_takes_what_the_files_cannot(tmp_path: Path) -> None:
    ready = repository(tmp_path, BEFORE, AFTER["edited"])
    with a_disk(ready.workspace):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base, way=BRANCH)
        assert git(ready.workspace, "show", f"{BRANCH.name}:data/x.txt") == "2\n"


@pytest.mark.parametrize("path", ["a.txt", "data/x.txt", "no/such/folder/x", "data/link"])
def test_without_mounts_nothing_is_on_another(tmp_path: Path, path: str) -> None:
    root = write_files(tmp_path / "w", BEFORE)
    (root / "data" / "link").symlink_to("/proc/version")
    with Tree(root) as tree:
        assert on_another_mount([path.encode()], tree, tmp_path) == []
