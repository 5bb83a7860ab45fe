"""An agent that connects by itself takes part in a run: here one that judges (D40)."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_premises
from agentcanvas.app.server import serve_beside
from agentcanvas.app.team import Team
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.office import TokenOrder
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.state import RunStatus
from tests.app.hub_process import ws
from tests.runs.workspaces import repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D40", "H1")]

team = Team()


@team.worker("coder")
def coder(turn: Turn) -> str:
    """Greet the world."""
    assert turn.place is not None
    (turn.place.tree / "greeting.txt").write_text("hello world\n")
    return "wrote it"


def flow() -> str:
    """The team, and a reviewer that nobody starts."""
    said = msgspec.json.decode(team.flow())
    said["agents"].append({"id": "judge", "role": "reviewer", "runtime": {"kind": "remote"}})
    said["review"]["reviewer"] = "judge"
    return msgspec.json.encode(said).decode()


@pytest.mark.parametrize("transport", ["websocket", "http"])
async def test_a_run_waits_for_a_remote_reviewer_and_keeps_to_its_verdict(
    tmp_path: Path, transport: str
) -> None:
    root = await anyio.to_thread.run_sync(
        lambda: repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    )
    judge = Agent("judge")
    judged: list[str] = []

    @judge.task()
    async def decide(task: Task) -> object:
        judged.append(str(task.input["message"]))
        return "APPLY"

    async with (
        open_premises(root, functions={"coder": coder}) as premises,
        serve_beside(
            premises.engine, premises.store, root, port=0, static=None, hub=premises.hub
        ) as info,
    ):
        token = (await premises.hub.keeper.new_token(TokenOrder(name="judge"))).text
        run = await premises.engine.start(
            RunOrder(flow="team", flow_text=flow(), request="Greet the world")
        )
        url = ws(info.url) if transport == "websocket" else info.url
        async with judge.working(url, token=token):
            async for _ in premises.engine.events(run, follow=True):
                pass
        state = await premises.engine.state(run)
    assert state.status is RunStatus.DONE, state.reason
    assert len(judged) == 1
    assert "greeting.txt" in judged[0]
    assert (await anyio.Path(root / "greeting.txt").read_text()) == "hello world\n"
