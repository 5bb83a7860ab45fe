"""Landing and undoing proposals: what counts is how much is touched, not how large the tree is."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from agentcanvas.proposals import quarantine
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.collisions import collisions
from agentcanvas.proposals.footprint import footprint
from agentcanvas.proposals.radar import Radar, Waiting
from agentcanvas.proposals.secrets import secrets_in
from agentcanvas.proposals.ways import Commit, Message, Way, Worktree
from bench.harness import Contender, Contest, Figure, at_most, times_worse

TEXT = "".join(f"line {n}\n" for n in range(60))
CHANGED = TEXT.replace("line 30\n", "line thirty\n")
EDITED = TEXT.replace("line 5\n", "line five, by the user\n")
PER_FOLDER = 20
WORKTREE = Worktree()
COMMIT = Commit(Message(summary="A change", proposal_id="p", run_id="r", agent_id="a"))


class Crowd:
    """Proposals that wait in one workspace, some of them on files that have moved."""

    def __init__(self, folder: Path, *, waiting: int, files: int, drifted: int) -> None:
        names = [f"d{n // PER_FOLDER}/f{n}.txt" for n in range(waiting * files)]
        self.workspace = _tree(folder / "workspace", dict.fromkeys(names, TEXT))
        base = _tree(folder / "base", dict.fromkeys(names, TEXT))
        self.radar = Radar(self.workspace)
        self.patches = []
        for number in range(waiting):
            own = names[number * files : (number + 1) * files]
            patch = _diff(folder / f"p{number}", own)
            self.patches.append(patch)
            self.radar.watch(Waiting(f"p{number}", patch, base, generation=1, evidence=1))
            if number < drifted:
                _tree(self.workspace, dict.fromkeys(own, EDITED))

    async def recheck(self) -> None:
        await self.radar.recheck(1)

    def meet(self) -> None:
        collisions({str(n): footprint(patch) for n, patch in enumerate(self.patches)})

    def plain_git(self) -> None:
        """One check a proposal, which says neither what merges nor what is stale."""
        for patch in self.patches:
            subprocess.run(
                ["git", "apply", "--check", "-"], cwd=self.workspace, input=patch, check=True
            )


class Setup:
    """A workspace of so many files, its base, and a patch that changes some of them."""

    def __init__(self, folder: Path, *, files: int, touched: int) -> None:
        names = [f"d{n // PER_FOLDER}/f{n}.txt" for n in range(files)]
        step = max(1, files // touched)
        self.touched = names[::step][:touched]
        self.workspace = _tree(folder / "workspace", dict.fromkeys(names, TEXT))
        self.base = _tree(folder / "base", dict.fromkeys(names, TEXT))
        self.patch = _diff(folder, self.touched)
        self._numbers = itertools.count()

    async def apply_and_undo(self, way: Way = WORKTREE) -> None:
        landing, name = Landing(self.workspace), f"p{next(self._numbers)}"
        await landing.apply(name, self.patch, self.base, way=way)
        await landing.undo(name)
        await landing.forget(name)

    async def commit_and_revert(self) -> None:
        await self.apply_and_undo(COMMIT)

    def become_repository(self) -> None:
        for command in (
            ("init", "-q"),
            ("config", "user.name", "Ada"),
            ("config", "user.email", "ada@analytical.org"),
            ("add", "-A"),
            ("commit", "-q", "-m", "start"),
        ):
            subprocess.run(["git", *command], cwd=self.workspace, check=True)

    def plain_git(self) -> None:
        """What is neither safe nor atomic, and keeps nothing."""
        for options in (["--check"], [], ["--check", "-R"], ["-R"]):
            subprocess.run(
                ["git", "apply", *options, "-"], cwd=self.workspace, input=self.patch, check=True
            )


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _diff(folder: Path, names: list[str]) -> bytes:
    _tree(folder / "a", dict.fromkeys(names, TEXT))
    _tree(folder / "b", dict.fromkeys(names, CHANGED))
    command = ["git", "diff", "--no-index", "--binary", "--no-renames", "--no-prefix", "a", "b"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout


def contests(*, quick: bool) -> Iterator[Contest]:
    """One contest at a time; its files are there while it runs."""
    large = 2_000 if quick else 20_000
    with TemporaryDirectory() as folder:
        small_tree = Setup(Path(folder) / "small", files=200, touched=20)
        large_tree = Setup(Path(folder) / "large", files=large, touched=20)
        yield Contest(
            name="apply 20 files and undo it, by the size of the tree",
            baseline="200 files",
            contenders=[
                Contender("200 files", small_tree.apply_and_undo),
                Contender(
                    f"{large:,} files",
                    large_tree.apply_and_undo,
                    bar=times_worse(1.3, than="200 files"),
                ),
            ],
        )
    for touched in (5, 20, 200):
        with TemporaryDirectory() as folder:
            setup = Setup(Path(folder), files=1_000, touched=touched)
            yield Contest(
                name=f"apply {touched} files and undo it",
                baseline="git apply, twice there and twice back",
                contenders=[
                    Contender("git apply, twice there and twice back", setup.plain_git),
                    Contender("ours", setup.apply_and_undo),
                ],
                note="git apply is not atomic, and checks neither paths nor the user's edits",
            )
    with TemporaryDirectory() as folder:
        setup = Setup(Path(folder), files=1_000, touched=20)
        setup.become_repository()
        yield Contest(
            name="apply 20 files and undo it, with a commit for each",
            baseline="files alone",
            contenders=[
                Contender("files alone", setup.apply_and_undo),
                Contender("with commits", setup.commit_and_revert),
            ],
        )
    yield from _crowds(quick=quick)
    with TemporaryDirectory() as folder, _counting_git(Path(folder)) as count:
        setup = Setup(Path(folder), files=200, touched=20)
        for name in setup.touched[:10]:
            (setup.workspace / name).write_text(EDITED)
        yield Contest(
            name="git processes an apply, 10 of 20 files merged",
            figure=Figure("processes", better="lower"),
            contenders=[Contender("ours", _processes(setup, count), bar=at_most(6))],
        )


def _crowds(*, quick: bool) -> Iterator[Contest]:
    waiting, files = (20, 50) if quick else (200, 50)
    for drifted, bar in ((0, 1.0), (waiting // 10, 1.5), (waiting, None)):
        with TemporaryDirectory() as folder:
            crowd = Crowd(Path(folder), waiting=waiting, files=files, drifted=drifted)
            yield Contest(
                name=f"re-check {waiting} proposals of {files} files, {drifted} of them to merge",
                baseline="git apply --check for each",
                contenders=[
                    Contender("git apply --check for each", crowd.plain_git),
                    Contender(
                        "ours",
                        crowd.recheck,
                        bar=times_worse(bar, than="git apply --check for each") if bar else None,
                    ),
                ],
            )
    with TemporaryDirectory() as folder:
        crowd = Crowd(Path(folder), waiting=waiting, files=files, drifted=0)
        text = b"".join(crowd.patches)
        yield Contest(
            name=f"look through {waiting} proposals of {files} files",
            baseline="collisions",
            contenders=[
                Contender("collisions", crowd.meet),
                Contender("secrets", lambda: secrets_in(text)),
            ],
        )


@contextmanager
def _counting_git(folder: Path) -> Iterator[Callable[[], int]]:
    """Put a git in front of the real one that keeps a tally."""
    tally, shim = folder / "tally", folder / "bin" / "git"
    tally.touch()
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho >> {tally}\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{shim.parent}{os.pathsep}{path}"
    quarantine.git_path.cache_clear()
    try:
        yield lambda: len(tally.read_bytes())
    finally:
        os.environ["PATH"] = path
        quarantine.git_path.cache_clear()


def _processes(setup: Setup, count: Callable[[], int]) -> Callable[[], Awaitable[float]]:
    numbers = itertools.count()

    async def work() -> float:
        """Ask for the version anew each time, as the first apply of a process does."""
        quarantine.git_version.cache_clear()
        landing, name = Landing(setup.workspace), f"q{next(numbers)}"
        before = count()
        await landing.apply(name, setup.patch, setup.base)
        used = count() - before
        await landing.undo(name)
        await landing.forget(name)
        return used

    return work
