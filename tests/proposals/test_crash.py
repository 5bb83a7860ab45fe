"""Killed at any step, full at any step: after a recovery the workspace is old or new."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.transaction import Ending, Recovery
from tests.proposals.workspaces import Files, Link, Scene, Script, Shot, scene, shot, write_files

pytestmark = pytest.mark.req("S6", "D3", "D7")

TEN = "".join(f"{n}\n" for n in range(10))
BEFORE: Files = {
    "a.txt": TEN,
    "gone/deep/old.txt": "old\n",
    "run.sh": "#!/bin/sh\n",
    "swap": "a file\n",
    "swop/inner": "a folder\n",
    "edited.txt": TEN,
}
AFTER: Files = {
    "a.txt": TEN.replace("7\n", "seven\n"),
    "new/deep/file.txt": "new\n",
    "run.sh": Script("#!/bin/sh\n"),
    "swap/inner": "a folder now\n",
    "swop": "a file now\n",
    "link": Link("a.txt"),
    "edited.txt": TEN.replace("7\n", "seven\n"),
}
MINE = TEN.replace("1\n", "one, by the user\n")


class Child:
    """The process that is killed, or rather its mother."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("crash_child.py")
        self._process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, call: str, workspace: Path, *arguments: object, **how: object) -> Any:
        order = {"call": call, "workspace": str(workspace), "arguments": [*map(str, arguments)]}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order | how) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    process = Child()
    yield process
    process.close()


