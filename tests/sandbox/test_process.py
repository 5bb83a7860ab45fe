"""A confined process is heard, limited, and ended so that nothing of it is left.

That nothing is left is shown without asking the code under test: every process of a hostile tree
holds a lock on one file, and the kernel gives the lock only when the last of them is gone.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.confinements.bubblewrap import Bubblewrap
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.process import (
    Cause,
    Ending,
    Limits,
    Line,
    Source,
    run_confined,
    start_confined,
)
from agentcanvas.sandbox.process_tree import end_leftovers, marked
from tests.sandbox.conftest import confinement_or_skip

pytestmark = pytest.mark.req("H10", "D18")

# Descriptor 9 is shared by everything that descends from the shell.
LOCKED = "exec 9> lock; flock -s 9; "
QUICK = Limits(deadline_s=60, grace_s=0.2)

HOSTILE = {
    "sleeps": "sleep 600",
    "ignores the polite signal": "trap '' TERM; while :; do sleep 600; done",
    "leaves a background child": "sleep 600 & sleep 600",
    "daemonises": "(setsid sleep 600 &) ; sleep 600",
    "forks twice": "(trap '' TERM HUP; setsid sh -c 'sleep 600 & sleep 600' &) ; sleep 600",
    "drops its environment": "(env -i setsid sleep 600 &) ; sleep 600",
    "stops itself": "kill -STOP $$",
    "forks sixty": "for i in $(seq 60); do (setsid sleep 600 &); done; sleep 600",
    "keeps forking": "f() { setsid sleep 600 & f; }; f",
    "answers a signal by forking": "trap 'setsid sleep 600 & wait' TERM; sleep 600 & wait; wait",
}


@pytest.fixture(params=["bubblewrap", "landlock", "unconfined"])
def kept(request: pytest.FixtureRequest) -> Confinement:
    """Give every way to run a process on this machine."""
    if request.param == "unconfined":
        return Unconfined()
    return confinement_or_skip(request.param)


def shell(script: str, **more: str) -> Command:
    return Command(("/bin/sh", "-c", script), **more)  # type: ignore[arg-type]  # stdin, cwd, tag


def nobody_holds(lock: Path) -> bool:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def test_what_it_says_is_heard_line_by_line(kept: Confinement, bare_view: View) -> None:
    command = shell("cat; echo err >&2; printf 'no end'; exit 3", stdin="one\ntwo ü\n")
    ending, lines = await run_confined(kept, bare_view, command, QUICK)
    out = [line.text for line in lines if line.source is Source.STDOUT]
    assert out == ["one", "two ü", "no end"]
    assert Line(Source.STDERR, "err") in lines
    assert ending == Ending(Cause.EXITED, 3, survivors=0)


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_stop_leaves_nothing(kept: Confinement, bare_view: View, case: str) -> None:
    script, tag = LOCKED + "echo ready; " + HOSTILE[case], str(bare_view.tree)
    async with start_confined(kept, bare_view, shell(script, tag=tag), QUICK) as process:
        async for line in process:
            assert line.text == "ready"
            break
        assert not nobody_holds(bare_view.tree / "lock"), "the trial must be able to fail"
        assert await process.stop() == 0
        assert nobody_holds(bare_view.tree / "lock")
        ending = await process.wait()
    assert ending.cause is Cause.STOPPED
    assert ending.survivors == 0
    assert marked(tag) == []


async def test_what_is_left_when_it_exits_goes_with_it(kept: Confinement, bare_view: View) -> None:
    script = LOCKED + "(setsid sleep 600 &); (env -i setsid sleep 600 &); echo done"
    ending, lines = await run_confined(kept, bare_view, shell(script), QUICK)
    assert [line.text for line in lines] == ["done"]
    assert ending == Ending(Cause.EXITED, 0, survivors=0)
    assert nobody_holds(bare_view.tree / "lock")


async def test_a_polite_program_may_finish_what_it_does(kept: Confinement, bare_view: View) -> None:
    script = "trap 'echo saved; exit 5' TERM; echo ready; sleep 600 & wait"
    heard = []
    async with start_confined(
        kept, bare_view, shell(script), Limits(deadline_s=60, grace_s=30)
    ) as process:
        async for line in process:
            heard.append(line.text)
            if line.text == "ready":
                assert await process.stop() == 0
        assert (await process.wait()).exit_code == 5
    assert heard == ["ready", "saved"]


async def test_a_deadline_ends_it(kept: Confinement, bare_view: View) -> None:
    limits = Limits(deadline_s=0.3, grace_s=0.2)
    script = LOCKED + "while :; do echo busy; sleep 0.01; done"
    ending, lines = await run_confined(kept, bare_view, shell(script), limits)
    assert ending.cause is Cause.DEADLINE
    assert ending.survivors == 0
    assert lines
    assert nobody_holds(bare_view.tree / "lock")


async def test_a_silence_ends_it(kept: Confinement, bare_view: View) -> None:
    limits = Limits(deadline_s=60, silence_s=0.5, grace_s=0.2)
    ending, lines = await run_confined(
        kept, bare_view, shell("echo a; sleep 0.3; echo b; sleep 0.3; echo c; sleep 600"), limits
    )
    assert [line.text for line in lines] == ["a", "b", "c"]
    assert ending.cause is Cause.SILENCE


async def test_a_flood_is_cut_off_and_counted_and_does_not_block_it(
    kept: Confinement, bare_view: View
) -> None:
    limits = Limits(deadline_s=60, output_bytes=1000)
    script = "yes x | head -c 3000000; echo $? > finished"
    ending, lines = await run_confined(kept, bare_view, shell(script), limits)
    assert sum(len(line.text) + 1 for line in lines) == 1000
    assert ending.dropped_bytes == 3_000_000 - 1000
    assert [line.left_out for line in lines if line.left_out] == [ending.dropped_bytes]
    assert (bare_view.tree / "finished").read_text() == "0\n"


async def test_of_a_flood_the_beginning_and_the_end_are_heard(
    kept: Confinement, bare_view: View
) -> None:
    limits = Limits(deadline_s=60, output_bytes=4000)
    script = "echo begin; seq 100000; echo result >&2"
    ending, lines = await run_confined(kept, bare_view, shell(script), limits)
    texts = [line.text for line in lines]
    assert texts[:3] == ["begin", "1", "2"]
    assert set(texts[-2:]) == {"100000", "result"}
    gap = next(place for place, line in enumerate(lines) if line.left_out)
    assert int(texts[gap]) - int(texts[gap - 1]) > 90_000
    assert lines[gap].left_out == ending.dropped_bytes


async def test_an_endless_line_comes_in_pieces(kept: Confinement, bare_view: View) -> None:
    script = "head -c 200000 /dev/zero | tr '\\0' x"
    _, lines = await run_confined(kept, bare_view, shell(script), QUICK)
    assert "".join(line.text for line in lines) == "x" * 200_000
    assert max(len(line.text) for line in lines) <= 64 * 1024
    assert [line.goes_on for line in lines] == [True, True, True, False]


async def test_output_that_is_not_text_does_not_hurt(kept: Confinement, bare_view: View) -> None:
    _, lines = await run_confined(kept, bare_view, shell("printf 'a\\377b\\n'"), QUICK)
    assert [line.text for line in lines] == ["a\ufffdb"]


async def test_lines_that_nobody_reads_do_not_hold_it_up(
    kept: Confinement, bare_view: View
) -> None:
    async with start_confined(kept, bare_view, shell("seq 100000; exit 7"), QUICK) as process:
        assert await process.wait() == Ending(Cause.EXITED, 7, survivors=0)


async def test_input_that_nobody_reads_does_not_hold_it_up(
    kept: Confinement, bare_view: View
) -> None:
    command = shell("exec 0<&-; echo out", stdin="x" * 1_000_000)
    ending, lines = await run_confined(kept, bare_view, command, QUICK)
    assert [line.text for line in lines] == ["out"]
    assert ending.exit_code == 0


async def test_a_cancelled_task_takes_everything_along(kept: Confinement, bare_view: View) -> None:
    script = LOCKED + "(setsid sleep 600 &); echo ready; sleep 600"
    with anyio.CancelScope() as scope:
        async with start_confined(kept, bare_view, shell(script), QUICK) as process:
            async for _ in process:
                scope.cancel()
    assert scope.cancelled_caught
    assert nobody_holds(bare_view.tree / "lock")


async def test_cancelling_at_any_moment_of_the_start_leaves_nothing(
    kept: Confinement, bare_view: View
) -> None:
    tag = str(bare_view.tree)
    script = LOCKED + "(env -i setsid sleep 600 &); sleep 600"
    caught = 0
    for moment in range(12):
        with anyio.move_on_after(moment * 0.004) as scope:
            await run_confined(kept, bare_view, shell(script, tag=tag), QUICK)
        caught += scope.cancelled_caught
        assert marked(tag) == []
        assert nobody_holds(bare_view.tree / "lock")
    assert caught == 12


async def test_an_error_in_the_block_comes_out_as_it_is(kept: Confinement, bare_view: View) -> None:
    script = LOCKED + "(setsid sleep 600 &); echo ready; sleep 600"

    async def fail_in_the_block() -> None:
        async with start_confined(kept, bare_view, shell(script), QUICK) as process:
            async for _ in process:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_in_the_block()
    assert nobody_holds(bare_view.tree / "lock")


async def test_stopping_twice_and_after_the_end_is_fine(kept: Confinement, bare_view: View) -> None:
    async with start_confined(kept, bare_view, shell("exit 4"), QUICK) as process:
        await process.wait()
        assert await process.stop() == 0
        assert await process.stop() == 0
        assert await process.wait() == Ending(Cause.EXITED, 4, survivors=0)


async def test_a_program_that_does_not_exist_is_named(kept: Confinement, bare_view: View) -> None:
    ending, lines = await run_confined(kept, bare_view, Command(("no-such-program",)), QUICK)
    assert ending.exit_code != 0
    assert "no-such-program" in lines[0].text


async def test_several_processes_of_one_sandbox_do_not_end_each_other(
    kept: Confinement, bare_view: View
) -> None:
    tag = str(bare_view.tree)
    async with start_confined(kept, bare_view, shell("cat; sleep 600", tag=tag), QUICK) as one:
        ending, _ = await run_confined(kept, bare_view, shell("exit 0", tag=tag), QUICK)
        assert ending == Ending(Cause.EXITED, 0, survivors=0)
        assert marked(tag) != []
        assert await one.stop() == 0
    assert marked(tag) == []


async def test_a_confinement_that_cannot_start_is_an_error(bare_view: View) -> None:
    with pytest.raises(SandboxError, match="could not be started"):
        await run_confined(Bubblewrap("/no/such/bwrap"), bare_view, shell("true"))


HOST = """
import sys, anyio
from functools import partial
from pathlib import Path
from agentcanvas.sandbox.confine import Command, View
from agentcanvas.sandbox.pick import pick
from agentcanvas.sandbox.process import start_confined

