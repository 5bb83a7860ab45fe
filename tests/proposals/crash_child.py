"""Runs one call of ``Landing`` per line of input, each in a fork that may be killed on the way.

Started once and forked often: importing the package anew for each crash would take most of the
time. A line is ``{"call": ..., "arguments": [...], "workspace": ..., "kill_at": N}``; the answer
is ``{"steps": [...], "killed": bool, "error": ...}``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import traceback
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import anyio.to_thread

from agentcanvas.errors import AgentCanvasError
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.ways import Branch, Commit, Message, Way, Worktree

NOBODY = 65534
WATCHED = (
    *("transaction.py", "journal.py", "tree.py", "sealing.py", "sealer.py", "index_lock.py"),
    *("repository.py", "apply.py"),
)
MESSAGE = Message(summary="A change", proposal_id="p", run_id="r", agent_id="a")
WAYS: dict[str, Way] = {
    "worktree": Worktree(),
    "commit": Commit(MESSAGE),
    "branch": Branch("side", MESSAGE),
}


class _Killer:
    """Counts lines of the package as they are run, and kills at one of them."""

    def __init__(self, line: int) -> None:
        self._left = line

    def trace(self, frame: FrameType, event: str, _arg: object) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.trace


def work(order: dict[str, Any], steps: Path) -> str:
    seen = 0

    def step(name: str) -> None:
        nonlocal seen
        with steps.open("a") as file:
            file.write(name + "\n")
        if seen == order.get("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1
        if seen - 1 == order.get("fail_at"):
            raise OSError(order["errno"], os.strerror(order["errno"]))

    if (line := order.get("kill_at_line")) is not None:
        threading.settrace(_Killer(line).trace)
    landing = Landing(Path(order["workspace"]), step=step)
    arguments = list(order.get("arguments", []))
    options: dict[str, Any] = {}
    if order["call"] == "apply":
        arguments = [arguments[0], Path(arguments[1]).read_bytes(), Path(arguments[2])]
        options = {"way": WAYS[order.get("way", "worktree")]}
    try:
        anyio.run(partial(getattr(landing, order["call"]), *arguments, **options))
    except AgentCanvasError as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


async def import_the_rest() -> None:
    """What is imported late could be out of reach for nobody."""
    await anyio.to_thread.run_sync(int)


def main() -> None:
    anyio.run(import_the_rest)
    for line in sys.stdin:
        order = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            steps, said = Path(folder) / "steps", Path(folder) / "said"
            steps.touch()
            said.touch()
            for path in (Path(folder), steps, said):
                path.chmod(0o777)
            child = os.fork()
            if child == 0:
                try:
                    if order.get("as_nobody") and os.getuid() == 0:
                        become_nobody()
                    said.write_text(work(order, steps))
                except BaseException:
                    said.write_text(traceback.format_exc())
                    raise
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            answer = {
                "steps": steps.read_text().split("\n")[:-1],
                "killed": os.WIFSIGNALED(status),
                "error": said.read_text(),
            }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