class Bench:
    """One scene, set up again for each crash: the user has edited a file that is to be merged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scene: Scene = scene(folder / "start", BEFORE, AFTER)
        (self.scene.workspace / "edited.txt").write_text(MINE)
        self.patch = folder / "patch"
        self.patch.write_bytes(self.scene.patch)
        self.old = shot(self.scene.workspace)
        self.landed = folder / "landed"
        shutil.copytree(self.scene.workspace, self.landed, symlinks=True)
        anyio.run(Landing(self.landed).apply, "p1", self.scene.patch, self.scene.base)
        self.new = shot(self.landed)

    def fresh(self, name: str, *, landed: bool) -> Path:
        source = self.landed if landed else self.scene.workspace
        copy = self.folder / name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy, symlinks=True)
        return copy

    def order(self, call: str) -> tuple[object, ...]:
        return ("p1", self.patch, self.scene.base) if call == "apply" else ("p1",)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def recover(workspace: Path) -> tuple[Recovery, ...]:
    return anyio.run(Landing(workspace).recover)


def leftovers(workspace: Path) -> set[str]:
    """Whatever is neither the lock nor the record of a transaction."""
    state = workspace / ".agentcanvas" / "apply"
    if not state.is_dir():
        return set()  # killed before it had begun anything
    kept = {"lock", "p1", "p1.undo"}
    odd = {path.name for path in state.iterdir() if path.name not in kept}
    record = {"journal.json", "contents.bin"}
    return odd | {path.name for path in state.glob("*/*") if path.name not in record}


def folders(workspace: Path) -> set[str]:
    found = (path for path in workspace.rglob("*") if path.is_dir() and not path.is_symlink())
    return {p.relative_to(workspace).as_posix() for p in found if ".agentcanvas" not in p.parts}


@pytest.mark.parametrize("call", ["apply", "undo"])
def test_killed_at_any_step_it_is_old_or_new_after_the_recovery(
    bench: Bench, child: Child, call: str
) -> None:
    undoing = call == "undo"
    start, end = (bench.new, bench.old) if undoing else (bench.old, bench.new)
    whole = bench.fresh("whole", landed=undoing)
    done = child(call, whole, *bench.order(call))
    assert not done["killed"]
    assert shot(whole) == end
    endings = set()
    for at, name in enumerate(done["steps"]):
        workspace = bench.fresh("crashed", landed=undoing)
        old_folders = folders(workspace)
        assert child(call, workspace, *bench.order(call), kill_at=at)["killed"]
        recover(workspace)
        state = shot(workspace)
        assert state in (start, end), f"between the states after {name}"
        assert leftovers(workspace) == set(), name
        assert recover(workspace) == ()
        if state == start:
            assert folders(workspace) == old_folders, name
        landed = anyio.run(Landing(workspace).lookup, "p1.undo" if undoing else "p1")
        assert (landed is not None) == (state == end), "the record tells what is there"
        endings.add(state == end)
        again = child(call, workspace, *bench.order(call))
        assert again["error"] == ""
        assert shot(workspace) == end, f"asked again after {name}"
    assert endings == {True, False}
    assert len(done["steps"]) > 30


@pytest.mark.parametrize("call", ["apply", "undo"])
def test_killed_at_any_line_it_is_old_or_new_after_the_recovery(
    bench: Bench, child: Child, call: str
) -> None:
    """Finer than steps: the seeded kills hit between a folder and the file that goes into it.

    Fifty of an apply and fifty of an undo; ``make chaos`` has some hundreds more.
    """
    endings = kill_at_random(bench, child, call, random.Random(20260219), times=50)
    assert sum(killed for _, killed in endings) >= 45, "hardly any line lies behind the end"
    assert (False, True) in endings


def kill_at_random(
    bench: Bench, child: Child, call: str, seeded: random.Random, *, times: int
) -> list[tuple[bool, bool]]:
    """Kill at lines nobody chose; whether each came to its end, and whether it was killed."""
    undoing = call == "undo"
    start, end = (bench.new, bench.old) if undoing else (bench.old, bench.new)
    endings = []
    for _ in range(times):
        workspace = bench.fresh("crashed", landed=undoing)
        line = seeded.randrange(1, 1800)
        done = child(call, workspace, *bench.order(call), kill_at_line=line)
        recover(workspace)
        state = shot(workspace)
        assert state in (start, end), f"between the states after line {line}"
        assert done["killed"] or state == end
        assert leftovers(workspace) == set(), line
        endings.append((state == end, done["killed"]))
    return endings


def test_the_next_apply_settles_what_a_crash_left(bench: Bench, child: Child) -> None:
    workspace = crash_before_the_end(bench, child)
    (workspace / "edited.txt").unlink()
    other = scene(bench.folder / "other", {"z": "z\n"}, {"z": "Z\n"})
    write_files(workspace, {"z": "z\n"})
    anyio.run(Landing(workspace).apply, "p2", other.patch, other.base)
    gone = with_file(bench.old, "edited.txt", None)
    assert shot(workspace) == with_file(gone, "z", "Z\n")
    assert anyio.run(Landing(workspace).lookup, "p1") is None


def test_a_recovery_that_is_killed_itself_is_taken_up_again(bench: Bench, child: Child) -> None:
    workspace = bench.fresh("crashed", landed=False)
    steps = child("apply", workspace, *bench.order("apply"))["steps"]
    last = steps.index("sync")
    workspace = bench.fresh("crashed", landed=False)
    child("apply", workspace, *bench.order("apply"), kill_at=last)
    back = child("recover", workspace)["steps"]
    assert len(back) > 8
    for at, name in enumerate(back):
        workspace = bench.fresh("crashed", landed=False)
        child("apply", workspace, *bench.order("apply"), kill_at=last)
        assert child("recover", workspace, kill_at=at)["killed"]
        recover(workspace)
        assert shot(workspace) == bench.old, name
        assert leftovers(workspace) == set()


@pytest.mark.parametrize("call", ["apply", "undo"])
def test_a_full_disk_at_any_step_leaves_the_old_state_or_the_new(
    bench: Bench, child: Child, call: str
) -> None:
    undoing = call == "undo"
    start, end = (bench.new, bench.old) if undoing else (bench.old, bench.new)
    steps = child(call, bench.fresh("whole", landed=undoing), *bench.order(call))["steps"]
    for at, name in enumerate(steps):
        workspace = bench.fresh("full", landed=undoing)
        done = child(call, workspace, *bench.order(call), fail_at=at, errno=errno.ENOSPC)
        failed = bool(done["error"])
        assert shot(workspace) == (start if failed else end), name
        assert failed != name.startswith("tidy"), "only what comes after the commit may fail unsaid"
        assert "No space left" in done["error"] or not failed
        recover(workspace)
        assert shot(workspace) == (start if failed else end), name
        assert leftovers(workspace) == set()


def test_a_read_only_folder_in_the_middle_undoes_the_rest(child: Child) -> None:
    """For real: the child is not root, and the folder is closed to it."""
    before: Files = {"a.txt": "a\n", "closed/b.txt": "b\n", "z.txt": "z\n"}
    after: Files = {"a.txt": "A\n", "closed/b.txt": "B\n", "z.txt": "Z\n"}
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        ready = scene(Path(place), before, after)
        (Path(place) / "patch").write_bytes(ready.patch)
        if os.getuid() == 0:
            for path in (ready.workspace, *ready.workspace.rglob("*")):
                os.chown(path, 65534, 65534)
        (ready.workspace / "closed").chmod(0o555)
        done = child(
            "apply", ready.workspace, "p1", Path(place) / "patch", ready.base, as_nobody=True
        )
        assert "ApplyFailed" in done["error"]
        assert "Permission denied" in done["error"]
        assert {"move:0", "move:1"} <= set(done["steps"])
        assert shot(ready.workspace) == shot(ready.base)
        (ready.workspace / "closed").chmod(0o755)
        again = child(
            "apply", ready.workspace, "p1", Path(place) / "patch", ready.base, as_nobody=True
        )
        assert again["error"] == ""
        assert shot(ready.workspace) == shot(write_files(Path(place) / "after", after))
        landed = shot(ready.workspace)
        (ready.workspace / "closed").chmod(0o555)
        undone = child("undo", ready.workspace, "p1", as_nobody=True)
        assert "Permission denied" in undone["error"]
        assert shot(ready.workspace) == landed
        (ready.workspace / "closed").chmod(0o755)
        assert child("undo", ready.workspace, "p1", as_nobody=True)["error"] == ""
        assert shot(ready.workspace) == shot(ready.base)


def test_an_emptied_folder_that_cannot_go_does_not_close_the_door(child: Child) -> None:
    """The file is gone, as it should be; its folder stays, because the one above is closed."""
    before: Files = {"closed/in/b.txt": "b\n", "z.txt": "z\n"}
    after: Files = {"z.txt": "z\n"}
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        ready = scene(Path(place), before, after)
        (Path(place) / "patch").write_bytes(ready.patch)
        if os.getuid() == 0:
            for path in (ready.workspace, *ready.workspace.rglob("*")):
                os.chown(path, 65534, 65534)
        (ready.workspace / "closed").chmod(0o555)
        order = (ready.workspace, "p1", Path(place) / "patch", ready.base)
        assert child("apply", *order, as_nobody=True)["error"] == ""
        assert shot(ready.workspace) == shot(write_files(Path(place) / "after", after))
        assert child("undo", ready.workspace, "p1", as_nobody=True)["error"] == ""
        assert shot(ready.workspace) == shot(ready.base)
        (ready.workspace / "closed").chmod(0o755)


def crash_before_the_end(bench: Bench, child: Child) -> Path:
    """Everything is moved, nothing is marked as done."""
    workspace = bench.fresh("crashed", landed=False)
    steps = child("apply", workspace, *bench.order("apply"))["steps"]
    workspace = bench.fresh("crashed", landed=False)
    child("apply", workspace, *bench.order("apply"), kill_at=steps.index("sync"))
    assert shot(workspace) == bench.new
    return workspace


def with_file(state: Shot, name: str, text: str | None) -> Shot:
    rest = {path: content for path, content in state.items() if path != name}
    return rest if text is None else rest | {name: ("file", text.encode())}


@pytest.mark.parametrize(
    ("name", "edit", "result", "kept"),
    [
        ("a.txt", "0 by me\n" + str(AFTER["a.txt"]), "0 by me\n" + TEN, []),
        ("a.txt", TEN.replace("7\n", "VII\n"), TEN.replace("7\n", "VII\n"), ["a.txt"]),
        ("a.txt", None, None, ["a.txt"]),
        ("a.txt", TEN, TEN, []),
        ("new/deep/file.txt", "mine\n", "mine\n", ["new/deep/file.txt"]),
        ("new/deep/file.txt", None, None, []),
        ("gone/deep/old.txt", "mine\n", "mine\n", ["gone/deep/old.txt"]),
        ("unrelated.txt", "mine\n", "mine\n", []),
    ],
)
def test_edits_between_crash_and_recovery_are_kept(
    bench: Bench, child: Child, *, name: str, edit: str | None, result: str | None, kept: list[str]
) -> None:
    workspace = crash_before_the_end(bench, child)
    if edit is None:
        (workspace / name).unlink()
    else:
        write_files(workspace, {name: edit})
    assert recover(workspace) == (Recovery("p1", Ending.ROLLED_BACK, tuple(kept)),)
    assert shot(workspace) == with_file(bench.old, name, result)


def test_the_lock_of_a_killed_process_does_not_outlive_it(bench: Bench, child: Child) -> None:
    workspace = bench.fresh("crashed", landed=False)
    assert child("apply", workspace, *bench.order("apply"), kill_at=1)["killed"]
    assert child("apply", workspace, *bench.order("apply"))["error"] == ""
    assert shot(workspace) == bench.new
