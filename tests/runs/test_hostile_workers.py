"""Workers that mean harm, each in a whole run: contained, reported, and the run goes on.

The limits are lowered, so that nothing is filled or slowed down for real. That nothing is left is
counted by the mark that every process of a sandbox carries.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.agents.runtimes import command as command_runtime
from agentcanvas.app.office import open_premises
from agentcanvas.hub.guard import Principal
from agentcanvas.runs import events as e
from agentcanvas.runs.state import TaskStatus
from agentcanvas.sandbox.process import Limits
from agentcanvas.sandbox.process_tree import marked
from agentcanvas.sandbox.trees import remove_path
from tests.chaos.driving import (
    BY_ITSELF,
    PYTHON,
    command,
    flow,
    order,
    payloads,
    rests,
    tree_of,
    writing,
)
from tests.hub.helpers import message
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("S2", "S5", "C1")]

MEGABYTE = 1024 * 1024
LOWERED = Limits(
    processes=30,
    growth_bytes=8 * MEGABYTE,  # a thousand folders take four
    memory_bytes=300 * MEGABYTE,
    poll_s=0.1,
)
TASKS = (
    {"id": "bad", "agent": "bad", "description": "Do harm", "scope": ["bad/**"]},
    {"id": "good", "agent": "good", "description": "Do good", "scope": ["good.txt"]},
)
MORE_THAN_ONE_CAN_HOLD = 80
SECRET = "a-secret-of-the-user-0123456789"


def lowered(**said: Any) -> Limits:
    """What a command may take, in the place of what a coding CLI may."""
    return msgspec.structs.replace(LOWERED, **{**said, "grace_s": 0.2})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(command_runtime, "Limits", lowered)
    monkeypatch.setenv("SECRET_OF_THE_HOST", SECRET)
    folder = repository(tmp_path / "repo", {"README.md": "hello\n"})
    yield folder
    remove_path(folder)  # pytest cannot remove trees as deep as some of these


async def suffer(
    root: Path, line: str, *, timeout_ms: int = 60_000
) -> tuple[dict[str, TaskStatus], str, str]:
    """Have a hostile and a good worker at once: what became of both, why, and all that was said."""
    team = {"bad": command(line, timeout_ms=timeout_ms), "good": PYTHON}
    text = flow(team, tasks=TASKS, checks=[], review=BY_ITSELF)
    async with engine_on(root, functions={"good": writing("good.txt", "good\n")}) as engine:
        run_id = await engine.start(order(text))
        entries = await rests(engine, run_id)
        tasks = (await engine.state(run_id)).tasks
        said = [str(entry.event) async for entry in engine.transcript(run_id, "bad")]
    failures = payloads(entries, e.TaskFailed)
    assert marked(str(root / ".agentcanvas" / "sandboxes")) == []
    assert (root / "good.txt").read_text() == "good\n"
    assert (root / "README.md").read_text() == "hello\n"
    reasons = "; ".join(failure.reason for failure in failures)
    return {task.task_id: task.status for task in tasks.values()}, reasons, "\n".join(said)


GREEDY = {
    "forks": ("f() { sleep 60 & f; }; f", "processes"),
    "takes memory": (
        "python3 -c 'x = bytearray(600 * 1024 * 1024); import time; time.sleep(60)'",
        "memory",
    ),
    "fills its quota": (
        "mkdir bad; while :; do head -c 2000000 /dev/zero >> bad/big; sleep 0.05; done",
        "it wrote",
    ),
    "prints without end": ("yes harm", "was not done after"),
    "ignores the polite signal": ("trap '' TERM; while :; do sleep 60; done", "was not done after"),
}


@pytest.mark.parametrize("case", GREEDY)
async def test_whoever_takes_too_much_fails_and_the_others_go_on(root: Path, case: str) -> None:
    line, reason = GREEDY[case]
    is_patient = reason != "was not done after"
    timeout_ms = 60_000 if is_patient else 700
    statuses, reasons, _ = await suffer(root, line, timeout_ms=timeout_ms)
    assert statuses == {"bad": TaskStatus.FAILED, "good": TaskStatus.APPLIED}
    assert reason in reasons


async def test_a_daemon_does_not_outlive_its_turn(root: Path) -> None:
    line = "mkdir bad; (setsid sh -c 'sleep 60; echo late > bad/late' &); echo in time > bad/x"
    statuses, _, _ = await suffer(root, line)
    assert statuses["bad"] is TaskStatus.APPLIED
    assert sorted(path.name for path in (root / "bad").iterdir()) == ["x"]


async def test_links_and_the_base_lead_nowhere_outside(root: Path) -> None:
    line = (
        f"mkdir bad; ln -s {root}/README.md bad/out; echo harm > bad/out;"
        " find / '(' -path /proc -o -path /usr -o -path /sys ')' -prune"
        " -o -name README.md -path '*/input/*' -print 2>/dev/null | "
        ' while read -r file; do chmod u+w "$file"; echo harm > "$file"; done; rm -r bad; exit 3'
    )
    statuses, reasons, _ = await suffer(root, line)
    assert statuses["bad"] is TaskStatus.FAILED
    assert "exit code 3" in reasons
    for tree in (root / ".agentcanvas" / "generations").glob("*/g*/tree/README.md"):
        assert tree.read_text() == "hello\n"


async def test_what_is_planted_for_git_runs_nowhere_and_does_not_land(
    root: Path, tmp_path: Path
) -> None:
    planted = tmp_path / "planted"
    line = (
        f"git config core.fsmonitor 'touch {planted}; false';"
        f" git config diff.external 'touch {planted}; false';"
        f" printf '#!/bin/sh\\ntouch {planted}\\n' > .git/hooks/post-index-change;"
        " chmod +x .git/hooks/post-index-change; mkdir bad; echo x > bad/x"
    )
    statuses, _, _ = await suffer(root, line)
    assert statuses["bad"] is TaskStatus.APPLIED
    assert not planted.exists()
    assert "fsmonitor" not in (root / ".git" / "config").read_text()


@pytest.fixture
def doors() -> Iterator[dict[str, socket.socket]]:
    """Sockets of the machine that nobody inside should reach."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for each in (tcp, udp):
            each.settimeout(0)
        yield {"tcp": tcp, "udp": udp}


