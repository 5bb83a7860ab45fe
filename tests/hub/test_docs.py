"""The programs of docs/hub.md run as they are printed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from websockets.asyncio.client import connect as connect_socket

from agentcanvas import connect
from agentcanvas.protocol.rules import examine
from tests.app.hub_process import hub_process, tokens_for, ws

PAGE = (Path(__file__).parents[2] / "docs" / "hub.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize(("name", "said"), [("first", "{'lines': 2}\n"), ("recovery", "")])
def test_a_program_of_the_page_runs(name: str, said: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(EXAMPLES[name], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (ran.stdout, ran.stderr) == (said, "")


@pytest.mark.req("H1")
def test_the_worker_and_the_one_who_asks_it_run_in_processes_of_their_own(
    tmp_path: Path,
) -> None:
    for name in ("worker", "ask"):
        (tmp_path / f"{name}.py").write_text(EXAMPLES[name], encoding="utf-8")
    tokens = anyio.run(tokens_for, tmp_path / "hub", "worker-1", "me")

    def environment(name: str) -> dict[str, str]:
        return {**os.environ, "AGENTCANVAS_TOKEN": tokens[name]}

    with hub_process(tmp_path / "hub") as (url, _):
        worker = [sys.executable, "worker.py", ws(url)]
        with subprocess.Popen(worker, cwd=tmp_path, env=environment("worker-1")) as working:
            try:
                asked = subprocess.run(
                    [sys.executable, "ask.py", ws(url)],
                    cwd=tmp_path,
                    env=environment("me"),
                    capture_output=True,
                    check=False,
                )
            finally:
                working.send_signal(signal.SIGINT)
            assert working.wait() == 0, "Ctrl-C is a good end"
    assert (asked.stdout, asked.stderr) == (b"{'lines': 2}\n", b"")


@pytest.mark.parametrize("name", ["exchange", "heartbeat", "refusal"])
def test_the_messages_of_the_page_are_good(name: str) -> None:
    for message in messages(name):
        if "type" in message:
            message.pop("delivery", None)
            found = examine(msgspec.json.encode(message)).breaches
            assert {breach.rule for breach in found} <= {"id-form"}, found


@pytest.mark.req("H1")
async def test_an_agent_that_says_what_the_page_says_does_a_task(tmp_path: Path) -> None:
    tokens = await tokens_for(tmp_path / "hub", "worker", "me")
    _, *answers = messages("exchange")

    async def work(address: str) -> None:
        bearer = {"Authorization": f"Bearer {tokens['worker']}"}
        async with connect_socket(address, additional_headers=bearer) as socket:
            await socket.send(json.dumps(messages("heartbeat")[0]))
            request = json.loads(await socket.recv())
            while request.get("type") != "TASK_REQUEST":
                request = json.loads(await socket.recv())
            for answer in answers:
                if "type" in answer:
                    answer["to"] = request["from"]
                    answer["payload"]["task_id"] = request["payload"]["task_id"]
                    thread = request["metadata"].get("correlation_id", request["message_id"])
                    answer["metadata"] = {"correlation_id": thread}
                else:
                    answer["ack"] = [request["delivery"]["number"]]
                await socket.send(json.dumps(answer))
            kept: set[str] = set()
            while not {"m-2", "m-3"} <= kept:  # nobody leaves before
                word = json.loads(await socket.recv())
                kept.update(receipt["id"] for receipt in word.get("receipts", ()))

    with hub_process(tmp_path / "hub") as (url, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, f"{ws(url)}/agent/ws?agent_id=worker")
            async with connect(ws(url), "me", token=tokens["me"]) as client:
                answer = await client.request("worker", "count_words", "two words")
    assert answer.output == {"words": 2}


def messages(name: str) -> list[dict[str, Any]]:
    """The messages of one example, one after the other as they stand."""
    found = re.search(rf"<!-- example: {name} -->\n```json\n(.*?)```", PAGE, re.DOTALL)
    assert found, name
    return [json.loads(text) for text in found[1].strip().split("\n\n")]


def test_every_program_of_the_page_is_run() -> None:
    assert PAGE.count("```python") == len(EXAMPLES) == 4
