"""The demo's workspace on the real engine and the real server, for tests and pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from agentcanvas.app.composing import flow_for
from agentcanvas.app.demo import make_folder, order_for
from agentcanvas.app.office import open_premises
from agentcanvas.app.planning import WorkspacePlanner
from agentcanvas.app.server import ServerInfo, serve_beside
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.office import RunOrder

CHANGELOG = (
    "printf '# Changes\\n\\n- Slugs keep their digits\\n' > CHANGES.md; "
    "sed -i 's/^/# /' README.md; echo 'I wrote CHANGES.md.'"
)


class Scene(NamedTuple):
    """What is on."""

    engine: Engine
    info: ServerInfo
    root: Path

    async def demo(self) -> str:
        """Begin the demo's run; gives its id."""
        return await self.engine.start(order_for(self.root))

    async def solo(self, request: str = "Add a changelog", command: str = CHANGELOG) -> str:
        """Begin a run of one worker whose change waits for a person."""
        composed = flow_for(request, command, {})
        order = RunOrder(flow=composed.name, flow_text=composed.text, request=request)
        return await self.engine.start(order)

    async def until_it_rests(self, run_id: str) -> e.RunEvent:
        """The last event of a run that has ended or waits for a person."""
        return [entry.event async for entry in self.engine.events(run_id)][-1]


@asynccontextmanager
async def scene(folder: Path, built_page: Path) -> AsyncIterator[Scene]:
    root = make_folder(folder)
    async with (
        open_premises(root) as (engine, hub),
        serve_beside(
            engine,
            hub.store,
            root,
            port=0,
            static=built_page,
            hub=hub,
            planner=WorkspacePlanner(engine, root),
        ) as info,
    ):
        yield Scene(engine, info, root)
