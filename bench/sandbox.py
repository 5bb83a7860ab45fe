"""Sandboxes: how fast one is made, made again, compared, and entered.

The reference for making one is two ``cp -a`` (input/ and work/), for four at once eight of them,
for comparing it ``git diff --no-index``, for entering it a plain process. Made again is: from the
trees of one that is over, in which an agent has changed some files. Where each round stands, and
how to have it stand elsewhere, says ``bench.ground``.
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
from bench.ground import Ground, ground_in, sharing_grounds
from bench.harness import Contender, Contest, Figure, at_most, times_better

CHANGED = 20
STARTS = 5
AGENTS = 4
SMALL, USUAL = 3, 26
"""Kilobytes of an average file: the harder case for making a tree, and what projects have."""

RATIO = Figure("of two cp -a", better="lower")
MILLISECONDS = Figure("ms", better="lower")

runs = (f"run_20260101_000000_{number:x}" for number in count())


def contests(*, quick: bool) -> Iterator[Contest]:
    """Make a tree, then hold the contests on copies of it."""
    files = 2_000 if quick else 20_000
    with tempfile.TemporaryDirectory(prefix="bench-sandbox-") as folder:
        with ground_in(Path(folder)) as ground, ground.fresh() as place:
            model = place / "model"
            fill(model, files, SMALL)
            yield preparing(ground, model, files)
            yield together(ground, model, files)
            with ground.fresh() as elsewhere:
                yield comparing(copied(model, elsewhere / "workspace"), files)
        yield from on_shared_blocks(Path(folder), files)
        yield from entering(Path(folder, "view"))


def fill(workspace: Path, files: int, kilobytes: int) -> None:
    """Write small files, ten to a folder, as a source tree has them."""
    chance = random.Random(7)
    for number in range(files):
        path = workspace / f"part{number // 500}" / f"module{number // 10}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = chance.randint(2, 68 * kilobytes)
        path.write_text("".join(f"value_{i} = {chance.random()}\n" for i in range(lines)))


class Preparing:
    """One measurement serves all contenders of a round, so that they stand on the same cp."""

    def __init__(self, ground: Ground, model: Path) -> None:
        self.ground = ground
        self.model = model
        self.rounds = count()
        self.waiting: dict[str, float] = {}

    async def take(self, name: str) -> float:
        """Give the ratio of a contender, measured when the last one is used up."""
        if name not in self.waiting:
            with self.ground.fresh() as place:
                self.waiting = await self.measured(place)
        return self.waiting.pop(name)

    async def measured(self, place: Path) -> dict[str, float]:
        """Copy twice, freeze, prepare; by turns first and last."""
        # The workspace grows sandboxes, which cp would copy along.
        original = copied(self.model, place / "original")
        workspace = copied(self.model, place / "workspace")
        copy_first = next(self.rounds) % 2
        reference = copying(original, 2) if copy_first else 0.0
        at_rest(place)
        begun = time.perf_counter()
        base = await take_generation(workspace, next(runs))
        frozen = time.perf_counter() - begun
        at_rest(place)
        begun = time.perf_counter()
        sandbox = await prepare_sandbox(base, "coder")
        prepared = time.perf_counter() - begun
        recycled = await recycling(workspace, sandbox)
        reference = reference or copying(original, 2)
        return {
            "prepare": prepared / reference,
            "recycled": recycled / reference,
            "first of a run": (frozen + prepared) / reference,
        }


async def recycling(workspace: Path, sandbox: Sandbox) -> float:
    """Give a sandbox up that was worked in, and time the next run's, which has its trees."""
    change(sandbox)
    if not await retire_sandbox(sandbox):
        raise RuntimeError("the pool took nothing; the figure would be of something else")
    later = await take_generation(workspace, next(runs), previous=sandbox.base)
    at_rest(workspace)
    begun = time.perf_counter()
    await prepare_sandbox(later, "coder")
    return time.perf_counter() - begun


def preparing(ground: Ground, model: Path, files: int) -> Contest:
    """Hold prepare against two copies."""
    trial = Preparing(ground, model)
    return Contest(
        name=f"a sandbox of {files:,} small files",
        figure=RATIO,
        contenders=[
            Contender("prepare", partial(trial.take, "prepare"), bar=at_most(0.5)),
            Contender("recycled", partial(trial.take, "recycled"), bar=at_most(0.1)),
            Contender("first of a run", partial(trial.take, "first of a run")),
        ],
        note=f"on {ground.name}; prepare: input/ and work/ on a generation; "
        "recycled: from trees of the pool; first of a run: freezing it included",
    )


def together(ground: Ground, model: Path, files: int) -> Contest:
    """Hold the first sandboxes of four agents against eight copies."""
    turns = count()

    def theirs() -> float:
        with ground.fresh() as place:
            return copying(copied(model, place / "original"), 2 * AGENTS)

    async def ours() -> float:
        with ground.fresh() as place:
            workspace = copied(model, place / "workspace")
            at_rest(place)
            begun = time.perf_counter()
            base = await take_generation(workspace, next(runs))
            async with anyio.create_task_group() as tasks:
                for number in range(AGENTS):
                    tasks.start_soon(prepare_sandbox, base, f"coder-{number}")
            return time.perf_counter() - begun

    async def ratio() -> float:
        copy_first = next(turns) % 2
        reference = theirs() if copy_first else 0.0
        return await ours() / (reference or theirs())

    return Contest(
        name=f"the first sandboxes of {AGENTS} agents, {files:,} files",
        figure=Figure(f"of {2 * AGENTS} cp -a", better="lower"),
        contenders=[Contender("freeze and prepare", ratio, bar=at_most(0.6))],
        note=f"on {ground.name}; freezing included; the pool is empty",
    )


def copied(source: Path, target: Path, *options: str) -> Path:
    """Copy a tree as a person would."""
    subprocess.run(["cp", "-a", *options, source, target], check=True)
    return target


def copying(original: Path, times: int) -> float:
    """Do what a simple sandbox would do, and time it."""
    at_rest(original)
    begun = time.perf_counter()
    for number in range(times):
        copied(original, original.with_name(f"copy{number}"))
    return time.perf_counter() - begun


def at_rest(place: Path) -> None:
    """Have the disk write what was done before, so that nobody pays for a neighbour's work."""
    subprocess.run(["sync", "--file-system", place], check=True)


def on_shared_blocks(folder: Path, files: int) -> Iterator[Contest]:
    """Weigh a sandbox where copies share their blocks, for each such disk there is."""
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        model = Path(aside, "model")
        fill(model, files, USUAL)
        for ground in sharing_grounds():
            yield weighing(ground, model, files)


def weighing(ground: Ground, model: Path, files: int) -> Contest:
    """Hold the disk that a sandbox takes against that of two copies."""

    async def ratio() -> float:
        with ground.fresh() as place:
            workspace = place / "workspace"
            before = used(place)
            copied(model, workspace, "--reflink=never")
            one = used(place) - before
            await prepare_sandbox(await take_generation(workspace, next(runs)), "coder")
            return (used(place) - before - one) / (2 * one)

    return Contest(
        name=f"the disk that a sandbox of {files:,} files takes on {ground.name}",
        figure=Figure("of two copies", better="lower"),
        contenders=[Contender("freeze and prepare", ratio, bar=at_most(0.1))],
        note=f"files of {USUAL} kB on average; the frozen image included",
    )


def used(place: Path) -> int:
    """Count the bytes that are taken on a disk."""
    at_rest(place)
    status = os.statvfs(place)
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
