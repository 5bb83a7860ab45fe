"""A folder with the same stamp holds the same names; anything else about it is looked up."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentcanvas.sandbox import filling
from agentcanvas.sandbox.folders import folders_of, stamp_folders, untouched
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.manifest import entries_of, newest_change, scan, settle
from agentcanvas.sandbox.pool import pooled_trees
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox, restore_work, retire_sandbox
from agentcanvas.sandbox.trees import remove_path
from tests.sandbox.conftest import RUN, tree_of, write

pytestmark = pytest.mark.req("D15", "S3")

NEXT = "run_20260220_100000"
PATHS = (b"top", b"a/one", b"a/b/two", b"a/b/c/three", b"d/four")
ALL = {b"a", b"a/b", b"a/b/c", b"d"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(tmp_path / "tree", {path.decode(): path for path in PATHS})
    return tmp_path / "tree"


def settled(tree: Path) -> dict[bytes, tuple[int, int, int, int, int]]:
    stamps = stamp_folders(tree, folders_of(PATHS))
    newest = max(newest_change(stamps.values()), newest_change(scan(tree).values()))
    assert settle(tree.parent, newest), "folders of this disk do not show what happens in them"
    return stamps


def test_folders_are_those_of_the_paths_without_the_top() -> None:
    assert folders_of(PATHS) == ALL
    assert folders_of([]) == folders_of([b"top"]) == set()


CHANGES: dict[str, tuple[Callable[[Path], object], set[bytes]]] = {
    "a name came": (lambda tree: write(tree, {"a/b/new": "n"}), ALL - {b"a/b"}),
    "a name went": (lambda tree: (tree / "a/one").unlink(), ALL - {b"a"}),
    "a file was replaced": (
        lambda tree: (tree / "top").rename(tree / "a/b/c/three"),
        ALL - {b"a/b/c"},
    ),
    "a folder came": (lambda tree: (tree / "d/new").mkdir(), ALL - {b"d"}),
    "a folder was closed": (lambda tree: (tree / "a/b").chmod(0o500), ALL - {b"a/b"}),
    "a file was written to": (lambda tree: write(tree, {"a/one": "changed"}), ALL),
    "the top was renamed": (lambda tree: tree.rename(tree.with_name("x")).rename(tree), ALL),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_is_untouched_until_a_name_in_it_comes_goes_or_is_replaced(
    tree: Path, change: str
) -> None:
    stamps = settled(tree)
    assert untouched(tree, stamps) == ALL
    happens, left = CHANGES[change]
    happens(tree)
    assert untouched(tree, stamps) == left


def test_below_a_link_in_the_place_of_a_folder_nothing_is_untouched(tree: Path) -> None:
    """The folders it leads to have their old stamps: they were only moved."""
    stamps = settled(tree)
    (tree / "a").rename(tree.parent / "elsewhere")
    (tree / "a").symlink_to(tree.parent / "elsewhere")
    assert untouched(tree, stamps) == {b"d"}
    remove_path(tree / "d")
    write(tree, {"d": "a file"})
    assert untouched(tree, stamps) == set()


def test_a_disk_whose_folders_do_not_show_it_is_found_out(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "stat", lambda *_, **__: SimpleNamespace(st_ctime_ns=1))
    assert not settle(tree.parent, newest_change(scan(tree).values()))


def listed_folders(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Note the folders that are listed from now on."""
    listed: list[bytes] = []

    def noting(folder: bytes) -> object:
        listed.append(folder)
        return entries_of(folder)

    monkeypatch.setattr(filling, "entries_of", noting)
    return listed


async def test_of_used_trees_only_folders_that_were_touched_are_listed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.work_dir, {"src/app.py": "in place", "src/deep/new.py": "a new name"})
    assert await retire_sandbox(sandbox)
    later = await take_generation(workspace, NEXT, previous=base)
    listed = listed_folders(monkeypatch)
    again = await prepare_sandbox(later, "writer")
    work, top = os.fsencode(again.work_dir) + b"/", os.fsencode(again.paths.input_dir) + b"/"
    assert sorted(listed) == sorted([top, work, work + b"src/deep/"])
    assert tree_of(again.work_dir) == tree_of(again.paths.input_dir) == tree_of(workspace)


async def test_work_that_is_taken_back_is_listed_only_where_it_was_touched(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await prepare_sandbox(await take_generation(workspace, RUN), "coder")
    (sandbox.work_dir / "src/deep/er/mod.py").unlink()
    listed = listed_folders(monkeypatch)
    restored = await restore_work(sandbox)
    work = os.fsencode(restored.work_dir) + b"/"
    assert sorted(listed) == [work, work + b"src/deep/er/"]
    assert tree_of(restored.work_dir) == tree_of(workspace)


@pytest.mark.parametrize("told", [True, False])
async def test_names_that_came_and_went_while_trees_waited_are_put_right(
    workspace: Path, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where folders do not tell, all of them are listed."""
    if not told:
        monkeypatch.setattr("agentcanvas.sandbox.prepare.settle", lambda *_: False)
        monkeypatch.setattr(filling, "settle", lambda *_: False)
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    assert bool(sandbox.folders) == told
    assert await retire_sandbox(sandbox)
    (entry,) = pooled_trees(workspace)
    for part in ("work", "input"):
        write(entry / part, {"src/planted.py": "p", "planted/deep/file": "p"})
        remove_path(entry / part / "src/deep/er")
        (entry / part / "src/deep/er").symlink_to("/etc")
        (entry / part / "README.md").unlink()
    (entry / "work/src/deep").chmod(0o2500)
    again = await prepare_sandbox(await take_generation(workspace, NEXT, previous=base), "writer")
    assert tree_of(again.work_dir) == tree_of(again.paths.input_dir) == tree_of(workspace)
    assert (again.work_dir / "src/deep").stat().st_mode & 0o7700 == 0o700
    assert scan(again.work_dir) == again.filled


async def test_a_folder_closed_below_untouched_ones_is_opened_and_filled(
    workspace: Path,
) -> None:
    sandbox = await prepare_sandbox(await take_generation(workspace, RUN), "coder")
    (sandbox.work_dir / "src/deep/er/mod.py").unlink()
    (sandbox.work_dir / "src/deep/er").chmod(0o2000)
    restored: Sandbox = await restore_work(sandbox)
    assert (restored.work_dir / "src/deep/er").stat().st_mode & 0o7700 == 0o700
    assert tree_of(restored.work_dir) == tree_of(workspace)


async def test_an_input_that_was_tampered_with_is_not_passed_on(workspace: Path) -> None:
    """Without confinement an agent reaches input/; what it did is found when that is given up."""
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    file = sandbox.paths.input_dir / "src/deep/er/mod.py"
    file.unlink()
    file.write_text("y = 2\n")
    assert await retire_sandbox(sandbox)
    again = await prepare_sandbox(await take_generation(workspace, NEXT, previous=base), "writer")
    assert tree_of(again.paths.input_dir) == tree_of(workspace)
