"""What is handed in says what was done, also where the worker does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.agents.handing_in import hand_in
from agentcanvas.agents.runtime import Outcome, TurnResult
from agentcanvas.clock import SystemClock
from agentcanvas.protocol.packet import Packet
from agentcanvas.protocol.turns import Order
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import prepare_sandbox
from tests.agents.conftest import RUN


@pytest.mark.parametrize(
    ("said", "summary"), [("", "Changed a.txt, b c.txt"), ("\n I did it.\n", "I did it.")]
)
async def test_the_files_speak_for_a_worker_that_says_nothing(
    tmp_path: Path, said: str, summary: str
) -> None:
    workspace = tmp_path / "repository"
    workspace.mkdir()
    sandbox = await prepare_sandbox(await take_generation(workspace, RUN), "coder-1")
    for name in ("a.txt", "b c.txt"):
        (sandbox.work_dir / name).write_text("hello\n")
    packet = Packet(task="Your change was not accepted yet. What has to change:\nshorter")
    order = Order(message="m1", run_id=RUN, turn_id="t1", revision=1)
    handed_in = await hand_in(
        sandbox, order, packet, TurnResult(outcome=Outcome.OK, text=said), SystemClock()
    )
    assert handed_in is not None
    assert handed_in.summary == summary