async def main(name, root, script):
    root = Path(root)
    picked = await (pick(unsafe=True) if name == "unconfined" else pick(only=name))
    view = View(root / "workspace", root / "tree", root / "home", root / "tmp")
    command = Command(("/bin/sh", "-c", script), tag=str(root))
    async with start_confined(picked.confinement, view, command) as process:
        async for line in process:
            print(line.text, flush=True)

anyio.run(main, *sys.argv[1:])
"""


async def test_nothing_outlives_a_host_that_is_killed(
    kept: Confinement, bare_view: View, tmp_path: Path
) -> None:
    script = LOCKED + "(setsid sleep 600 &); (env -i setsid sleep 600 &); echo ready; sleep 600"
    arguments = [sys.executable, "-c", HOST, kept.name, str(tmp_path), script]
    async with await anyio.open_process(arguments, stderr=subprocess.DEVNULL) as host:
        assert host.stdout
        assert (await host.stdout.receive()).startswith(b"ready")
        assert not nobody_holds(bare_view.tree / "lock")
        os.kill(host.pid, signal.SIGKILL)
    await anyio.run_process(["flock", "--timeout", "30", str(bare_view.tree / "lock"), "true"])
    # The lock is free as soon as its holders begin to die, so some may be on their way out still.
    tag = str(tmp_path)
    await end_leftovers(tag)
    assert marked(tag) == []


async def test_leftovers_are_found_by_their_tag_and_ended(tmp_path: Path) -> None:
    tag = f"left-{tmp_path.name}"
    environment = {**os.environ, "AGENTCANVAS_SANDBOX": f"{tag}/1234"}
    other = {**os.environ, "AGENTCANVAS_SANDBOX": f"{tag}-other/1234"}
    async with (
        await anyio.open_process(["sleep", "600"], env=environment) as mine,
        await anyio.open_process(["sleep", "600"], env=other) as theirs,
    ):
        assert await end_leftovers(tag) == 1
        assert await mine.wait() == -signal.SIGKILL
        assert theirs.returncode is None
        assert await end_leftovers(f"{tag}-other") == 1


async def test_leftovers_that_dropped_the_tag_are_found_through_their_parents(
    tmp_path: Path,
) -> None:
    tag, lock = str(tmp_path), tmp_path / "lock"
    script = f"exec 9> {lock}; flock -s 9; env -i sh -c 'sleep 600 & sleep 600' & echo ready; wait"
    environment = {**os.environ, "AGENTCANVAS_SANDBOX": f"{tag}/1234"}
    async with await anyio.open_process(["/bin/sh", "-c", script], env=environment) as process:
        assert process.stdout
        await process.stdout.receive()
        assert await end_leftovers(tag) >= 2
        assert nobody_holds(lock)
