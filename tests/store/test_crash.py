"""A process killed at any moment loses nothing that was acknowledged (D2, D3)."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.store import Store
from tests.store.helpers import PerStream, expected_files, files_in

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2", "D3")]

ROOT = Path(__file__).parents[2]
CHILD = [sys.executable, "-m", "tests.store.crash_child"]


def acknowledged_before_death(path: Path, chance: random.Random) -> dict[int, str]:
    """Start the child, kill it after some acknowledgements, and return all that it printed."""
    writers, events_a_record = chance.choice([1, 3, 20]), chance.choice([1, 50, 4096])
    lines = chance.randint(1, 400)
    command = [*CHILD, str(path), str(writers), str(events_a_record)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout
        told = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        told += child.stdout.read().splitlines(keepends=True)
    whole = [line.decode().split() for line in told if line.endswith(b"\n")]
    return {int(seq): body for seq, body in whole}


@pytest.mark.parametrize("seed", range(6))
async def test_every_acknowledged_event_is_there_after_a_kill(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: dict[int, str] = {}
    for _ in range(3):  # the crashed store of one life is the beginning of the next
        acknowledged |= acknowledged_before_death(path, chance)
    async with await Store.open(path, projections=[PerStream()]) as store:
        events = await store.events(limit=1_000_000)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        found = {event.seq: event.body.decode() for event in events}
        assert acknowledged.items() <= found.items()
        pairs = await store.read(
            lambda look: look.query("SELECT key, value FROM meta WHERE key LIKE 'pair %'")
        )
        assert {int(key.split()[1]): body for key, body in pairs} == {
            event.seq: event.body.decode() for event in events if event.kind == "pair"
        }
        await store.flush_projections()
        assert files_in(path.parent) == expected_files(events)
        assert await store.check() == []


def test_an_event_is_acknowledged_only_after_its_fsync(path: Path, tmp_path: Path) -> None:
    strace = shutil.which("strace") or "strace"
    log = tmp_path / "calls"
    trace = [
        strace,
        "-f",
        "-qq",
        "-e",
        "trace=write,pwrite64,fdatasync,fsync",
        "-y",
        "-o",
        str(log),
    ]
    try:
        subprocess.run([*trace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs strace, and the right to use it")
    script = (
        "import sys, os, anyio\n"
        "from pathlib import Path\n"
        "from agentcanvas.store import Store\n"
        "async def main():\n"
        "    async with await Store.open(Path(sys.argv[1])) as store:\n"
        "        for number in range(10):\n"
        "            os.write(1, b'asked\\n')\n"
        "            await store.append('s', 'k', b'{}')\n"
        "            os.write(1, b'told\\n')\n"
        "anyio.run(main)\n"
    )
    subprocess.run(
        [*trace, sys.executable, "-c", script, str(path)],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    calls = log.read_text()
    asked = calls.split('"asked\\n"')[1:]
    assert len(asked) == 10
    for after_asking in asked:
        until_told = after_asking.partition('"told\\n"')[0]
        on_the_log = re.findall(r"(pwrite64|fdatasync|fsync)\(\d+<[^>]*-wal>", until_told)
        assert on_the_log.count("pwrite64") > 0
        assert on_the_log[-1] in ("fdatasync", "fsync")
