"""What is handed in says what was done, also where the worker does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.agents.handing_in import hand_in
from agentcanvas.agents.runtime import Outcome, TurnResult
from agentcanvas.clock import SystemClock
from agentcanvas.errors import SandboxError
from agentcanvas.protocol.packet import Packet
from agentcanvas.protocol.turns import Order
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox
from tests.agents.conftest import RUN


def given() -> tuple[Order, Packet]:
    task = "Your change was not accepted yet. What has to change:\nshorter"
    return Order(message="m1", run_id=RUN, turn_id="t1", revision=1), Packet(task=task)


async def sandbox_in(folder: Path) -> Sandbox:
    sandbox = await prepare_sandbox(await take_generation(folder, RUN), "coder-1")
    for name in ("a.txt", "b c.txt"):
        (sandbox.work_dir / name).write_text("hello\n")
    return sandbox


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("", "Changed a.txt, b c.txt"),
        ("\n I did it.\n", "I did it."),
        (".:\n.\n..\n", "Changed a.txt, b c.txt"),
        (".\n12 5\nI did it.\n", "I did it."),
    ],
)
async def test_the_files_speak_for_a_worker_that_says_nothing(
    tmp_path: Path, said: str, summary: str
) -> None:
    sandbox = await sandbox_in(tmp_path)
    result = TurnResult(outcome=Outcome.OK, text=said)
    handed_in = await hand_in(sandbox, *given(), result, SystemClock())
    assert handed_in is not None
    assert handed_in.summary == summary


async def test_nothing_is_handed_in_while_somebody_may_write_to_it(tmp_path: Path) -> None:
    sandbox = await sandbox_in(tmp_path)
    result = TurnResult(outcome=Outcome.OK, text="I did it.", left_over=2)
    with pytest.raises(SandboxError, match="2 of its processes could not be ended"):
        await hand_in(sandbox, *given(), result, SystemClock())
    assert list(sandbox.paths.proposal_dir.iterdir()) == []
