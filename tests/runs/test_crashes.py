"""Runs that are cut off anywhere end like those that are not: same tree, everything exactly once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.crashing import cut_off_after_commits, killed_and_resumed

pytestmark = [pytest.mark.anyio, pytest.mark.req("D3", "D4", "D18", "D19")]

COMMITS = range(1, 70)
"""The team's run takes a few more, depending on who shares one."""


async def test_a_run_goes_on_from_whatever_its_last_commit_was(tmp_path: Path) -> None:
    sample = random.Random(2).sample(COMMITS, 12)
    assert await cut_off_after_commits(tmp_path, only=sample) >= 10


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_whose_process_is_killed_goes_on_in_another(tmp_path: Path, seed: int) -> None:
    killed_and_resumed(tmp_path, seed)
