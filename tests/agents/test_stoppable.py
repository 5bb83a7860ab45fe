"""A turn under way can be stopped by name, and is over when the stop returns."""

from __future__ import annotations

import anyio
import pytest

from agentcanvas.agents.runtime import Emit, Outcome, Turn, TurnResult
from agentcanvas.agents.stoppable import Stoppable
from agentcanvas.protocol.records import FailureClass
from tests.agents.conftest import Acting, Events, turn

pytestmark = [pytest.mark.anyio, pytest.mark.req("H10")]


class Waiting:
    """Turns that wait until they are stopped, and what came of them."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.results: dict[str, TurnResult] = {}
        self.stoppable = Stoppable(Acting(self._wait))

    async def _wait(self, turn: Turn, _: Emit) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.closed.append(turn.turn_id)

    async def run(self, turn_id: str) -> None:
        self.results[turn_id] = await self.stoppable.run(turn(turn_id=turn_id), Events())


async def test_a_stopped_turn_ends_as_cancelled_with_the_reason() -> None:
    waiting = Waiting()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting.run, "t1")
        tasks.start_soon(waiting.run, "t2")
        await anyio.wait_all_tasks_blocked()
        assert await waiting.stoppable.stop("t1", "the user said so")
        assert waiting.closed == ["t1"]
        assert await waiting.stoppable.stop_all("the run is over") == 1
    result = waiting.results["t1"]
    assert result.outcome is Outcome.CANCELLED
    assert result.error_class is FailureClass.CANCELLED
    assert result.error == "coder-1 was stopped: the user said so"
    assert waiting.results["t2"].error == "coder-1 was stopped: the run is over"


async def test_a_turn_that_is_not_under_way_cannot_be_stopped() -> None:
    waiting = Waiting()
    assert not await waiting.stoppable.stop("t1", "too early")
    assert await waiting.stoppable.stop_all("nothing there") == 0


async def test_a_turn_under_way_is_not_begun_a_second_time() -> None:
    waiting = Waiting()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiting.run, "t1")
        await anyio.wait_all_tasks_blocked()
        again = await waiting.stoppable.run(turn(turn_id="t1"), Events())
        assert again.error == "coder-1 is at work on t1 already."
        assert await waiting.stoppable.stop_all("over") == 1


async def test_a_turn_that_ends_by_itself_is_forgotten() -> None:
    async def act(_: Turn, __: Emit) -> str:
        return "done"

    stoppable = Stoppable(Acting(act))
    assert (await stoppable.run(turn(), Events())).text == "done"
    assert not await stoppable.stop("i1/ask:1", "too late")