DIG = """
import os
os.makedirs("bad", exist_ok=True)
os.chdir("bad")
for _ in range(1200):
    os.makedirs("d", exist_ok=True)
    os.chdir("d")
for name in (".gitignore", "file"):
    open(name, "w").write("x")
"""


async def test_files_deeper_than_calls_can_go_come_back_with_the_reason(root: Path) -> None:
    """Two rounds: what was handed in is compared, kept for the next round, and brought back."""
    (root / "dig.py").write_text(DIG)
    statuses, _, _ = await suffer(root, "python3 dig.py")
    assert statuses == {"bad": TaskStatus.REJECTED, "good": TaskStatus.APPLIED}


async def test_a_check_that_digs_is_contained_and_the_run_goes_on(root: Path) -> None:
    """The check runs the code of the worker."""
    (root / "dig.py").write_text(DIG)
    text = flow(
        {"bad": PYTHON, "good": PYTHON},
        tasks=TASKS,
        checks=[{"name": "tests", "command": "python3 dig.py"}],
        review=BY_ITSELF,
    )
    functions = {"bad": in_folder("bad/code"), "good": writing("good.txt", "good\n")}
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(text))
        await rests(engine, run_id)
        state = await engine.state(run_id)
    assert {task.status for task in state.tasks.values()} == {TaskStatus.APPLIED}
    left = (root / ".agentcanvas" / "sandboxes" / run_id).glob(".evidence-*")
    assert list(left) == []


def in_folder(name: str) -> Any:
    """A function that makes the folder of a file, too."""

    def write(turn: Turn) -> str:
        path = tree_of(turn) / name
        path.parent.mkdir()
        path.write_text("code\n")
        return f"I wrote {name}."

    return write


