"""The programs of docs/hub.md run as they are printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

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


def test_every_program_of_the_page_is_run() -> None:
    assert PAGE.count("```python") == len(EXAMPLES) == 4
