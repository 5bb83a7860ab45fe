"""A host that is killed in the middle of a start leaves nothing that runs on, and all is found.

bubblewrap sets itself up in several steps, and dies with its host only from a certain one on. The
leftovers are counted by their command lines, which all name the place: the tag is what is tried.
"""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from agentcanvas.sandbox.cleanup import end_strays
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.pick import pick
from agentcanvas.sandbox.process_tree import end_leftovers

pytestmark = pytest.mark.req("H10", "D18")

KILLS = 60

HOST = """
import os, signal, sys, time
from pathlib import Path

import anyio

from agentcanvas.sandbox import start as starting
from agentcanvas.sandbox.confine import Command, View
from agentcanvas.sandbox.pick import pick
from agentcanvas.sandbox.process import start_confined

def killed_before_the_word(*_, **__):
    print(flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

async def host(confinement, root):
    view = View(root / "workspace", root / "tree", root / "home", root / "tmp")
    script = f"echo ran >> ran; sleep 600 {root}"
    command = Command(("/bin/sh", "-c", script), tag=str(root))
    async with start_confined(confinement, view, command) as process:
        await process.wait()

name, root, *moments = sys.argv[1:]
picked = anyio.run(lambda: pick(only=name))
if moments == ["before the word"]:
    starting.impose = killed_before_the_word
    anyio.run(host, picked.confinement, Path(root))
for moment in map(float, moments):  # one process for many hosts: only their starts count
    child = os.fork()
    if not child:
        anyio.run(host, picked.confinement, Path(root))
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(flush=True)
    sys.stdin.readline()
"""


def host_of(kept: Confinement, root: Path, *moments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOST, kept.name, str(root), *moments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def of_this_place(root: Path, besides: int = 0) -> dict[int, bytes]:
    """List the processes whose command line names the place, without asking the code under test.

    One that is between two programs has no command line for a moment, and counts; the threads of
    the kernel never have one, nor a program.
    """
    found = {}
    looked_at = {os.getpid(), besides}
    # Until there is no new one: a process may begin another and be gone before it is looked at.
    while fresh := {int(p.name) for p in Path("/proc").glob("[0-9]*")} - looked_at:
        looked_at |= fresh
        for pid in fresh:
            try:
                said = Path(f"/proc/{pid}/cmdline").read_bytes()
                between = not said and bool(Path(f"/proc/{pid}/exe").readlink())
            except OSError:
                continue
            if os.fsencode(root) in said or between:
                found[pid] = said
    return found


def waits_for_the_word(pid: int) -> bool:
    """Whether it stands still where it waits for the word, or for the one that would pass it on.

    A kernel that does not say where a process waits says at least that it does.
    """
    try:
        where = Path(f"/proc/{pid}/wchan").read_text()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return "pipe" in where or "intr" in where or (where in {"", "0"} and state == "S")


@pytest.fixture
async def place(bare_view: View, tmp_path: Path) -> AsyncIterator[Path]:
    """Give the place of an empty view; whatever a failing test leaves there is ended."""
    yield tmp_path
    while await end_leftovers(str(tmp_path)):
        pass


async def test_a_command_does_not_start_when_its_host_dies_before_the_word(
    confinement: Confinement, bare_view: View, place: Path
) -> None:
    with host_of(confinement, place, "before the word") as host:
        assert host.stdout
        assert host.stdout.readline()
        host.wait()
    with anyio.fail_after(60):
        while not all(map(waits_for_the_word, left := of_this_place(place))):
            assert not (bare_view.tree / "ran").exists()
            await anyio.sleep(0.002)  # the kernel has no event for "it has come so far"
    assert len(left) <= 1
    assert await end_leftovers(str(place)) == len(left)
    assert not any(of_this_place(place).values())
    assert not (bare_view.tree / "ran").exists()


async def test_whatever_a_host_leaves_that_is_killed_while_it_starts_is_ended_by_its_tag(
    confinement: Confinement, place: Path
) -> None:
    chance = random.Random(17)
    moments = [str(chance.uniform(0, 0.03)) for _ in range(KILLS)]
    with host_of(confinement, place, *moments) as hosts:
        assert hosts.stdin
        assert hosts.stdout
        for moment in moments:
            assert hosts.stdout.readline(), f"no host was killed after {moment} s"
            # What was between its fork and its program is not marked yet, and looked for again.
            with anyio.fail_after(30):
                while of_this_place(place, hosts.pid):
                    await end_leftovers(str(place))
            assert await end_leftovers(str(place)) == 0
            hosts.stdin.write(b"\n")
            hosts.stdin.flush()


async def test_who_owns_a_workspace_ends_what_its_runs_have_left(tmp_path: Path) -> None:
    home = tmp_path / "here/.agentcanvas/sandboxes/run_20260219_100000/coder/home"
    other = tmp_path / "here-too/.agentcanvas/sandboxes/run_20260219_100000/coder/home"
    async with (
        await anyio.open_process(["sleep", "600"], env=tagged(home)) as mine,
        await anyio.open_process(["sleep", "600"], env=tagged(other)) as theirs,
    ):
        assert await end_strays(tmp_path / "here") == 1
        assert await mine.wait() < 0
        assert theirs.returncode is None
        assert await end_strays(tmp_path / "here-too") == 1


async def test_a_trial_without_host_is_ended_by_the_next_and_one_with_a_host_is_not(
    confinement: Confinement, tmp_path: Path
) -> None:
    (tmp_path / "left").mkdir()
    (tmp_path / "held").mkdir()
    held = os.open(tmp_path / "held", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        async with (
            await anyio.open_process(["sleep", "600"], env=trial(tmp_path / "left")) as left,
            await anyio.open_process(["sleep", "600"], env=trial(tmp_path / "held")) as alive,
        ):
            await pick(only=confinement.name)
            assert await left.wait() < 0
            assert alive.returncode is None
            assert (tmp_path / "left").is_dir(), "an environment does not say what to remove"
            alive.kill()
    finally:
        os.close(held)


def tagged(home: Path) -> dict[str, str]:
    return {**os.environ, "AGENTCANVAS_SANDBOX": f"{home}/1234"}


def trial(folder: Path) -> dict[str, str]:
    return tagged(Path(f"trial:{folder}/home"))
