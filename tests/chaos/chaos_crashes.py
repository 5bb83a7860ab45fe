"""Every moment at which the team's run can be cut off, and fifteen that nobody chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.crashing import cut_off_around_commits, killed_and_resumed

pytestmark = pytest.mark.anyio


async def test_a_run_goes_on_from_both_sides_of_every_commit(tmp_path: Path) -> None:
    assert await cut_off_around_commits(tmp_path) > 80


@pytest.mark.parametrize("seed", range(15))
def test_a_run_whose_process_is_killed_goes_on_in_another(tmp_path: Path, seed: int) -> None:
    killed_and_resumed(tmp_path, seed)