SNOOP = """
import glob, os, socket, sys
root, secret, listening, tcp, udp = sys.argv[1:6]
def attempt(name, act):
    try:
        print(name, act())
    except Exception as error:
        print(name, "refused", type(error).__name__)
def read(path):
    return open(path, "rb").read()
def over(family, kind, where):
    with socket.socket(family, kind) as it:
        it.settimeout(2)
        it.connect(where)
        return it.send(b"harm")
attempt("slash", lambda: open("/harm", "w").close() or "WROTE")
attempt("etc", lambda: open("/etc/harm", "w").close() or "WROTE")
try:  # what lies above the workspace may be the sandbox's own /tmp
    open(root + "/../harm", "w").close()
except OSError:
    pass
attempt("login", lambda: read(secret))
attempt("token", lambda: read(root + "/.agentcanvas/server.json"))
attempt("store", lambda: len(read(root + "/.agentcanvas/agentcanvas.db")))
for path in glob.glob("/proc/[0-9]*/environ"):
    attempt(path, lambda: [x for x in read(path).split(b"\\0") if x.startswith(b"SECRET_OF")])
attempt("unix", lambda: over(socket.AF_UNIX, socket.SOCK_STREAM, listening))
attempt("docker", lambda: over(socket.AF_UNIX, socket.SOCK_STREAM, "/var/run/docker.sock"))
attempt("bus", lambda: over(socket.AF_UNIX, socket.SOCK_STREAM, "/run/dbus/system_bus_socket"))
attempt("tcp", lambda: over(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))))
attempt("udp", lambda: over(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))))
"""


async def test_a_snoop_finds_no_secret_and_reaches_nobody(
    root: Path, tmp_path: Path, doors: dict[str, socket.socket]
) -> None:
    (tmp_path / ".ssh").mkdir()
    secret = tmp_path / ".ssh" / "id_ed25519"
    secret.write_text(SECRET)
    (root / ".agentcanvas").mkdir()
    (root / ".agentcanvas" / "server.json").write_text(f'{{"token": "{SECRET}"}}')
    (root / "snoop.py").write_text(SNOOP)
    ports = [str(doors[name].getsockname()[1]) for name in ("tcp", "udp")]
    with socket.socket(socket.AF_UNIX) as listening:
        path = tmp_path / "bus"
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(0)
        words = " ".join([str(root), str(secret), str(path), *ports])
        statuses, _, said = await suffer(root, f"python3 snoop.py {words}; exit 3")
        for each in (listening, doors["tcp"]):
            with pytest.raises(BlockingIOError):
                each.accept()
        with pytest.raises(BlockingIOError):
            doors["udp"].recv(10)
    assert statuses["bad"] is TaskStatus.FAILED
    assert SECRET not in said
    assert "WROTE" not in said
    assert "slash refused" in said
    assert "tcp refused" in said
    for place in ("/harm", "/etc/harm", tmp_path / "harm"):
        assert not await anyio.Path(place).exists()


async def test_one_that_talks_to_the_engine_all_the_time_keeps_no_answer_from_coming(
    root: Path,
) -> None:
    async def talk(turn: Turn) -> str:
        for number in range(MORE_THAN_ONE_CAN_HOLD):
            said = message("bad", f"engine:{turn.run_id}", str(number), session=turn.run_id)
            await premises.hub.hub.send(Principal("bad"), said)
        return "done"

    functions = {"bad": talk, "good": writing("good.txt", "good\n")}
    text = flow(dict.fromkeys(functions, PYTHON), tasks=TASKS, checks=[], review=BY_ITSELF)
    async with open_premises(root, functions=functions) as premises:
        run_id = await premises.engine.start(order(text))
        entries = await rests(premises.engine, run_id)
    assert [turn.ok for turn in payloads(entries, e.TurnEnded)] == [True, True]
    assert (root / "good.txt").read_text() == "good\n"
