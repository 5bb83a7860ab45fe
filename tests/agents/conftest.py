"""Turns to run, places to run them in, and a record of what happened."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.agents.runtime import Emit, Turn, TurnResult, answered
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import NoConfinement
from agentcanvas.protocol.records import TranscriptEvent
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.pick import pick

RUN = "run_20260219_100000"


def turn(**more: Any) -> Turn:
    """Make a turn; what a test does not name is of no matter to it."""
    plain = {"turn_id": "i1/ask:1", "run_id": RUN, "agent_id": "coder-1", "prompt": "Do it."}
    return Turn(**(plain | more))


class Events(list[TranscriptEvent]):
    """A transcript under way; call it to add to it."""

    def __call__(self, event: TranscriptEvent) -> None:
        self.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one type."""
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def system_clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def place(tmp_path: Path) -> View:
    """Give a place with an empty tree."""
    for name in ("workspace", "tree", "home", "tmp"):
        (tmp_path / name).mkdir()
    return View(tmp_path / "workspace", tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")


@cache
def picked(name: str | None) -> Confinement | str:
    """Find a confinement by name, or the strongest; else why there is none."""
    try:
        return anyio.run(partial(pick, only=name)).confinement
    except NoConfinement as refusal:
        return "; ".join(refusal.reasons)


def _or_skip(name: str | None) -> Confinement:
    found = picked(name)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(params=["bubblewrap", "landlock"])
def confinement(request: pytest.FixtureRequest) -> Confinement:
    """Give each confinement that works on this machine; the others are skipped with the reason."""
    return _or_skip(request.param)


@pytest.fixture
def strongest() -> Confinement:
    """Give the strongest confinement of this machine."""
    return _or_skip(None)


def nobody_holds(lock: Path) -> bool:
    """Whether the last process that held the lock is gone; the kernel knows."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Acting:
    """A runtime that does what a test tells it to."""

    def __init__(self, act: Callable[[Turn, Emit], Any]) -> None:
        self._act = act

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        given = await self._act(turn, emit)
        return given if isinstance(given, TurnResult) else answered(turn, given)
