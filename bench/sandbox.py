"""Sandboxes: how fast one is made, made again, compared, and entered.

The reference for making one is two ``cp -a`` (input/ and work/), for four at once eight of them,
for comparing it ``git diff --no-index``, for entering it a plain process. Made again is: from the
trees of one that is over, in which an agent has changed some files. Trees are not removed between
rounds: ext4 is slow to give out inodes that were just freed, which would judge the disk.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream

from agentcanvas.errors import NoConfinement
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import Generation, take_generation
from agentcanvas.sandbox.pick import pick
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox, retire_sandbox
from agentcanvas.sandbox.process import start_confined
from agentcanvas.sandbox.trees import shares_blocks
from bench.harness import Contender, Contest, Figure, at_most, times_better

CHANGED = 20
STARTS = 5
AGENTS = 4
SHARING = "BENCH_SHARED_BLOCKS"
"""Names a folder on a disk whose copies share their blocks."""

RATIO = Figure("of two cp -a", better="lower")
MILLISECONDS = Figure("ms", better="lower")

runs = (f"run_20260101_000000_{number:x}" for number in count())


def contests(*, quick: bool) -> Iterator[Contest]:
    """Make a tree, then hold the contests in it."""
    files = 2_000 if quick else 20_000
    with tempfile.TemporaryDirectory(prefix="bench-sandbox-") as folder:
        original, workspace = Path(folder, "original"), Path(folder, "workspace")
        fill(original, files)
        copy(original, workspace)
        yield preparing(original, workspace, files)
        yield together(original, files)
        yield from on_shared_blocks(original)
        yield comparing(workspace, files)
        yield from entering(Path(folder, "view"))


def fill(workspace: Path, files: int) -> None:
    """Write small files, ten to a folder, as a source tree has them."""
    chance = random.Random(7)
    for number in range(files):
        path = workspace / f"part{number // 500}" / f"module{number // 10}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = chance.randint(2, 200)
        path.write_text("".join(f"value_{i} = {chance.random()}\n" for i in range(lines)))


class Preparing:
    """One measurement serves both contenders of a round, so that they stand on the same cp."""

    def __init__(self, original: Path, workspace: Path) -> None:
        self.original = original  # the workspace grows sandboxes, which cp would copy along
        self.workspace = workspace
        self.rounds = count()
        self.copies = count()
        self.waiting: dict[str, float] = {}

    async def take(self, name: str) -> float:
        """Give the ratio of a contender, measured when the last one is used up."""
        if name not in self.waiting:
            self.waiting = await self.measured()
        return self.waiting.pop(name)

    async def measured(self) -> dict[str, float]:
        """Copy twice, freeze, prepare; by turns first and last."""
        copy_first = next(self.rounds) % 2
        reference = 0.0
        if copy_first:
            reference = seconds_of(self.copy_twice)
        begun = time.perf_counter()
        base = await take_generation(self.workspace, next(runs))
        frozen = time.perf_counter()
        sandbox = await prepare_sandbox(base, "coder")
        prepared = time.perf_counter()
        recycled = await recycling(self.workspace, sandbox)
        if not copy_first:
            reference = seconds_of(self.copy_twice)
        return {
            "prepare": (prepared - frozen) / reference,
            "recycled": recycled / reference,
            "first of a run": (prepared - begun) / reference,
        }

    def copy_twice(self) -> None:
        """Do what a simple sandbox would do."""
        for _ in range(2):
            copy(self.original, self.original.with_name(f"copy{next(self.copies)}"))


async def recycling(workspace: Path, sandbox: Sandbox) -> float:
    """Give a sandbox up that was worked in, and time the next run's, which has its trees."""
    change(sandbox)
    if not await retire_sandbox(sandbox):
        raise RuntimeError("the pool took nothing; the figure would be of something else")
    later = await take_generation(workspace, next(runs), previous=sandbox.base)
    begun = time.perf_counter()
    await prepare_sandbox(later, "coder")
    return time.perf_counter() - begun


