"""Getting the office of a workspace: this process becomes it, or asks the one that is (D1)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from agentcanvas.app.crew import LocalCrew, vet_crew
from agentcanvas.app.hub import OpenHub, open_hub
from agentcanvas.app.lines import Lines
from agentcanvas.app.patterns import repertoire_here
from agentcanvas.app.planning import WorkspacePlanner
from agentcanvas.app.remote import RemoteOffice
from agentcanvas.app.server import PORT, ServerInfo, find_server, serve_beside
from agentcanvas.app.settings_here import settings_here
from agentcanvas.app.tracing import advice, tracing
from agentcanvas.app.workspace import ensure_folder, store_path
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import StoreBusy
from agentcanvas.patterns import PATTERNS
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.equipment import Equipment
from agentcanvas.runs.logs import CollaborationLog, InteractionLog, RunLog
from agentcanvas.runs.office import Office
from agentcanvas.runs.transcripts import TranscriptLog
from agentcanvas.sandbox.pick import Picked, pick
from agentcanvas.store import Store
from agentcanvas.web.use import Use

YOU = "you"
"""Who is asked where nobody is named."""

_TRIES = 30
_PAUSE_S = 0.1
_LOOK_EVERY_S = 5.0

PROJECTIONS = (RunLog(), CollaborationLog(), InteractionLog(), TranscriptLog())


async def _confine(unsafe: bool) -> Picked:
    return await pick(unsafe=unsafe)


class Premises(NamedTuple):
    """A workspace that this process owns: the engine, and the hub it speaks through."""

    engine: Engine
    hub: OpenHub

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        return self.hub.store


@asynccontextmanager
async def open_premises(
    root: Path,
    *,
    clock: Clock | None = None,
    resume: bool = False,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    confine: Callable[[bool], Any] = _confine,
) -> AsyncIterator[Premises]:
    """Be the one owner of a workspace until the block ends."""
    ensure_folder(root)
    clock = clock or SystemClock()
    limits = settings_here(root, os.environ).limits
    async with (
        open_hub(
            store_path(root), clock=clock, limits=limits, projections=PROJECTIONS, person=YOU
        ) as hub,
        Lines.open(hub.hub) as lines,
        tracing(hub.store, os.environ),
    ):
        repertoire = repertoire_here(root, os.environ, PATTERNS)
        equipment = Equipment(
            workspace=root,
            store=hub.store,
            hub=hub.hub,
            broker=hub.broker,
            clock=clock,
            crew=LocalCrew(lines, clock, limits=limits, functions=functions),
            repertoire=repertoire,
            advice=lambda flow: [*advice(flow, os.environ), *repertoire.odd_prompts],
            vet=lambda flow, order: vet_crew(flow, order, root, functions or ()),
        )
        async with Engine.open(equipment, confine, resume=resume) as engine:
            yield Premises(engine, hub)


@asynccontextmanager
async def open_engine(
    root: Path,
    *,
    clock: Clock | None = None,
    resume: bool = False,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    confine: Callable[[bool], Any] = _confine,
) -> AsyncIterator[tuple[Engine, Store]]:
    """The same for those who need the engine and the record only."""
    async with open_premises(
        root, clock=clock, resume=resume, functions=functions, confine=confine
    ) as premises:
        yield premises.engine, premises.store


@asynccontextmanager
async def open_office(
    root: Path,
    *,
    serve: bool = False,
    resume: bool = False,
    port: int = PORT,
    use: Use | None = None,
) -> AsyncIterator[Office]:
    """The office of a workspace, in this process or in the one that holds it already.

    With ``serve`` others can reach this process while the block lasts.
    """
    async with AsyncExitStack() as stack:
        if await find_server(root) is None:
            try:
                engine, hub = await stack.enter_async_context(open_premises(root, resume=resume))
            except StoreBusy:
                pass  # somebody was quicker
            else:
                if serve:
                    await stack.enter_async_context(_looking(engine, SystemClock()))
                    await stack.enter_async_context(
                        serve_beside(
                            engine,
                            hub.store,
                            root,
                            port=port,
                            use=use,
                            hub=hub,
                            planner=WorkspacePlanner(engine, root),
                        )
                    )
                yield engine
                return
        holder = await _wait_for_server(root, SystemClock())
        yield await stack.enter_async_context(RemoteOffice(holder))


@asynccontextmanager
async def _looking(engine: Engine, clock: Clock) -> AsyncIterator[None]:
    """Look now and then how what waits stands: whoever edits a file tells nobody."""

    async def look() -> None:
        while True:
            await clock.sleep(_LOOK_EVERY_S)
            await engine.look_again()

    looking = asyncio.create_task(look(), name="agentcanvas lookout")
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


async def _wait_for_server(root: Path, clock: Clock) -> ServerInfo:
    """The server of a process that has just taken the workspace and is about to say where it is."""
    for _ in range(_TRIES):
        found = await find_server(root)
        if found is not None:
            return found
        await clock.sleep(_PAUSE_S)
    raise StoreBusy(
        f"Another agentcanvas works in {root} and cannot be reached; wait for its end, or stop it."
    )
