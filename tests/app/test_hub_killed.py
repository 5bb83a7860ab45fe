"""kill -9 of the hub under load: nothing that was acknowledged is lost, nothing is seen twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.killing import SENDERS, Account, talk_while_it_dies

pytestmark = [pytest.mark.anyio, pytest.mark.req("H2", "D28", "M5", "H1")]


def check(account: Account) -> None:
    """Hold what was sent against what was delivered, repeated and lost."""
    assert account.lost == set()
    assert account.repeated == 0
    assert set(account.delivered) >= set(account.sent)
    lanes = account.lanes()
    assert len(lanes) == SENDERS
    assert all(numbers == sorted(numbers) for numbers in lanes.values())
    assert all(numbers == list(range(len(numbers))) for numbers in lanes.values())


# Each seed kills at five moments of its own: twenty in all.
@pytest.mark.parametrize("seed", range(4))
async def test_what_was_acknowledged_arrives_once_and_in_order(tmp_path: Path, seed: int) -> None:
    over = "http" if seed == 3 else "websocket"
    check(await talk_while_it_dies(tmp_path, seed, kills=5, over=over))
