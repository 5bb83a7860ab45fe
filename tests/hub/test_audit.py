"""The audit trail: what it holds, what it leaves out, and that no change goes unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.hub.audit import AuditEntry, Trail, verify_lines
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.guard import Principal
from agentcanvas.protocol.kinds import Broadcast, Kind, TaskAssign
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, assign, complete, heartbeat, message, of_kind, post

pytestmark = [pytest.mark.anyio, pytest.mark.req("H6", "D37")]

A, B = Principal("a"), Principal("b")


async def test_every_message_has_an_entry_in_the_words_of_the_document(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        asked = of_kind(
            Kind.TASK_ASSIGN,
            "a",
            "b",
            TaskAssign(task_id="t1", task_type="code_review", input=freeze("a long secret text")),
        )
        await hub.send(A, asked)
        done = complete("b", "a", "t1")
        await hub.send(B, done)
        await hub.send(A, of_kind(Kind.BROADCAST, "a", "broadcast", Broadcast(event="NEWS")))
        await hub.send(A, heartbeat("a"))
        lines = [msgspec.json.decode(line) for line in await Trail(store).export()]
        first, second, *news = [line["entry"] for line in lines]
        assert first == {
            "timestamp": clock.now(),
            "messageId": asked.id,
            "type": "command",
            "from": "a",
            "to": "b",
            "session": "default",
            "action": "code_review",
        }
        assert (second["type"], second["status"], second["from"]) == ("response", "complete", "b")
        assert [each["to"] for each in news] == ["broadcast", "b", "c"]
        assert not any(b"a long secret text" in line for line in await Trail(store).export())


async def test_a_repeat_and_a_refusal_leave_no_entry(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        sent = message("a", "b")
        await hub.send(A, sent)
        await hub.send(A, sent)
        assert len(await Trail(store).entries()) == 1


async def test_the_trail_is_in_the_transaction_of_the_message(
    store: Store, clock: VirtualClock
) -> None:
    async with EmbeddedBroker.open(store, clock=clock) as broker:

        def fail(unit: Any) -> None:
            unit.put(post("a", "b"))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await broker.transact(fail)
        await broker.post([post("a", "b")])
        assert len(await Trail(store).entries()) == 1
        assert await Trail(store).verify() is None


@pytest.mark.parametrize(
    ("sql", "number", "reason"),
    [
        (
            "UPDATE hub_audit SET entry = replace(entry, '\"a\"', '\"z\"') WHERE number = 7",
            7,
            "changed",
        ),
        ("UPDATE hub_audit SET hash = zeroblob(32) WHERE number = 7", 7, "changed"),
        ("UPDATE hub_audit SET prev = zeroblob(32) WHERE number = 7", 7, "changed"),
        ("DELETE FROM hub_audit WHERE number = 7", 7, "missing"),
        ("DELETE FROM hub_audit WHERE number = 1", 1, "missing"),
        ("DELETE FROM hub_audit WHERE number > 7", 8, "all that followed"),
        ("DELETE FROM hub_audit", 1, "all that followed"),
        ("UPDATE hub_audit SET number = number + 100 WHERE number > 7", 8, "missing"),
    ],
)
async def test_the_first_broken_entry_is_found(
    store: Store, clock: VirtualClock, sql: str, number: int, reason: str
) -> None:
    async with EmbeddedBroker.open(store, clock=clock) as broker:
        await broker.post([post("a", "b", str(each)) for each in range(12)])
        assert await Trail(store).verify() is None
        await store.transact(lambda transaction: transaction.execute(sql))
        found = await Trail(store).verify()
        assert found is not None
        assert found.number == number
        assert reason in found.reason


async def test_two_entries_that_change_places_are_found(store: Store, clock: VirtualClock) -> None:
    def swap(transaction: Any) -> None:
        for old, new in ((3, 99), (4, 3), (99, 4)):
            transaction.execute("UPDATE hub_audit SET number = ? WHERE number = ?", (new, old))

    async with EmbeddedBroker.open(store, clock=clock) as broker:
        await broker.post([post("a", "b", str(each)) for each in range(6)])
        await store.transact(swap)
        found = await Trail(store).verify()
        assert found is not None
        assert found.number == 3


@pytest.mark.parametrize(
    ("spoil", "number"),
    [
        (lambda lines: lines[:2] + lines[3:], 3),
        (lambda lines: [lines[1], lines[0], *lines[2:]], 1),
        (lambda lines: [*lines[:4], lines[4].replace(b'"from":"a"', b'"from":"z"')], 5),
        (lambda lines: [*lines[:4], lines[4][:-10]], 5),
        (lambda lines: [b"\xff", *lines], 1),
        (lambda lines: [lines[0].replace(b'"prev":"00', b'"prev":"')], 1),
    ],
)
async def test_an_export_can_be_verified_without_the_store(
    store: Store,
    clock: VirtualClock,
    spoil: Callable[[list[bytes]], list[bytes]],
    number: int,
) -> None:
    async with EmbeddedBroker.open(store, clock=clock) as broker:
        await broker.post([post("a", "b", str(each)) for each in range(6)])
        lines = list(await Trail(store).export())
        assert verify_lines(lines) is None
        assert all(b"\n" not in line for line in lines)
        found = verify_lines(spoil(lines))
        assert found is not None
        assert found.number == number


async def test_a_long_trail_goes_on_over_restarts_and_pages(tmp_path: Path) -> None:
    clock = SystemClock()
    for life in range(3):
        async with (
            await Store.open(tmp_path / "x.db") as store,
            EmbeddedBroker.open(store, clock=clock) as broker,
        ):
            await broker.post([post("a", f"b{n % 7}", f"{life}/{n}") for n in range(700)])
            assert await Trail(store).verify() is None
            entries = await Trail(store).entries(after=life * 700, limit=1000)
            assert len(entries) == 700
            assert isinstance(entries[0][1], AuditEntry)
            assert len(await Trail(store).export()) == (life + 1) * 700


async def test_a_long_word_is_cut(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        body = TaskAssign(task_id="t1", task_type="x" * 5000)
        await hub.send(A, of_kind(Kind.TASK_ASSIGN, "a", "b", body))
        await hub.send(A, assign("a", "b", "t2"))
        (_, first), (_, second) = await Trail(store).entries()
        assert first.action == "x" * 100
        assert second.action == "task.assign"
