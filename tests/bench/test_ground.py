"""A benchmark of the disk stands on fresh disks where it may, on folders elsewhere, and says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import ground as grounds
from bench.ground import CHOSEN, Ground, folders_in, ground_in, sharing_grounds
from bench.harness import Contest, Effort, run
from bench.sandbox import fill, preparing, together, weighing
from tools.loop_disks import NoDisk, why_no_disk

ONCE = Effort(rounds=1, sample_ns=1, warm_up_ns=1)
FILES = 40


@pytest.fixture
def nowhere_to_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: str, megabytes: int) -> Path:
        raise NoDisk(f"no {kind} of {megabytes} MB today")

    monkeypatch.setattr(grounds, "fresh_disk", refused)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    fill(tmp_path / "model", FILES, 3)
    return tmp_path / "model"


def figures_of(contest: Contest) -> list[float]:
    return [standing.figure.median for standing in run(contest, ONCE).standings]


def test_without_a_fresh_disk_each_case_has_a_folder_and_the_reason_is_printed(
    tmp_path: Path, nowhere_to_mount: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with ground_in(tmp_path) as ground, ground.fresh() as one, ground.fresh() as other:
        assert one != other
        assert one.parent == other.parent == tmp_path
    assert list(sharing_grounds()) == []
    printed = capsys.readouterr().out
    assert "no fresh disks, because no ext4" in printed
    for kind in ("xfs", "btrfs"):
        assert f"skipped: disk use on {kind}, because no {kind} of" in printed


def test_a_chosen_folder_is_measured_in_and_nothing_is_left_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHOSEN, str(tmp_path))
    with ground_in(Path("/nowhere")) as ground, ground.fresh() as place:
        assert ground.name == str(tmp_path)
        assert place.is_relative_to(tmp_path)
    sharing = list(sharing_grounds())
    assert sharing or "has none" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contest", [preparing, together])
def test_the_contests_of_making_sandboxes_give_figures_on_folders(
    tmp_path: Path, model: Path, contest: object
) -> None:
    ground = folders_in(tmp_path, "a folder")
    assert callable(contest)
    assert all(figure > 0 for figure in figures_of(contest(ground, model, FILES)))


@pytest.mark.skipif(sys.platform != "linux", reason="disks in memory are Linux's")
def test_disk_use_is_weighed_on_each_disk_that_shares_blocks(model: Path) -> None:
    found: list[Ground] = list(sharing_grounds())
    if not found:
        pytest.skip(f"none here: {why_no_disk('xfs')}; {why_no_disk('btrfs')}")
    for ground in found:
        (figure,) = figures_of(weighing(ground, model, FILES))
        assert figure >= 0
