"""Knowing how a long run stands: from all its events, and from a snapshot and what came since."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from agentcanvas.runs import events as e
from agentcanvas.runs.snapshots import Snapshots, account_in
from agentcanvas.store import Snapshot, Store
from agentcanvas.store.events import NewEvent
from bench.harness import Contender, Contest, times_better, times_worse

SHORT, LONG, SINCE = 10_000, 100_000, 100
DECODED = "rows read and decoded"


def a_long_run(number: int) -> Iterator[NewEvent]:
    """A run of so many events, five for a task."""
    start = e.Start("bench", "x", (e.Member("w", "W", "worker"),), None)
    yield _event(number, partial(e.RunStarted, payload=start))
    for done in range(1, number):
        yield _event(number, _part(*divmod(done, 5)))


def _part(task: int, part: int) -> Callable[..., e.RunEvent]:
    turn = f"work/ask_all:1/t{task}/r0"
    if part == 0:
        return partial(e.TaskDispatched, payload=e.Dispatch(f"t{task}", "w", "Write it"))
    if part == 1:
        begun = e.TurnBegun(turn_id=turn, to="w", message_id="m", text="Write it")
        return partial(e.TurnStarted, payload=begun)
    if part == 2:
        return partial(e.TurnEnded, payload=e.TurnDone(turn_id=turn, text="ok", ok=True))
    if part == 3:
        return partial(e.ProposalSubmitted, payload=e.Submission(f"t{task}", 1, "Done."))
    landed = e.Landed(f"t{task}", (f"src/{task}.py",), "transaction")
    return partial(e.ProposalLanded, payload=landed)


def _event(number: int, kind: Callable[..., e.RunEvent]) -> NewEvent:
    event = kind(actor="engine", provenance=e.Provenance.SYSTEM)
    return f"bench/run_{number}", e.kind_of(event), e.to_json(event)


def decoded(look: Snapshot, stream: str) -> int:
    """Read and decode every event, and make nothing of it."""
    after = found = 0
    while page := look.events(after=after, stream=stream):
        found += len([e.from_row(row) for row in page])
        after = page[-1].seq
    return found


@asynccontextmanager
async def long_runs(folder: Path, *numbers: int) -> AsyncIterator[Store]:
    """Keep runs of these lengths."""
    async with await Store.open(folder / "runs.db") as store:
        for number in numbers:
            rows = list(a_long_run(number))
            for start in range(0, number, 1000):
                await store.append_many(rows[start : start + 1000])
        yield store


@asynccontextmanager
async def reading(
    folder: Path, number: int, look: Callable[[Snapshot, str], object]
) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Look at one long run in a store of its own."""
    async with long_runs(folder, number) as store:
        stream = f"bench/run_{number}"
        yield lambda: store.read(lambda snapshot: look(snapshot, stream))


@asynccontextmanager
async def from_a_snapshot(folder: Path) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Look at one of which a snapshot was kept 100 events ago."""
    async with long_runs(folder, LONG) as store:
        stream = f"bench/run_{LONG}"
        await Snapshots(store).account(stream)
        await store.append_many(
            [(stream, kind, body) for _, kind, body in list(a_long_run(SINCE + 1))[1:]]
        )
        yield lambda: store.read(lambda snapshot: account_in(snapshot, stream))


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of opening."""
    del quick
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        numbers = count()

        def place() -> Path:
            path = Path(name) / str(next(numbers))
            path.mkdir()
            return path

        yield Contest(
            name="how a run of 100,000 events stands",
            baseline=DECODED,
            contenders=[
                Contender.opened(DECODED, lambda: reading(place(), LONG, decoded)),
                Contender.opened(
                    "folded",
                    lambda: reading(place(), LONG, account_in),
                    bar=times_worse(4, than=DECODED),
                ),
                Contender.opened(
                    "from a snapshot",
                    lambda: from_a_snapshot(place()),
                    bar=times_better(5, than=DECODED),
                ),
            ],
            note=f"20,000 tasks; {SINCE} events have come since the snapshot",
        )
        yield Contest(
            name="an event of a long run, folded",
            baseline=f"of {SHORT:,}",
            contenders=[
                Contender.opened(
                    f"of {SHORT:,}", lambda: reading(place(), SHORT, account_in), operations=SHORT
                ),
                Contender.opened(
                    f"of {LONG:,}",
                    lambda: reading(place(), LONG, account_in),
                    operations=LONG,
                    bar=times_worse(1.3, than=f"of {SHORT:,}"),
                ),
            ],
        )
