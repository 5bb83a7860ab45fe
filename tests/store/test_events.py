"""The table of events: numbering, reading back, and noticing damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StoreDamaged, ValidationError
from agentcanvas.store import Event, Snapshot, Store, Transaction, events
from agentcanvas.store.migrations import migrate

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]

TEXT = st.text(min_size=1, max_size=20)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        yield connection


async def test_numbers_are_consecutive_over_all_streams(store: Store) -> None:
    assert await store.append("a", "begun", b"{}") == 1
    assert await store.append("b", "begun", b"{}") == 2
    assert await store.append_many([("a", "x", b"1"), ("b", "y", b"2")]) == range(3, 5)
    assert await store.transact(lambda t: t.append("a", "ended", b"{}")) == 5
    assert [event.seq for event in await store.events()] == [1, 2, 3, 4, 5]


async def test_an_event_reads_back_as_it_was_written(store: Store, clock: VirtualClock) -> None:
    await clock.advance(1.5)
    await store.append("실행/1", "단계", '{"text": "é"}'.encode())
    assert await store.events() == [
        Event(1, "실행/1", "단계", clock.now_ms(), '{"text": "é"}'.encode())
    ]


async def test_events_are_read_by_stream_from_a_number_on_and_in_parts(store: Store) -> None:
    await store.append_many([(f"s{number % 3}", "k", b"%d" % number) for number in range(30)])
    assert [event.seq for event in await store.events(stream="s1")] == list(range(2, 31, 3))
    assert [event.seq for event in await store.events(stream="s1", after=5, limit=2)] == [8, 11]
    assert [event.seq for event in await store.events(after=27)] == [28, 29, 30]
    assert await store.events(stream="unknown") == []


async def test_a_read_can_be_bounded_in_bytes_and_still_moves_on(store: Store) -> None:
    await store.append_many([("s", "k", bytes(100))] * 5)

    def numbers(most_bytes: int) -> Callable[[Snapshot], list[int]]:
        return lambda look: [event.seq for event in look.events(most_bytes=most_bytes)]

    assert await store.read(numbers(250)) == [1, 2, 3]
    assert await store.read(numbers(1)) == [1]
    assert await store.read(numbers(10_000)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("number", [1, 2, 3, 255, 256, 257, 511, 1000])
async def test_any_number_of_events_goes_in_together(store: Store, number: int) -> None:
    new = [(f"s{index % 7}", "k", b"%d" % index) for index in range(number)]
    assert await store.append_many(new) == range(1, number + 1)
    read = await store.events(limit=2000)
    assert [(event.stream, event.kind, event.body) for event in read] == new


@pytest.mark.parametrize(
    ("stream", "kind", "body", "complaint"),
    [
        ("", "k", b"", "stream must be a non-empty text"),
        (7, "k", b"", "stream must be a non-empty text, not 7"),
        ("s", None, b"", "kind must be a non-empty text"),
        ("s\ud800", "k", b"", "stream .* is not valid Unicode"),
        ("s", "k", "{}", "body must be bytes, not str"),
        ("s", "k", bytes(2 * 1024 * 1024 + 1), "2097153 bytes, more than the 2097152 allowed"),
    ],
)
async def test_an_unfit_event_is_refused_at_the_door_and_harms_nobody(
    store: Store, stream: str, kind: str, body: bytes, complaint: str
) -> None:
    def append_two(transaction: Transaction) -> None:
        transaction.append("s", "fit", b"{}")
        transaction.append(stream, kind, body)

    with pytest.raises(ValidationError, match=complaint):
        await store.append(stream, kind, body)
    with pytest.raises(ValidationError, match=complaint):
        await store.append_many([("s", "fit", b"{}"), (stream, kind, body)])
    with pytest.raises(ValidationError, match=complaint):
        await store.transact(append_two)
    assert await store.append("s", "k", b"{}") == 1


@given(
    row=st.tuples(TEXT, TEXT, st.binary(max_size=200)),
    field=st.sampled_from(["stream", "kind", "at_ms", "body", "seq"]),
    data=st.data(),
)
def test_whatever_changes_in_a_row_is_noticed_and_the_row_named(
    connection: sqlite3.Connection,
    row: tuple[str, str, bytes],
    field: str,
    data: st.DataObject,
) -> None:
    values: dict[str, st.SearchStrategy[object]] = {
        "stream": TEXT,
        "kind": TEXT,
        "at_ms": st.integers(0, 2**60),
        "body": st.one_of(st.binary(max_size=200), TEXT),
        "seq": st.integers(8, 2**60),
    }
    connection.execute("DELETE FROM events")
    events.insert(connection, 7, 1000, [row])
    (intact,) = events.select(connection, where="x", after=0, stream=None, limit=9)
    changed = data.draw(values[field].filter(lambda new: new != getattr(intact, field)))
    connection.execute(f"UPDATE events SET {field} = ?", (changed,))
    seq = changed if field == "seq" else 7
    with pytest.raises(StoreDamaged, match=rf"row {seq} of the table events .* restore BACKUP"):
        events.select(connection, where="x", after=0, stream=None, limit=9)
    assert list(events.damaged_rows(connection)) == [seq]


def test_text_that_is_no_longer_unicode_is_noticed_too(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM events")
    events.insert(connection, 7, 1000, [("s", "k", b"{}")])
    connection.execute("UPDATE events SET kind = CAST(x'ff' AS TEXT)")
    with pytest.raises(StoreDamaged, match="row 7 of the table events"):
        events.select(connection, where="x", after=0, stream=None, limit=9)
