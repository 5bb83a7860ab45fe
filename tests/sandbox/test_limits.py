"""Whoever takes too much is ended at once, and the ending names the limit.

All limits are lowered: nothing here needs the machine's real memory or disk.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.sandbox.confine import Bind, Command, Confinement, View
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.limits import Breach, Cause, Limits
from agentcanvas.sandbox.output import Line, Output, Source
from agentcanvas.sandbox.process import _written_to, run_confined
from agentcanvas.sandbox.process_tree import marked
from agentcanvas.sandbox.watch import Growth, Watch, usage_of
from tests.sandbox.conftest import confinement_or_skip
from tests.sandbox.ordinary_user import as_ordinary_user

pytestmark = pytest.mark.req("H10")

MIB = 1024 * 1024
WATCHFUL = Limits(deadline_s=60, grace_s=30, poll_s=0.02)


@pytest.fixture(params=["bubblewrap", "landlock", "unconfined"])
def kept(request: pytest.FixtureRequest) -> Confinement:
    """Give every way to run a process on this machine."""
    if request.param == "unconfined":
        return Unconfined()
    return confinement_or_skip(request.param)


def limited(**lower: float) -> Limits:
    return Limits(**{**{n: getattr(WATCHFUL, n) for n in WATCHFUL.__struct_fields__}, **lower})


def shell(script: str, tag: str = "") -> Command:
    return Command(("/bin/sh", "-c", script), tag=tag)


# Each ignores the polite signal: with 30 s of grace, a deadline would be the cause otherwise.
IGNORING = "trap '' TERM; "
HOG = IGNORING + "x=$(head -c 60000000 /dev/zero | tr '\\0' x); while :; do sleep 1; done"
MIB_BY_MIB = IGNORING + f"exec {sys.executable} -S -c '{{}}; import time; time.sleep(600)'"
# Memory that is nobody's own: what is shared counts as well, and a file in memory with no mapping.
SHARED = "import mmap; kept = mmap.mmap(-1, 60 << 20); kept.write(bytes(60 << 20))"
IN_A_FILE = 'import os; kept = os.memfd_create("x"); os.write(kept, bytes(60 << 20))'
CLOSED = IN_A_FILE + "; import ctypes; ctypes.CDLL(None).prctl(4, 0)"  # to whoever would look
GREEDY = {
    Cause.PROCESSES: (
        IGNORING + "for i in $(seq 30); do sleep 600 & done; wait",
        limited(processes=20),
        r"processes, and 20 are allowed",
    ),
    Cause.CPU: (
        IGNORING + "(while :; do :; done) & (while :; do :; done) & wait",
        limited(cpu_s=1.0),
        r"s of processor time, and 1 are allowed|used up its processor time",
    ),
    Cause.MEMORY: (HOG, limited(memory_bytes=40 * MIB), r"MiB of memory, and 40.0 MiB are allowed"),
    Cause.GROWTH: (
        IGNORING
        + "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > big$i; sync big$i; done",
        limited(growth_bytes=8 * MIB),
        r"it wrote .* to its folders, and 8.0 MiB are allowed",
    ),
}


@pytest.mark.parametrize("cause", GREEDY)
async def test_whoever_takes_too_much_is_ended_and_the_limit_named(
    kept: Confinement, bare_view: View, cause: Cause
) -> None:
    script, limits, sentence = GREEDY[cause]
    tag = str(bare_view.tree)
    with anyio.fail_after(50):
        ending, _ = await run_confined(kept, bare_view, shell(script, tag), limits)
    assert ending.cause is cause
    assert re.search(sentence, ending.reason), ending
    assert ending.survivors == 0
    assert marked(tag) == []


PREFIX = Path(sys.base_prefix)
SHARED_WAYS = {
    "mapped": "import mmap; kept = mmap.mmap(-1, 60 << 20); kept.write(bytes(60 << 20))",
    "in a file": "import os; kept = os.memfd_create('x'); os.write(kept, bytes(60 << 20))",
}


@pytest.mark.parametrize("way", SHARED_WAYS)
async def test_memory_that_could_be_shared_counts_too(
    kept: Confinement, bare_view: View, way: str
) -> None:
    view = replace(bare_view, read_only=(Bind(PREFIX, PREFIX),))
    program = f"{SHARED_WAYS[way]}; import time; time.sleep(600)"
    command = Command((f"{PREFIX}/bin/python3", "-S", "-c", program))
    limits = limited(memory_bytes=40 * MIB, deadline_s=20)
    ending, _ = await run_confined(kept, view, command, limits)
    assert ending.cause is Cause.MEMORY
    assert "40.0 MiB are allowed" in ending.reason


HIDING = """
import ctypes, os
ctypes.CDLL(None).prctl(4, 0)
kept = []
while input():
    kept.append(os.memfd_create("x"))
    for _ in range(30):
        os.write(kept[-1], bytes(1 << 20))
    print("done", flush=True)
