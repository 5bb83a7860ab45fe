"""Any sequence of operations leaves the store as a plain list would be (D2)."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agentcanvas.clock import VirtualClock
from agentcanvas.store import Retention, Store, Transaction, restore
from tests.store.helpers import PerStream, files_in

T = TypeVar("T")
STREAMS = st.sampled_from(["a", "b", "c/d"])
BODIES = st.binary(max_size=20).map(lambda raw: b'"%s"' % raw.hex().encode())
EVENTS = st.tuples(STREAMS, st.sampled_from(["k", "private"]), BODIES)


class Refused(Exception):
    pass


class StoreAgainstAList(RuleBasedStateMachine):
    """Keeps every event ever written, and what should be left of them."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="agentcanvas-model-"))
        self.clock = VirtualClock()
        self.kept: dict[int, tuple[str, str, bytes]] = {}
        self.lines: dict[str, bytes] = {}
        self.head = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        self.store = self.run(
            Store.open(self.folder / "agentcanvas.db", clock=self.clock, projections=[PerStream()])
        )

    def note(self, event: tuple[str, str, bytes]) -> int:
        self.head += 1
        self.kept[self.head] = event
        stream, kind, body = event
        if kind != "private":
            path = f"logs/{stream}.jsonl"
            line = b'{"seq":%d,"body":%s}\n' % (self.head, body)
            self.lines[path] = self.lines.get(path, b"") + line
        return self.head

    @rule(event=EVENTS)
    def append(self, event: tuple[str, str, bytes]) -> None:
        assert self.run(self.store.append(*event)) == self.note(event)

    @rule(events=st.lists(EVENTS, max_size=20))
    def append_together(self, events: list[tuple[str, str, bytes]]) -> None:
        numbers = self.run(self.store.append_many(events))
        assert list(numbers) == [self.note(event) for event in events]

    @rule(events=st.lists(EVENTS, max_size=5))
    def append_at_once(self, events: list[tuple[str, str, bytes]]) -> None:
        async def all_at_once() -> list[int]:
            return await asyncio.gather(*(self.store.append(*event) for event in events))

        assert self.run(all_at_once()) == [self.note(event) for event in events]

    @rule(events=st.lists(EVENTS, max_size=5))
    def fail(self, events: list[tuple[str, str, bytes]]) -> None:
        def refuse(transaction: Transaction) -> None:
            transaction.append_many(events)
            raise Refused

        with pytest.raises(Refused):
            self.run(self.store.transact(refuse))

    @rule(stream=STREAMS, keep=st.integers(0, 4))
    def forget(self, stream: str, keep: int) -> None:
        own = [seq for seq, event in self.kept.items() if event[0] == stream]
        doomed = own[: len(own) - keep] if len(own) > keep else []
        forgotten = self.run(self.store.retain(Retention(streams=stream, keep_last=keep)))
        assert forgotten == len(doomed)
        for seq in doomed:
            del self.kept[seq]

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.open()

    @rule()
    def back_up_and_restore(self) -> None:
        copy = self.folder / "copy.db"
        self.run(self.store.flush_projections())
        self.run(self.store.backup(copy))
        self.run(self.store.close())
        restore(copy, self.folder / "agentcanvas.db")
        self.open()

    @invariant()
    def what_is_left_is_read_back(self) -> None:
        found = self.run(self.store.events(limit=100_000))
        assert self.store.head == self.head
        assert {event.seq: (event.stream, event.kind, event.body) for event in found} == self.kept

    def teardown(self) -> None:
        self.run(self.store.close())
        assert files_in(self.folder) == self.lines
        self.runner.close()
        shutil.rmtree(self.folder)


# Each example is many stores and commits.
StoreAgainstAList.TestCase.settings = settings(
    max_examples=settings().max_examples // 10, stateful_step_count=20
)
TestStoreAgainstAList = pytest.mark.req("D2")(StoreAgainstAList.TestCase)
