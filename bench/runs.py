"""Runs: durable turns, one after the other and in 32 runs at once, beside LangGraph.

A turn of ours is a message to an agent through the hub, kept before it is delivered; the agent's
answer, kept together with taking the message over; and the events, the journal's steps, the
transcript and the JSONL files of both, with somebody who follows the run live. A turn of LangGraph
is one node of a graph and the checkpoint after it: ``SqliteSaver`` in its own WAL mode, with
``synchronous=FULL`` and ``durability="sync"``, so that a turn is on disk before the next begins.
Both sides carry the same few bytes; starting runs and compiling graphs are outside the figures.

LangGraph is not needed by anything else here. Install it with::

    pip install --group bench

Without it the comparisons are left out, and only what is counted is judged.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from agentcanvas.app import office
from agentcanvas.app.office import open_engine
from agentcanvas.pattern import Cast, Outcome, Role
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.stage import RunStage
from agentcanvas.store import Store
from bench.harness import Contender, Contest, Figure, at_most, times_better

SQLITE = "langgraph.checkpoint.sqlite"
PEER = "LangGraph, SqliteSaver"
PEER_ASYNC = "LangGraph, AsyncSqliteSaver"
OURS = "AgentCanvas"
MANY = 32
Calls: TypeAlias = Callable[[], Awaitable[None]]

FLOW = """
version: 0.2
agents: [{id: worker, role: worker, runtime: {kind: python, call: "bench.runs:answer"}}]
interactions:
  - id: work
    patternId: manager_worker
    roles: {worker: worker}
    data: {termination: [{type: max_rounds, rounds: 1}]}
"""


def is_there() -> bool:
    """Whether the peer is installed."""
    return all(importlib.util.find_spec(name.partition(".")[0]) for name in ("langgraph", SQLITE))


def make_repository(folder: Path) -> None:
    """Make a workspace of a folder."""
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


async def answer(turn: object) -> str:
    """Be the agent."""
    del turn
    return "ok"


# -- ours ------------------------------------------------------------------------------------------


class NoOptions(msgspec.Struct, frozen=True):
    """Nothing to choose."""


class Driven:
    """A pattern that asks when it is told to, so that a run is there before it is measured."""

    id = "manager_worker"
    options = NoOptions
    roles = (Role("worker", "answers", most=None, writes=True),)

    def __init__(self) -> None:
        self.orders: list[anyio.abc.ObjectReceiveStream[int]] = []
        self.reports, self._done = anyio.create_memory_object_stream[int](1000)

    async def run(self, stage: RunStage, cast: Cast, request: str, options: NoOptions) -> Outcome:
        """Take orders until there are no more."""
        del cast, request, options
        async for turns in self.orders.pop():
            for number in range(turns):
                await stage.ask("worker", f"turn {number}")
            await self.reports.send(turns)
        return Outcome("done", done=True)

    async def done(self) -> None:
        """Wait until one run has carried out its order."""
        await self._done.receive()


@asynccontextmanager
async def our_turns(folder: Path, runs: int, turns: int) -> AsyncIterator[tuple[Calls, Store]]:
    """Have runs under way, each followed by somebody; a call takes ``turns`` turns in each."""
    make_repository(folder)
    pattern = Driven()
    sending = []
    for _ in range(runs):
        order, orders = anyio.create_memory_object_stream[int](1)
        sending.append(order)
        pattern.orders.append(orders)
    with patch.object(office, "PATTERNS", (pattern,)):
        async with (
            open_engine(folder, functions={"worker": answer}) as (engine, store),
            anyio.create_task_group() as group,
        ):
            for _ in range(runs):
                wanted = RunOrder(flow="bench", flow_text=FLOW, request="x", max_parallel=20)
                group.start_soon(follow, engine, await engine.start(wanted))

            async def call() -> None:
                for order in sending:
                    await order.send(turns)
                for _ in sending:
                    await pattern.done()

            yield call, store
            for order in sending:
                order.close()


async def follow(engine: Engine, run_id: str) -> None:
    """Read a run's events until its end."""
    async for _ in engine.events(run_id):
        pass


