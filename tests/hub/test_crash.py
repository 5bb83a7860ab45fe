"""kill -9 in the middle of traffic: what was acknowledged is there, and a repeat is flagged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.clock import SystemClock
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.store import Store
from tests.hub.helpers import take_all, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.req("H2", "D28")]

ROOT = Path(__file__).parents[2]


def run_and_kill(path: Path, *, start: int, after_lines: int) -> list[list[str]]:
    """Let a hub work until it has said so much, then kill it; return what it said."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.hub.crash_child", str(path), str(start)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )
    assert child.stdout is not None
    with child.stdout:
        lines = [child.stdout.readline() for _ in range(after_lines)]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    child.wait()
    return [line.split() for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("after_lines", [40, 333, 1500])
async def test_every_acknowledged_message_is_delivered_and_seen_once_unless_flagged(
    tmp_path: Path, after_lines: int
) -> None:
    path = tmp_path / "agentcanvas.db"
    sent: list[str] = []
    seen: dict[str, int] = {}
    taken: set[str] = set()
    for life in range(2):
        for word, text, *flag in run_and_kill(path, start=life * 100_000, after_lines=after_lines):
            if word == "sent":
                sent.append(text)
            elif word == "taken":
                taken.add(text)
            else:
                assert text not in seen or flag == ["1"], f"{text} came again without a warning"
                assert text not in taken, f"{text} came again though it was taken over"
                seen[text] = seen.get(text, 0) + 1
    async with (
        await Store.open(path) as store,
        EmbeddedBroker.open(store, clock=SystemClock()) as broker,
    ):
        row = await store.read(
            lambda look: look.one("SELECT waiting FROM hub_inboxes WHERE agent = 'b'")
        )
        counted = await store.read(
            lambda look: look.one("SELECT count(*) FROM hub_letters WHERE state = 0")
        )
        assert row == counted
        assert row is not None
        rest = await take_all(await broker.connect("b"), row[0])
    for parcel in rest:
        text = text_of(parcel.envelope)
        assert parcel.redelivered or text not in seen
        assert text not in taken
        seen[text] = seen.get(text, 0) + 1
    lost = set(sent) - set(seen)
    assert lost == set()
    assert len(sent) > 10


async def test_order_within_a_lane_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "agentcanvas.db"
    run_and_kill(path, start=0, after_lines=400)
    async with (
        await Store.open(path) as store,
        EmbeddedBroker.open(store, clock=SystemClock()) as broker,
    ):
        (waiting,) = await store.read(
            lambda look: look.one("SELECT waiting FROM hub_inboxes WHERE agent = 'b'") or (0,)
        )
        lanes: dict[str, list[int]] = {}
        for parcel in await take_all(await broker.connect("b"), waiting):
            sender, number = text_of(parcel.envelope).split("/")
            lanes.setdefault(sender, []).append(int(number))
    assert lanes
    assert all(numbers == sorted(numbers) for numbers in lanes.values())
