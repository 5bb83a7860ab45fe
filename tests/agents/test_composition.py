"""The wrappers around a real command, as a host puts them: limited, stoppable, recorded."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcanvas.agents.handoff import make_handoff
from agentcanvas.agents.limited import Limited
from agentcanvas.agents.prompt import render
from agentcanvas.agents.recorded import Recorded
from agentcanvas.agents.runtime import Outcome, Runtime, TurnResult
from agentcanvas.agents.runtimes.command import CommandRuntime
from agentcanvas.agents.stoppable import Stoppable
from agentcanvas.clock import SystemClock
from agentcanvas.protocol.forms import StandardResponse, write
from agentcanvas.protocol.kinds import ContextFile
from agentcanvas.protocol.packet import Packet
from agentcanvas.protocol.records import ErrorEvent, FailureClass, ResultEvent, TextEvent
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.paths import shown
from agentcanvas.sandbox.prepare import prepare_sandbox
from agentcanvas.sandbox.views import worker_view
from tests.agents.conftest import RUN, Events, nobody_holds, turn

pytestmark = [pytest.mark.anyio, pytest.mark.req("H8", "H10", "V1")]

CLOCK = SystemClock()


class Host:
    """One agent, wrapped as it will be in a run."""

    def __init__(self, command: str, confinement: Confinement) -> None:
        inner: Runtime = CommandRuntime(command, confinement, CLOCK, grace_s=0.2)
        self.transcript = Events()
        self.stoppable = Stoppable(Limited(inner, CLOCK, grace_s=30))
        self.runtime: Runtime = Recorded(self.stoppable, CLOCK, self.transcript)


async def test_a_turn_that_ends_well(strongest: Confinement, place: View) -> None:
    host = Host("cat", strongest)
    result = await host.runtime.run(turn(place=place, timeout_s=60), Events())
    assert (result.outcome, result.text) == (Outcome.OK, "Do it.")
    assert [type(event) for event in host.transcript] == [TextEvent, ResultEvent]
    assert [event.seq for event in host.transcript] == [0, 1]
    assert all(event.ts for event in host.transcript)


async def test_a_turn_that_is_stopped(strongest: Confinement, place: View) -> None:
    host = Host(
        "exec 9> lock; flock -s 9; trap '' TERM; (setsid sleep 600 &); echo ready; sleep 600",
        strongest,
    )
    results: list[TurnResult] = []
    ready = anyio.Event()

    async def run() -> None:
        results.append(await host.runtime.run(turn(place=place), lambda _: ready.set()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await ready.wait()
        assert not nobody_holds(place.tree / "lock"), "the trial must be able to fail"
        assert await host.stoppable.stop("i1/ask:1", "you pressed stop")
        assert nobody_holds(place.tree / "lock")
    (result,) = results
    assert (result.outcome, result.left_over) == (Outcome.CANCELLED, 0)
    closing = host.transcript[-1]
    assert isinstance(closing, ErrorEvent)
    assert closing.error_class is FailureClass.CANCELLED
    assert closing.message == "coder-1 was stopped: you pressed stop"


async def test_the_limit_of_the_process_comes_before_the_net(
    strongest: Confinement, place: View
) -> None:
    host = Host("echo hm; sleep 600", strongest)
    result = await host.runtime.run(turn(place=place, timeout_s=0.3), Events())
    assert (result.outcome, result.text) == (Outcome.TIMEOUT, "hm")
    assert result.exit_code is not None
    assert result.error == "'echo' was not done after 0.3 s and was stopped."


@pytest.mark.req("T2", "T3", "S9")
async def test_from_a_packet_in_a_real_sandbox_to_patch_and_handoff(
    strongest: Confinement, tmp_path: Path
) -> None:
    workspace = tmp_path / "repository"
    workspace.mkdir()
    (workspace / "api.py").write_text("def login():\n    pass\n")
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder-1")
    prompt = render(
        Packet(task="Greet.", reference_files=(ContextFile("api.py", "here", ("login",)),)),
        sandbox.work_dir,
    )
    host = Host("grep -q 'def login' && sed -i s/pass/greet/ api.py && cat answer.txt", strongest)
    answer = StandardResponse(intent="Greet on login", plan=("Edit api.py",))
    (sandbox.work_dir / "answer.txt").write_text(write(answer))
    asked = turn(prompt=prompt, form=StandardResponse, place=worker_view(sandbox), timeout_s=60)
    result = await host.runtime.run(asked, Events())
    assert result.value == answer, result.error or result.breach
    patch = await make_patch(sandbox)
    handoff = make_handoff(
        task="Greet.",
        response=result.value,
        sandbox_work_dir=str(sandbox.work_dir),
        proposal_json=str(sandbox.paths.proposal_dir / "proposal.json"),
        changed_files=[shown(change.path) for change in patch.changes],
    )
    assert handoff is not None
    assert handoff.context == "Greet on login"
    assert handoff.changed_files == ("answer.txt", "api.py")
    assert b"+    greet" in patch.text
    assert (workspace / "api.py").read_text() == "def login():\n    pass\n"
