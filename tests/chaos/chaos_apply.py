"""Applies and undos killed at some hundred lines that nobody chose, each from its own seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proposals.test_crash import Bench, Child, kill_at_random


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    process = Child()
    yield process
    process.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("call", ["apply", "undo"])
def test_killed_at_any_line_it_is_old_or_new_after_the_recovery(
    tmp_path: Path, child: Child, call: str, seed: int
) -> None:
    kill_at_random(Bench(tmp_path), child, call, random.Random(seed), times=50)
