"""The programs in examples/agents work as they are printed, with each other and with the SDK."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from agentcanvas import connect
from tests.app.hub_process import hub_process, tokens_for, ws

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1", "M1")]

EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
NEEDED = {
    "node": shutil.which("node"),
    "curl": shutil.which("curl"),
    "sh": shutil.which("sh"),
}
WORKERS = {
    "sdk-worker": (sys.executable, "sdk_worker.py"),
    "ws-worker": (sys.executable, "websocket_worker.py"),
    "node-worker": (NEEDED["node"] or "", "worker.mjs"),
}
ASKERS = {
    "asker": (sys.executable, "sdk_ask.py"),
    "curl": (NEEDED["sh"] or "", "ask.sh"),
}


def _need(*programs: str) -> None:
    for program in programs:
        if not NEEDED[program]:
            pytest.skip(f"there is no {program} on this machine")


def _environment(url: str, token: str) -> dict[str, str]:
    return {**os.environ, "AGENTCANVAS_HUB": url, "AGENTCANVAS_TOKEN": token}


@contextmanager
def at_work(words: Sequence[str], url: str, token: str) -> Iterator[None]:
    """Run a worker until the block ends."""
    with subprocess.Popen(words, cwd=EXAMPLES, env=_environment(url, token)) as child:
        try:
            yield
        finally:
            child.kill()


@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize("worker", WORKERS)
async def test_an_example_asks_and_an_example_answers(
    worker: str, asker: str, tmp_path: Path
) -> None:
    if worker == "node-worker":
        _need("node")
    if asker == "curl":
        _need("curl", "sh")
    tokens = await tokens_for(tmp_path, worker, asker)
    with hub_process(tmp_path) as (url, _):
        at = url if worker == "node-worker" else ws(url)
        with at_work(WORKERS[worker], at, tokens[worker]):
            said = await anyio.run_process(
                [*ASKERS[asker], worker, "three short words"],
                cwd=EXAMPLES,
                env=_environment(url if asker == "curl" else ws(url), tokens[asker]),
            )
    printed = said.stdout.decode()
    if asker == "curl":
        (message,) = json.loads(printed)["messages"]
        assert message["type"] == "TASK_COMPLETE"
        assert message["payload"]["output"] == {"words": 3}
    else:
        assert printed == "{'words': 3}\n"


async def test_a_worker_without_the_sdk_is_seen_and_keeps_its_tasks_when_it_dies(
    tmp_path: Path,
) -> None:
    tokens = await tokens_for(tmp_path, "ws-worker", "me")
    with hub_process(tmp_path) as (url, _):
        async with connect(ws(url), "me", token=tokens["me"]) as client:
            with at_work(WORKERS["ws-worker"], ws(url), tokens["ws-worker"]):
                first = await client.request("ws-worker", "count_words", "a b")
            # It is gone, without a goodbye: what it is asked now waits for the next one.
            receipt = await client.send("ws-worker", "count_words", "c d e")
            assert receipt.numbers
            with at_work(WORKERS["ws-worker"], ws(url), tokens["ws-worker"]):
                second = await client.request("ws-worker", "count_words", "f")
    assert (first.output, second.output) == ({"words": 2}, {"words": 1})


def test_every_example_is_run() -> None:
    programs = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".mjs", ".sh")}
    assert programs == {words[-1] for words in (*WORKERS.values(), *ASKERS.values())}