def seconds_of(work: Callable[[], object]) -> float:
    """Time one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def preparing(original: Path, workspace: Path, files: int) -> Contest:
    """Hold prepare against two copies."""
    trial = Preparing(original, workspace)
    return Contest(
        name=f"a sandbox of {files:,} small files",
        figure=RATIO,
        contenders=[
            Contender("prepare", partial(trial.take, "prepare"), bar=at_most(0.5)),
            Contender("recycled", partial(trial.take, "recycled"), bar=at_most(0.1)),
            Contender("first of a run", partial(trial.take, "first of a run")),
        ],
        note="prepare: input/ and work/ on a generation; recycled: from trees of the pool; "
        "first of a run: freezing it included",
    )


def together(original: Path, files: int) -> Contest:
    """Hold the first sandboxes of four agents against eight copies."""
    turns = count()

    async def ratio() -> float:
        turn = next(turns)
        workspace = original.with_name(f"together{turn}")
        copy(original, workspace)
        reference = seconds_of(partial(copies, original, turn)) if turn % 2 else 0.0
        begun = time.perf_counter()
        base = await take_generation(workspace, next(runs))
        async with anyio.create_task_group() as tasks:
            for number in range(AGENTS):
                tasks.start_soon(prepare_sandbox, base, f"coder-{number}")
        ours = time.perf_counter() - begun
        return ours / (reference or seconds_of(partial(copies, original, turn)))

    return Contest(
        name=f"the first sandboxes of {AGENTS} agents, {files:,} files",
        figure=Figure(f"of {2 * AGENTS} cp -a", better="lower"),
        contenders=[Contender("freeze and prepare", ratio, bar=at_most(0.6))],
        note="freezing included; the pool is empty",
    )


def copy(source: Path, target: Path, *options: str) -> None:
    """Copy a tree as a person would."""
    subprocess.run(["cp", "-a", *options, source, target], check=True)


def copies(original: Path, turn: int) -> None:
    """Do what a simple sandbox would do for each agent."""
    for number in range(2 * AGENTS):
        copy(original, original.with_name(f"plain{turn}-{number}"))


def on_shared_blocks(original: Path) -> Iterator[Contest]:
    """Weigh a sandbox where copies share their blocks; nothing to hold where they do not."""
    folder = Path(os.environ.get(SHARING, original.parent))
    if not shares_blocks(folder):
        print(f"skipped: disk use with shared blocks, because {folder} has none; name a folder")
        print(f"on XFS or btrfs: {SHARING}=/mnt/xfs make bench ARGS=sandbox")
        return
    turns = count()

    async def ratio() -> float:
        with tempfile.TemporaryDirectory(prefix=f"shared{next(turns)}-", dir=folder) as name:
            workspace = Path(name, "workspace")
            before = used(folder)
            copy(original, workspace, "--reflink=never")
            one = used(folder) - before
            before = used(folder)
            await prepare_sandbox(await take_generation(workspace, next(runs)), "coder")
            return (used(folder) - before) / (2 * one)

    yield Contest(
        name="the disk that a sandbox takes where copies share their blocks",
        figure=Figure("of two copies", better="lower"),
        contenders=[Contender("freeze and prepare", ratio, bar=at_most(0.1))],
    )


def used(folder: Path) -> int:
    """Count the bytes that are taken on a disk."""
    os.sync()
    status = os.statvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def comparing(workspace: Path, files: int) -> Contest:
    """Hold the manifest diff against git's."""
    sandbox = anyio.run(changed_sandbox, workspace)
    base = sandbox.paths.root
    options = ["--no-index", "--binary", "--no-renames", "--full-index"]

    def by_git() -> None:
        command = ["git", "diff", *options, "input", "work"]
        subprocess.run(command, cwd=base, stdout=subprocess.DEVNULL, check=False)

    return Contest(
        name=f"the patch of {CHANGED} changed files among {files:,}",
        baseline="git diff --no-index",
        contenders=[
            Contender("git diff --no-index", by_git),
            Contender(
                "ours",
                lambda: make_patch(sandbox),
                bar=times_better(1 / 0.18, than="git diff --no-index"),
            ),
        ],
    )


async def changed_sandbox(workspace: Path) -> Sandbox:
    """Prepare a sandbox and change some of its files."""
    base: Generation = await take_generation(workspace, next(runs))
    sandbox = await prepare_sandbox(base, "coder")
    change(sandbox)
    return sandbox


def change(sandbox: Sandbox) -> None:
    """Change some files, as an agent would."""
    paths = sorted(sandbox.base.seen)
    for path in paths[:: len(paths) // CHANGED][:CHANGED]:
        file = sandbox.work_dir / path.decode()
        file.write_text(file.read_text() + "changed = True\n")


def entering(folder: Path) -> Iterator[Contest]:
    """Time each confinement of this machine against a plain process, until the first line."""
    for part in ("workspace", "tree", "home", "tmp"):
        (folder / part).mkdir(parents=True)
    view = View(folder / "workspace", folder / "tree", folder / "home", folder / "tmp")
    contenders = []
    for name in ("bubblewrap", "landlock"):
        try:
            picked = anyio.run(partial(pick, only=name))
        except NoConfinement:
            continue
        work = partial(overhead_ms, picked.confinement, view)
        contenders.append(Contender(name, work, bar=at_most(15)))
    if contenders:
        yield Contest(
            name="entering a confinement, beyond a plain process",
            figure=MILLISECONDS,
            contenders=contenders,
            note=f"median of {STARTS} starts each, until the first line is heard",
        )


async def overhead_ms(confinement: Confinement, view: View) -> float:
    """Give what confining adds to a start."""
    plain, confined = [], []
    for _ in range(STARTS):
        plain.append(await timed(heard_plain))
        confined.append(await timed(partial(heard_confined, confinement, view)))
    return (statistics.median(confined) - statistics.median(plain)) * 1000


async def timed(started: Callable[[], Awaitable[float]]) -> float:
    """Time from now until the moment that ``started`` gives."""
    begun = time.perf_counter()
    return await started() - begun


async def heard_plain() -> float:
    """Run a plain process; gives the moment of its first line."""
    async with await anyio.open_process(["/bin/echo", "x"]) as process:
        stream = process.stdout
        assert isinstance(stream, ByteReceiveStream)
        await stream.receive()
        return time.perf_counter()


async def heard_confined(confinement: Confinement, view: View) -> float:
    """Run a confined process; gives the moment of its first line."""
    heard = 0.0
    async with start_confined(confinement, view, Command(("/bin/echo", "x"))) as process:
        async for _ in process:
            heard = time.perf_counter()
    return heard
