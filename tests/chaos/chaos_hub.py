"""The hub killed at two hundred moments that nobody chose, while agents talk through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.killing import talk_while_it_dies
from tests.app.test_hub_killed import check


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(100, 120))
async def test_what_was_acknowledged_arrives_once_and_in_order(tmp_path: Path, seed: int) -> None:
    over = "http" if seed % 5 == 4 else "websocket"
    check(await talk_while_it_dies(tmp_path, seed, kills=10, over=over))