"""
# Looked at several times, because others may give memory back at the same moment.
LOOKING = """
import subprocess, sys
from pathlib import Path
from agentcanvas.sandbox.limits import Limits
from agentcanvas.sandbox.watch import Watch

with subprocess.Popen(
    [sys.executable, "-S", "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
) as process:
    for _ in range(5):
        watch = Watch(process.pid, [Path.cwd()], Limits(memory_bytes=20 << 20))
        process.stdin.write(b"more" + bytes([10]))
        process.stdin.flush()
        process.stdout.readline()
        if breach := watch.look():
            print(breach.cause)
            break
    process.kill()
"""


def test_memory_is_not_hidden_by_whoever_closes_itself_against_looks() -> None:
    assert as_ordinary_user(LOOKING, HIDING).strip() == Cause.MEMORY


async def test_many_small_files_are_growth_too(kept: Confinement, bare_view: View) -> None:
    script = "mkdir d; cd d; i=0; while :; do i=$((i+1)); : > f$i; done"
    ending, _ = await run_confined(kept, bare_view, shell(script), limited(growth_files=300))
    assert ending.cause is Cause.GROWTH
    assert "300 are allowed" in ending.reason


@pytest.mark.parametrize("folder", ["$HOME", "$TMPDIR"])
async def test_home_and_tmp_count_as_well(kept: Confinement, bare_view: View, folder: str) -> None:
    script = f"cd {folder}; i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > b$i; done"
    ending, _ = await run_confined(kept, bare_view, shell(script), limited(growth_bytes=8 * MIB))
    assert ending.cause is Cause.GROWTH


async def test_a_file_that_is_too_large_ends_its_writer(kept: Confinement, bare_view: View) -> None:
    script = "exec head -c 3000000 /dev/zero > big"
    ending, _ = await run_confined(kept, bare_view, shell(script), limited(file_bytes=MIB))
    assert ending.cause is Cause.FILE_SIZE
    assert "larger than allowed" in ending.reason
    assert (bare_view.tree / "big").stat().st_size == MIB


async def test_one_process_that_spins_is_ended_by_the_kernel(
    kept: Confinement, bare_view: View
) -> None:
    never = limited(cpu_s=1, poll_s=600)
    ending, _ = await run_confined(kept, bare_view, shell("while :; do :; done"), never)
    # Reaching the soft and the hard limit at once, it may be told by either signal.
    assert ending.cause is Cause.CPU or ending.exit_code == 128 + signal.SIGKILL


async def test_the_kernels_limits_hold_from_the_first_moment(
    kept: Confinement, bare_view: View
) -> None:
    limits = limited(open_files=64, file_bytes=MIB, cpu_s=7)
    script = "ulimit -n; ulimit -Hn; ulimit -f; ulimit -t; ulimit -c"
    _, lines = await run_confined(kept, bare_view, shell(script), limits)
    assert [line.text for line in lines] == ["64", "64", "2048", "7", "0"]


async def test_without_limits_nothing_is_limited(kept: Confinement, bare_view: View) -> None:
    none = limited(
        processes=None,  # type: ignore[arg-type]  # as the fields allow
        cpu_s=None,  # type: ignore[arg-type]  # as above
        memory_bytes=None,  # type: ignore[arg-type]  # as above
        file_bytes=None,  # type: ignore[arg-type]  # as above
        open_files=None,  # type: ignore[arg-type]  # as above
        growth_bytes=None,  # type: ignore[arg-type]  # as above
        growth_files=None,  # type: ignore[arg-type]  # as above
    )
    ending, _ = await run_confined(kept, bare_view, shell("head -c 9000000 /dev/zero > big"), none)
    assert ending.cause is Cause.EXITED
    assert ending.exit_code == 0


def test_the_defaults_leave_room_for_a_coding_program() -> None:
    limits = Limits()
    assert limits.memory_bytes is not None
    assert limits.memory_bytes >= 4 * 1024 * MIB
    assert limits.processes is not None
    assert limits.processes >= 500
    assert limits.open_files is not None
    assert limits.open_files >= 4096


SHARES = """
import os, sys
kept = bytearray(os.urandom(1000) * 40_000)
for _ in range(4):
    if not os.fork():
        sys.stdin.read()
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


def test_memory_that_is_shared_counts_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SHARES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        rough = usage_of(process.pid).memory_bytes
        found = [
            Watch(process.pid, [tmp_path], Limits(memory_bytes=most * MIB)).look()
            for most in (120, 30)
        ]
        process.communicate()
    assert rough > 5 * 38 * MIB, "the quick sum alone would have ended it"
    assert found[0] is None
    assert found[1] is not None
    assert found[1].cause is Cause.MEMORY


def test_the_time_of_children_that_are_gone_counts() -> None:
    script = "dd if=/dev/zero of=/dev/null bs=1M count=9000 2>&1; echo; read x"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        while process.stdout.readline().strip():
            pass
        usage = usage_of(process.pid)
        process.communicate()
    assert usage.processes == 1
    assert usage.cpu_s > 0


def test_what_was_there_before_is_no_growth(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"x" * 4 * MIB)
    growth = Growth([tmp_path], Limits(growth_bytes=2 * MIB))
    growth._since = old.stat().st_ctime + 0.001
    growth._looks = -1  # the next look walks
    assert growth.look() is None
    while old.stat().st_ctime < growth._since:  # the clock of files moves in ticks
        old.chmod(0o600)
    os.utime(old, (1, 1))
    growth._looks = -1
    found = growth.look()
    assert isinstance(found, Breach), "a change of the file makes it count, whatever its times say"


def test_a_tree_that_is_read_only_is_not_walked(bare_view: View) -> None:
    assert bare_view.tree in _written_to(bare_view)
    assert bare_view.tree not in _written_to(replace(bare_view, writable=False))


# -- output

SPOKEN = st.lists(
    st.tuples(st.sampled_from(Source), st.binary(max_size=300) | st.just(b"x\n" * 50)), max_size=20
)


def heard(limit: int, spoken: list[tuple[Source, bytes]]) -> tuple[list[Line], Output]:
    output = Output(limit)
    lines = [line for source, data in spoken for line in output.feed(source, data)]
    lines += [line for source in Source for line in output.finish(source)]
    return lines + output.held_back(), output


@given(SPOKEN, st.integers(0, 2_000))
def test_output_never_passes_its_limit_and_no_byte_is_lost_uncounted(
    spoken: list[tuple[Source, bytes]], limit: int
) -> None:
    ascii_only = [(source, bytes(b & 0x7F for b in data)) for source, data in spoken]
    lines, output = heard(limit, ascii_only)
    kept = sum(len(line.text) + (not line.goes_on) for line in lines)
    ended = [b"".join(d for s, d in ascii_only if s is source) for source in Source]
    said = sum(len(data) + (not data.endswith(b"\n") and bool(data)) for data in ended)
    assert kept <= max(limit, 0)
    assert kept + output.dropped == said
    assert sum(line.left_out for line in lines) in {output.dropped, 0}


@given(SPOKEN)
def test_the_pieces_of_a_line_make_up_the_line(spoken: list[tuple[Source, bytes]]) -> None:
    lines, output = heard(10_000_000, spoken)
    assert output.dropped == 0
    for source in Source:
        said = b"".join(data for s, data in spoken if s is source)
        texts = "".join(
            line.text + ("" if line.goes_on else "\n") for line in lines if line.source is source
        )
        assert texts.removesuffix("\n") == said.decode("utf-8", "replace").removesuffix("\n")


@given(st.text(alphabet="aé€😀", min_size=50, max_size=400))
def test_a_long_line_is_never_cut_through_a_character(text: str) -> None:
    lines, _ = heard(4 * len(text.encode()), [(Source.STDOUT, text.encode())])
    assert "".join(line.text for line in lines) == text
    assert [line.goes_on for line in lines] == [True] * (len(lines) - 1) + [False]
