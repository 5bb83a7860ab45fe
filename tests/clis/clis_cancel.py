"""A cancelled CLI leaves nothing: no worker, no shell, no daemon, whatever it thinks of signals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agentcanvas.agents.cli.kit import CliWishes
from agentcanvas.agents.cli.providers import provider_for
from agentcanvas.agents.cli.runtime import CliRuntime
from agentcanvas.agents.confined import tag_of
from agentcanvas.agents.outbound import Outbound
from agentcanvas.agents.way_out import WayOut
from agentcanvas.app.clis import adapter_of
from agentcanvas.clock import SystemClock
from agentcanvas.protocol.records import FailureClass, ToolCallEvent
from agentcanvas.sandbox.confine import Network, View
from agentcanvas.sandbox.egress.rules import Rules
from agentcanvas.sandbox.pick import pick
from agentcanvas.sandbox.process_tree import marked
from tests.agents.conftest import Events, turn
from tests.clis.clis_flows import EVERY
from tests.clis.conftest import KEY_ENV, Need
from tests.model_server.server import KEY, ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.req("H8", "H10")]

DAEMON = "SHELL (setsid sleep 4242 >/dev/null 2>&1 &) ; echo begun"


@pytest.fixture
def place(tmp_path: Path) -> View:
    for name in ("workspace", "tree", "home", "tmp"):
        (tmp_path / name).mkdir()
    return View(tmp_path / "workspace", tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")


async def outbound(cli: str, model: ModelServer) -> Outbound:
    adapter = adapter_of(cli)
    environ = {"PATH": os.environ["PATH"], KEY_ENV: KEY}
    provider = provider_for(adapter.facts.providers, environ, url=model.url, key_env=KEY_ENV)
    assert provider
    runtime = CliRuntime(
        adapter,
        (await pick()).confinement,
        SystemClock(),
        wishes=CliWishes(model="stub-model", provider=provider),
        environ=environ,
    )
    return Outbound(runtime, WayOut(Network.MODEL, Rules(models=(provider.endpoint,))))


def alive(place: View) -> int:
    """How many processes of the worker there are; a daemon of its shell has its tag, too."""
    return len(marked(tag_of(place)))


@pytest.mark.parametrize("cli", EVERY)
async def test_one_that_waits_for_its_model_is_gone_with_its_daemons(
    cli: str, need: Need, model: ModelServer, place: View
) -> None:
    need(cli)
    runtime = await outbound(cli, model)
    asked = turn(prompt=f"{'' if cli == 'aider' else DAEMON}\nHANG", place=place)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.run, asked, Events())
        assert await anyio.to_thread.run_sync(lambda: model.hangs.wait(120))
        assert alive(place) >= (1 if cli == "aider" else 2), "the trial must be able to fail"
        tasks.cancel_scope.cancel()
    assert alive(place) == 0


# The others tell of a tool when it has ended, or have none.
@pytest.mark.parametrize("cli", sorted(set(EVERY) - {"aider", "opencode"}))
async def test_one_whose_tool_runs_for_ever_is_gone_with_it(
    cli: str, need: Need, model: ModelServer, place: View
) -> None:
    need(cli)
    runtime = await outbound(cli, model)
    used = anyio.Event()

    class Watching(Events):
        def __call__(self, event: Any) -> None:
            if isinstance(event, ToolCallEvent):
                used.set()

    asked = turn(prompt="SHELL tail -f /dev/null", place=place)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.run, asked, Watching())
        with anyio.fail_after(120):
            await used.wait()
        assert alive(place), "the trial must be able to fail"
        tasks.cancel_scope.cancel()
    assert alive(place) == 0


REFUSALS = {
    "401 invalid api key": FailureClass.AUTH,
    "429 Rate limit reached, please try again in 20s": FailureClass.RATE_LIMIT,
    "404 The model stub-model does not exist": FailureClass.MODEL_NOT_FOUND,
}


@pytest.mark.parametrize("words", REFUSALS)
@pytest.mark.parametrize("cli", EVERY)
async def test_a_refusal_of_the_service_has_its_name_and_comes_soon(
    cli: str, words: str, need: Need, model: ModelServer, place: View
) -> None:
    need(cli)
    runtime = await outbound(cli, model)
    with anyio.fail_after(240):  # qwen tries seven times, whatever it is told
        result = await runtime.run(turn(prompt=f"ERROR {words}", place=place), Events())
    assert result.error_class is REFUSALS[words], result.error
    assert alive(place) == 0
