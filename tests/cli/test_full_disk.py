"""Commands on a full disk: each says what is wrong and the next step, and loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.full_disks import fill, free_bytes, make_room, small_disk

pytestmark = pytest.mark.req("D2", "D15")

AGENT = "sed -i 's/old/new/' greeting.txt && head -c 300000 /dev/urandom > made.bin"
FULL = "cannot be opened; nothing is lost or damaged. Make room, for example: agentcanvas sandbox"


def give(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from agentcanvas.cli import main; main()", *words],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    with small_disk(getattr(request, "param", 4096)) as top:
        yield top


@pytest.fixture
def repository(disk: Path) -> Path:
    root = disk / "repo"
    root.mkdir()
    (root / "greeting.txt").write_text("an old greeting\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def ran(root: Path) -> None:
    done = give(root, "run", "renew it", "--command", AGENT, "--unsafe", "--no-input")
    assert done.returncode == 3, done


COMMANDS = (
    ["runs"],
    ["review", "--apply"],
    ["run", "x", "--command", "true", "--unsafe", "--no-input"],
    ["serve", "--no-browser"],
    ["hub", "--data", ".agentcanvas"],
    ["token", "new", "x", "--data", ".agentcanvas"],
    ["store", "check"],
    ["doctor"],
)


def on_disk(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".agentcanvas/sandboxes").iterdir())


@pytest.mark.parametrize("disk", [4096, 1024], indirect=True)
def test_a_command_says_that_the_disk_is_full_and_not_that_anything_is_damaged(
    repository: Path, disk: Path
) -> None:
    ran(repository)
    fill(disk)
    for words in COMMANDS:
        done = give(repository, *words)
        said = done.stdout + done.stderr
        assert done.returncode == 1, done
        assert FULL in said, done
        assert "is damaged" not in said
        assert "Traceback" not in said
    make_room(disk)
    assert give(repository, "store", "check").returncode == 0
    assert give(repository, "review", "--apply").returncode == 0
    assert (repository / "greeting.txt").read_text() == "an new greeting\n"


STARTS = (
    ["run", "x", "--command", "true", "--unsafe", "--no-input"],
    ["serve", "--no-browser"],
    ["hub", "--data", "../hub", "--port", "0"],
    ["token", "new", "x", "--data", "../hub"],
)


@pytest.mark.parametrize("left", [0, 12, 40])
def test_what_could_not_be_started_on_a_full_disk_starts_when_there_is_room(
    repository: Path, disk: Path, left: int
) -> None:
    fill(disk, but=left * 1024)
    for looking in ("runs", "review"):
        assert give(repository, looking).returncode == 0
    for words in STARTS:
        done = give(repository, *words)
        said = done.stdout + done.stderr
        assert done.returncode == 1, done
        assert "Traceback" not in said
        assert "damaged" not in said.replace("nothing is lost or damaged", "")
        assert "make room" in said.lower() or "There is no hub in" in said, done
    make_room(disk)
    ran(repository)
    assert give(repository, "review", "--apply").returncode == 0
    assert (repository / "greeting.txt").read_text() == "an new greeting\n"
    assert give(repository, "token", "new", "x", "--data", ".agentcanvas").returncode == 0
    with subprocess.Popen(
        [sys.executable, "-c", "from agentcanvas.cli import main; main()", *STARTS[2]],
        cwd=repository,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as hub:
        assert hub.stdout is not None
        assert "AgentCanvas hub is at" in hub.stdout.readline()
        hub.send_signal(signal.SIGTERM)
        assert hub.wait(30) == 0


@pytest.mark.req("H10", "D25")
def test_a_run_that_fills_the_disk_says_so_ends_with_one_ctrl_c_and_can_be_resumed(
    repository: Path, disk: Path
) -> None:
    worker = "head -c 30000000 /dev/zero > big.bin"
    words = ("run", "big", "--command", worker, "--unsafe", "--no-input")
    with subprocess.Popen(
        [sys.executable, "-c", "from agentcanvas.cli import main; main()", *words],
        cwd=repository,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        told = next(line for line in child.stderr if "cannot be recorded" in line)
        child.send_signal(signal.SIGINT)
        child.stderr.read()
        assert child.wait(30) == 130
    assert "The disk is full" in told
    sandboxes = repository / ".agentcanvas" / "sandboxes"
    (sandboxes / on_disk(repository)[0] / "coder" / "work" / "big.bin").unlink()
    assert "interrupted" in give(repository, "runs").stdout
    assert give(repository, "store", "check").returncode == 0


@pytest.mark.req("S1")
def test_sandbox_clean_makes_room_on_a_full_disk_and_what_is_not_settled_stays(
    repository: Path, disk: Path
) -> None:
    ran(repository)
    (waits,) = on_disk(repository)
    ran(repository)
    (other,) = (run for run in on_disk(repository) if run != waits)
    rejected = give(repository, "review", other, "--reject", "no")  # its trees go to the pool
    assert rejected.returncode == 4, rejected
    fill(disk)
    assert give(repository, "sandbox", "list").returncode == 0
    shown = give(repository, "sandbox", "clean", "--dry-run")
    assert shown.returncode == 0, shown
    assert "The disk is full" in shown.stdout
    assert free_bytes(disk) == 0
    done = give(repository, "sandbox", "clean")
    assert done.returncode == 0, done
    assert f"stays  {waits}" in done.stdout
    assert "not settled yet" in done.stdout
    assert "goes   the pool of trees for new sandboxes" in done.stdout
    assert free_bytes(disk) > 300_000
    assert not (repository / ".agentcanvas/trash").exists()
    make_room(disk)
    applied = give(repository, "review", waits, "--apply")
    assert applied.returncode == 0, applied
    assert (repository / "greeting.txt").read_text() == "an new greeting\n"


@pytest.mark.req("S1")
def test_sandbox_clean_frees_settled_runs_on_a_full_disk(repository: Path, disk: Path) -> None:
    ran(repository)
    assert give(repository, "review", "--apply").returncode == 0
    fill(disk)
    done = give(repository, "sandbox", "clean", "--all")
    assert done.returncode == 0, done
    assert "goes   run_" in done.stdout
    assert not (repository / ".agentcanvas/trash").exists()
    assert free_bytes(disk) > 20_000
    assert give(repository, "undo", "--yes").returncode == 0
    assert (repository / "greeting.txt").read_text() == "an old greeting\n"


@pytest.mark.req("S1")
def test_sandbox_clean_keeps_every_run_where_a_full_disk_hides_which_are_settled(
    repository: Path, disk: Path
) -> None:
    ran(repository)
    assert give(repository, "review", "--apply").returncode == 0
    fill(disk)
    store = repository / ".agentcanvas/agentcanvas.db"
    whole = store.read_bytes()
    store.write_bytes(b"no database".ljust(len(whole)))
    done = give(repository, "sandbox", "clean", "--all")
    store.write_bytes(whole)
    assert done.returncode == 0, done
    assert "Every run stays" in done.stdout
    assert "goes   run_" not in done.stdout