# -- the peer --------------------------------------------------------------------------------------


def _graph(saver: object, turns: int, node: object) -> Any:
    graphs = importlib.import_module("langgraph.graph")
    graph = graphs.StateGraph(dict)
    graph.add_node("worker", node)
    graph.add_edge(graphs.START, "worker")

    def onwards(state: dict[str, Any]) -> str:
        return "worker" if state["n"] < turns else str(graphs.END)

    graph.add_conditional_edges("worker", onwards, ["worker", graphs.END])
    return graph.compile(checkpointer=saver)


def _step(state: dict[str, Any]) -> dict[str, Any]:
    return {"n": state["n"] + 1, "text": "ok"}


async def _async_step(state: dict[str, Any]) -> dict[str, Any]:
    return _step(state)


def _settings(thread: int, turns: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": str(thread)}, "recursion_limit": turns + 10}


@contextmanager
def peer_turns(folder: Path, runs: int, turns: int) -> Iterator[Calls]:
    """Invoke graphs of so many nodes, each in a thread of its own when there are several."""
    connection = sqlite3.connect(folder / "peer.db", check_same_thread=False)
    saver = importlib.import_module(SQLITE).SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous = FULL")
    graph = _graph(saver, turns, _step)
    threads = count()

    def one() -> None:
        settings = _settings(next(threads), turns)
        graph.invoke({"n": 0, "text": "turn"}, settings, durability="sync")

    async def call() -> None:
        if runs == 1:
            one()
            return
        async with anyio.create_task_group() as group:
            for _ in range(runs):
                group.start_soon(anyio.to_thread.run_sync, one)

    try:
        yield call
    finally:
        connection.close()


@asynccontextmanager
async def peer_turns_async(folder: Path, runs: int, turns: int) -> AsyncIterator[Calls]:
    """Do the same on the event loop."""
    aiosqlite = importlib.import_module("aiosqlite")
    async with aiosqlite.connect(folder / "peer.db") as connection:
        saver = importlib.import_module(f"{SQLITE}.aio").AsyncSqliteSaver(connection)
        await saver.setup()
        await connection.execute("PRAGMA synchronous = FULL")
        graph = _graph(saver, turns, _async_step)
        threads = count()

        async def one() -> None:
            settings = _settings(next(threads), turns)
            await graph.ainvoke({"n": 0, "text": "turn"}, settings, durability="sync")

        async def call() -> None:
            async with anyio.create_task_group() as group:
                for _ in range(runs):
                    group.start_soon(one)

        yield call


# -- turns -----------------------------------------------------------------------------------------


@asynccontextmanager
async def only_calls(
    folder: Path, runs: int, turns: int, *, costs: bool
) -> AsyncIterator[Callable[[], Awaitable[float | None]]]:
    """Our turns as work for a contest, timed by the harness or told by what they cost."""
    async with our_turns(folder, runs, turns) as (call, store):

        async def cost() -> float:
            return await _cpu(call, runs * turns, store.flush_projections)

        yield cost if costs else call


@contextmanager
def costing(folder: Path, runs: int, turns: int) -> Iterator[Callable[[], Awaitable[float]]]:
    """What the peer's turns cost."""
    with peer_turns(folder, runs, turns) as call:
        yield lambda: _cpu(call, runs * turns)


@asynccontextmanager
async def costing_async(
    folder: Path, runs: int, turns: int
) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """What the peer's turns cost on the event loop."""
    async with peer_turns_async(folder, runs, turns) as call:
        yield lambda: _cpu(call, runs * turns)


async def _cpu(call: Calls, turns: int, afterwards: Calls | None = None) -> float:
    """Microseconds of all threads of this process for a turn; what is left over is ended first."""
    before = _spent()
    await call()
    if afterwards is not None:
        await afterwards()
    return (_spent() - before) / turns * 1e6


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def turn_contests(place: Callable[[], Path]) -> Iterator[Contest]:
    """One run, and 32 at once: how fast, and for how much CPU."""
    peers = is_there()
    for runs, turns, faster in ((1, 100, 1.0), (MANY, 20, 4.0)):
        what = "one run" if runs == 1 else f"{runs} runs at once"
        many = runs * turns
        contenders = [
            Contender.opened(
                OURS,
                partial(only_calls, place(), runs, turns, costs=False),
                operations=many,
                bar=times_better(faster, than=PEER) if peers else None,
            )
        ]
        spending = [
            Contender.opened(
                OURS,
                partial(only_calls, place(), runs, turns, costs=True),
                bar=times_better(1 / 0.8, than=PEER) if peers else None,
            )
        ]
        if peers:
            contenders += [
                Contender.opened(PEER, partial(peer_turns, place(), runs, turns), operations=many),
                Contender.opened(
                    PEER_ASYNC, partial(peer_turns_async, place(), runs, turns), operations=many
                ),
            ]
            spending += [
                Contender.opened(PEER, partial(costing, place(), runs, turns)),
                Contender.opened(PEER_ASYNC, partial(costing_async, place(), runs, turns)),
            ]
        note = "ours: two messages, an ack, events, transcript, files; theirs: a checkpoint"
        baseline = PEER if peers else None
        yield Contest(
            name=f"a durable turn, {what}", baseline=baseline, contenders=contenders, note=note
        )
        yield Contest(
            name=f"CPU of a durable turn, {what}",
            figure=Figure("µs/turn", better="lower"),
            baseline=baseline,
            contenders=spending,
            note="user and system time of all threads; ours with its files written and synced",
        )


# -- fsyncs ----------------------------------------------------------------------------------------


async def take_turns(side: str, folder: Path, runs: int, turns: int) -> None:
    """Take turns once; what the system calls are counted of."""
    if side == OURS:
        async with our_turns(folder, runs, turns) as (call, _):
            await call()
    else:
        with peer_turns(folder, runs, turns) as call:
            await call()


def fsyncs_a_turn(place: Callable[[], Path], side: str, runs: int, turns: int) -> float:
    """Count what the kernel is asked for; the difference of two lengths leaves out all else."""
    few, more = turns // 4, turns + turns // 4
    difference = _fsyncs(place, side, runs, more) - _fsyncs(place, side, runs, few)
    return difference / (runs * (more - few))


def _fsyncs(place: Callable[[], Path], side: str, runs: int, turns: int) -> int:
    strace = shutil.which("strace")
    assert strace
    calls = place() / "calls"
    traced = [strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(calls)]
    command = [sys.executable, "-m", "bench.runs", side, str(place()), str(runs), str(turns)]
    subprocess.run([*traced, *command], check=True)
    return len(re.findall(r"f(?:data)?sync\(", calls.read_text()))


def fsync_contests(place: Callable[[], Path], *, quick: bool) -> Iterator[Contest]:
    """The fsyncs of both sides (D2)."""
    for runs, turns, most in ((1, 100 if quick else 400, 2.0), (MANY, 10 if quick else 40, 0.2)):
        what = "one run" if runs == 1 else f"{runs} runs at once"
        sides = [OURS, *([PEER] if is_there() else [])]
        yield Contest(
            name=f"fsyncs a turn, {what}",
            figure=Figure("fsyncs/turn", better="lower"),
            contenders=[
                Contender(
                    side,
                    partial(fsyncs_a_turn, place, side, runs, turns),
                    bar=at_most(most) if side == OURS else None,
                )
                for side in sides
            ],
            note="counted by strace, in all threads; checkpoints and the files' syncs included",
        )


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of runs."""
    if not is_there():
        print(
            "LANGGRAPH IS NOT INSTALLED: turns are not compared with anything. "
            "Install it with: pip install --group bench",
            file=sys.stderr,
        )
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        numbers = count()

        def place() -> Path:
            path = Path(name) / str(next(numbers))
            path.mkdir()
            return path

        yield from turn_contests(place)
        if shutil.which("strace"):
            yield from fsync_contests(place, quick=quick)


if __name__ == "__main__":
    side, folder, runs, turns = sys.argv[1:]
    anyio.run(take_turns, side, Path(folder), int(runs), int(turns))
