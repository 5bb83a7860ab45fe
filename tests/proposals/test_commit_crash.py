"""Killed at any step of a commit, a branch or their undo: files, index and refs are old or new."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from agentcanvas.errors import ApplyFailed
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.transaction import Ending
from tests.proposals.crash_child import WAYS
from tests.proposals.repositories import files, git, repository, state
from tests.proposals.test_crash import Child, leftovers, recover
from tests.proposals.workspaces import Files, Link

pytestmark = pytest.mark.req("D16", "D3", "S6")

TEN = "".join(f"{n}\n" for n in range(10))
BEFORE: Files = {"a.txt": TEN, "gone/old.txt": "old\n", "keep": "keep\n"}
AFTER: Files = {"a.txt": TEN.replace("7\n", "seven\n"), "new/x": Link("../keep"), "keep": "keep\n"}
MINE = TEN.replace("1\n", "one, by the user\n")
CASES = [("apply", "commit"), ("undo", "commit"), ("apply", "branch"), ("undo", "branch")]


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    process = Child()
    yield process
    process.close()


class Bench:
    """One repository, set up again for each crash: with an edit to merge, and something staged."""

    def __init__(self, folder: Path, way: str) -> None:
        self.folder, self.way = folder, way
        self.scene = repository(folder / "start", BEFORE, AFTER)
        root = self.scene.workspace
        (root / "a.txt").write_text(MINE)
        (root / "keep").write_text("staged\n")
        git(root, "add", "keep")
        self.patch = folder / "patch"
        self.patch.write_bytes(self.scene.patch)
        self.landed = folder / "landed"
        shutil.copytree(root, self.landed, symlinks=True)

        async def land() -> None:
            landing = Landing(self.landed)
            await landing.apply("p1", self.scene.patch, self.scene.base, way=WAYS[way])

        anyio.run(land)

    def fresh(self, call: str) -> Path:
        copy = self.folder / "crashed"
        shutil.rmtree(copy, ignore_errors=True)
        source = self.landed if call == "undo" else self.scene.workspace
        shutil.copytree(source, copy, symlinks=True)
        return copy

    def order(self, call: str) -> tuple[object, ...]:
        return ("p1", self.patch, self.scene.base) if call == "apply" else ("p1",)


def nothing_of_ours(root: Path) -> bool:
    names = [path.name for path in (root / ".git").iterdir()]
    return "index.lock" not in names and not any("agentcanvas" in name for name in names)


@pytest.mark.parametrize(("call", "way"), CASES)
def test_killed_at_any_step_it_is_old_or_new_after_the_recovery(
    tmp_path: Path, child: Child, call: str, way: str
) -> None:
    bench = Bench(tmp_path, way)
    start = state(bench.fresh(call))
    whole = bench.fresh(call)
    done = child(call, whole, *bench.order(call), way=way)
    assert done["error"] == ""
    end = state(whole)
    assert start != end
    name = "p1.undo" if call == "undo" else "p1"
    endings = set()
    for at, step in enumerate(done["steps"]):
        root = bench.fresh(call)
        assert child(call, root, *bench.order(call), way=way, kill_at=at)["killed"]
        recover(root)
        now = state(root)
        assert now in (start, end), f"between the states after {step}"
        assert leftovers(root) == set(), step
        assert nothing_of_ours(root), step
        assert recover(root) == ()
        landed = anyio.run(Landing(root).lookup, name)
        assert (landed is not None) == (now == end), "the record tells what is there"
        endings.add(now == end)
        if at % 4 == 0:
            assert child(call, root, *bench.order(call), way=way)["error"] == ""
            assert state(root) == end, f"asked again after {step}"
    assert endings == {True, False}


@pytest.mark.parametrize(("call", "way"), CASES)
def test_killed_at_any_line_it_is_old_or_new_after_the_recovery(
    tmp_path: Path, child: Child, call: str, way: str
) -> None:
    bench = Bench(tmp_path, way)
    start = state(bench.fresh(call))
    whole = bench.fresh(call)
    child(call, whole, *bench.order(call), way=way)
    end = state(whole)
    seeded = random.Random(20260220)
    killed = 0
    for _ in range(8):
        root = bench.fresh(call)
        line = seeded.randrange(1, 2400 if way == "commit" else 700)
        killed += child(call, root, *bench.order(call), way=way, kill_at_line=line)["killed"]
        recover(root)
        assert state(root) in (start, end), f"between the states after line {line}"
        assert leftovers(root) == set(), line
        assert nothing_of_ours(root), line
    assert killed > 2


@pytest.mark.parametrize(("call", "way"), CASES[:3])
def test_a_full_disk_at_any_step_leaves_the_old_state_or_the_new(
    tmp_path: Path, child: Child, call: str, way: str
) -> None:
    bench = Bench(tmp_path, way)
    start = state(bench.fresh(call))
    whole = bench.fresh(call)
    steps = child(call, whole, *bench.order(call), way=way)["steps"]
    end = state(whole)
    for at, step in enumerate(steps):
        root = bench.fresh(call)
        done = child(call, root, *bench.order(call), way=way, fail_at=at, errno=28)
        if done["error"]:
            assert done["error"].startswith("ApplyFailed"), done["error"]
            assert state(root) == start, step
        else:
            assert state(root) == end, step
        assert nothing_of_ours(root), step


def cut_off(bench: Bench, child: Child, step: str) -> Path:
    root = bench.fresh("apply")
    steps = child("apply", root, *bench.order("apply"), way="commit")["steps"]
    root = bench.fresh("apply")
    at = steps.index(step)
    assert child("apply", root, *bench.order("apply"), way="commit", kill_at=at)["killed"]
    return root


def test_a_recovery_that_is_killed_itself_is_taken_up_again(tmp_path: Path, child: Child) -> None:
    bench = Bench(tmp_path, "commit")
    end = state(bench.landed)
    steps = child("recover", cut_off(bench, child, "ref:moved"))["steps"]
    for at, step in enumerate(steps):
        root = cut_off(bench, child, "ref:moved")
        assert child("recover", root, kill_at=at)["killed"]
        recover(root)
        assert state(root) == end, step
        assert nothing_of_ours(root)


@pytest.mark.req("D7")
def test_edits_between_a_crash_after_the_commit_and_the_recovery_are_kept(
    tmp_path: Path, child: Child
) -> None:
    root = cut_off(Bench(tmp_path, "commit"), child, "ref:moved")
    (root / "a.txt").write_text("mine, since the crash\n")
    (root / ".git" / "index.lock").unlink()  # as git advises
    (root / "new").joinpath("mine").write_text("mine too\n")
    git(root, "add", "new/mine")
    git(root, "rm", "-q", "--cached", "gone/old.txt")
    (recovery,) = recover(root)
    assert recovery.ending is Ending.COMPLETED
    assert (root / "a.txt").read_text() == "mine, since the crash\n"
    assert git(root, "show", ":a.txt") == TEN.replace("7\n", "seven\n")
    assert git(root, "status", "--porcelain") == " M a.txt\nM  keep\nA  new/mine\n"


@pytest.mark.req("D7")
def test_what_was_staged_between_a_crash_after_the_commit_and_the_recovery_is_kept(
    tmp_path: Path, child: Child
) -> None:
    root = cut_off(Bench(tmp_path, "commit"), child, "ref:moved")
    (root / ".git" / "index.lock").unlink()
    (root / "a.txt").write_text("mine, since the crash\n")
    git(root, "add", "a.txt")
    recover(root)
    assert git(root, "show", ":a.txt") == "mine, since the crash\n"
    assert git(root, "show", ":new/x") == "../keep"


@pytest.mark.req("D7")
def test_what_the_user_commits_between_a_crash_before_the_commit_and_the_recovery_is_kept(
    tmp_path: Path, child: Child
) -> None:
    root = cut_off(Bench(tmp_path, "commit"), child, "ref")
    (root / ".git" / "index.lock").unlink()
    (root / "a.txt").write_text(MINE.replace("7\n", "seven\n").replace("4\n", "four, since\n"))
    git(root, "commit", "-q", "-m", "mine")
    head = git(root, "rev-parse", "HEAD")
    (recovery,) = recover(root)
    assert recovery.ending is Ending.ROLLED_BACK
    assert git(root, "rev-parse", "HEAD") == head
    assert (root / "a.txt").read_text() == MINE.replace("4\n", "four, since\n"), "our part went"
    assert "new/x" not in files(root)


def test_a_lock_that_is_not_ours_is_left_by_a_recovery(tmp_path: Path, child: Child) -> None:
    root = cut_off(Bench(tmp_path, "commit"), child, "move:0")
    lock = root / ".git" / "index.lock"
    lock.unlink()
    lock.write_text("somebody else's")
    recover(root)
    assert lock.read_text() == "somebody else's"


def test_a_journal_that_came_with_the_repository_moves_no_ref_and_leads_nowhere(
    tmp_path: Path, child: Child
) -> None:
    crashed = cut_off(Bench(tmp_path, "commit"), child, "ref")
    name = Path(".agentcanvas", "apply", "p1", "journal.json")
    sound = (crashed / name).read_text()
    refs, config = git(crashed, "for-each-ref"), (crashed / ".git" / "config").read_bytes()
    for number, (old, new) in enumerate(
        [
            ('"refs/heads/main"', '"refs/heads/../../config"'),
            ('"refs/heads/main"', '"--exec=x"'),
            ('"entered":[{"path":"', '"entered":[{"path":"../'),
            ('"mode":"100644","oid":"', '"mode":"100644","oid":"--'),
        ]
    ):
        root = tmp_path / f"forged{number}"
        shutil.copytree(crashed, root, symlinks=True)
        forged = sound.replace(old, new)
        assert forged != sound
        (root / name).write_text(forged)
        with suppress(ApplyFailed):  # or it is rolled back, for no such ref has moved
            recover(root)
        assert git(root, "for-each-ref") == refs
        assert (root / ".git" / "config").read_bytes() == config
        assert "gone/old.txt" in git(root, "ls-files")
