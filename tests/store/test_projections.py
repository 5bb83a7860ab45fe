"""JSONL files follow the commits, and every event has its line once whatever happens (D2, V3)."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import StoreClosed, StoreError
from agentcanvas.store import Event, Retention, Store, lines
from tests.store.helpers import PerStream, content, expected_files, files_in

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2", "V3")]


async def reopened(path: Path) -> dict[str, bytes]:
    """Open and close the store; return what its files should hold now."""
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.flush_projections()
        return expected_files(await store.events(limit=100_000))


async def written(path: Path, number: int = 30) -> dict[str, bytes]:
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append_many(
            [(f"run/{index % 3}", "k", b'"%d"' % index) for index in range(number)]
        )
    return await reopened(path)


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_each_event_has_one_line_in_its_file_and_some_have_none(
    path: Path, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "elsewhere"
    async with await (
        Store.open(path, projections=[PerStream()], folder=folder)
        if kind == "file"
        else Store.in_memory(projections=[PerStream()], folder=folder)
    ) as store:
        await store.append("a", "k", b"1")
        await store.append("a", "private", b"2")
        await store.append("b/c", "k", b"3")
        await store.append("a", "k", b"4")
        await store.flush_projections()
        assert files_in(folder) == {
            "logs/a.jsonl": b'{"seq":1,"body":1}\n{"seq":4,"body":4}\n',
            "logs/b/c.jsonl": b'{"seq":3,"body":3}\n',
        }


async def test_closing_completes_the_files(path: Path) -> None:
    async with (
        await Store.open(path, projections=[PerStream()]) as store,
        anyio.create_task_group() as group,
    ):
        for number in range(3000):
            group.start_soon(store.append, f"s{number % 10}", "k", b"%d" % number)
    assert files_in(path.parent) == await reopened(path)


async def test_what_was_written_while_nobody_projected_is_made_up_for(path: Path) -> None:
    await written(path)
    async with await Store.open(path) as store:
        await store.append_many([("run/1", "k", b"%d" % index) for index in range(2500)])
    expected = await reopened(path)
    assert files_in(path.parent) == expected
    assert sum(data.count(b"\n") for data in expected.values()) == 2530


async def test_a_projection_added_later_begins_at_the_beginning(path: Path) -> None:
    class Kinds(PerStream):
        name = "kinds"

        def path(self, event: Event) -> str:
            return f"kinds/{event.kind}.jsonl"

    await written(path)
    async with await Store.open(path, projections=[PerStream(), Kinds()]) as store:
        await store.append("run/1", "new", b"1")
    assert content(path.parent / "kinds/k.jsonl").count(b"\n") == 30
    assert content(path.parent / "kinds/new.jsonl").count(b"\n") == 1
    assert files_in(path.parent) == await reopened(path)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=settings().max_examples // 4,  # each opens a store twice
)
@given(data=st.data())
def test_whatever_a_crash_leaves_is_completed_on_the_next_open(
    tmp_path: Path, data: st.DataObject
) -> None:
    folder = tmp_path / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / "agentcanvas.db"
    expected = anyio.run(written, path)
    recorded = data.draw(st.integers(0, 30), label="events whose lines were recorded as on disk")
    with closing(sqlite3.connect(path)) as connection:
        forget_positions_after(connection, recorded, folder)
    for name, whole in expected.items():
        # The disk has at least what was recorded; of the rest, any part may have arrived.
        certain = good_bytes(whole, recorded)
        arrived = data.draw(st.integers(certain, len(whole)), label=f"bytes of {name}")
        torn = data.draw(st.binary(max_size=5), label="garbage of a torn write")
        (folder / name).write_bytes(whole[:arrived] + torn)
    assert anyio.run(reopened, path) == expected
    assert files_in(folder) == expected


def good_bytes(whole: bytes, recorded: int) -> int:
    lines = whole.splitlines(keepends=True)
    return sum(len(line) for line in lines if int(line.split(b":")[1].split(b",")[0]) <= recorded)


def forget_positions_after(connection: sqlite3.Connection, seq: int, folder: Path) -> None:
    """Make the store what it was when it last recorded positions, before a crash."""
    files = connection.execute("SELECT path, first_seq FROM projection_files").fetchall()
    for name, first_seq in files:
        size = good_bytes((folder / name).read_bytes(), seq)
        connection.execute(
            "UPDATE projection_files SET seq = ?, size = ? WHERE path = ?",
            (max(seq, first_seq - 1), size, name),
        )
    connection.execute("UPDATE projections SET seq = ?", (seq,))
    connection.commit()


@pytest.mark.parametrize("what", ["removed", "emptied", "cut in a line", "folder removed"])
async def test_a_file_that_the_user_removed_or_cut_is_made_anew(path: Path, what: str) -> None:
    expected = await written(path)
    harm(path.parent / "logs/run/1.jsonl", what)
    await reopened(path)
    assert files_in(path.parent) == expected


def harm(file: Path, what: str) -> None:
    match what:
        case "removed":
            file.unlink()
        case "emptied":
            file.write_bytes(b"")
        case "cut in a line":
            file.write_bytes(file.read_bytes()[:-5])
        case "made a folder":
            file.mkdir()
        case _:
            shutil.rmtree(file.parent)


async def test_a_file_removed_while_the_store_is_open_is_made_anew_at_its_next_line(
    path: Path,
) -> None:
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append("s", "k", b"1")
        await store.flush_projections()
        harm(path.parent / "logs/s.jsonl", "removed")
        await store.append("s", "k", b"2")
        await store.flush_projections()
        assert files_in(path.parent) == expected_files(await store.events())


async def test_what_somebody_else_wrote_over_a_file_is_kept_beside_it(path: Path) -> None:
    expected = await written(path)
    file = path.parent / "logs/run/1.jsonl"
    replace(file, b"my notes\n")
    await reopened(path)
    assert files_in(path.parent) == expected
    assert content(file.with_name("1.jsonl.kept")) == b"my notes\n"


def replace(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


async def test_lines_follow_on_a_file_that_was_there_before_the_store(path: Path) -> None:
    file = path.parent / "logs/s.jsonl"
    replace(file, b'{"from": "another life"}\n{"torn')
    for body in (b"1", b"2"):
        async with await Store.open(path, projections=[PerStream()]) as store:
            await store.append("s", "k", body)
    assert content(file) == (
        b'{"from": "another life"}\n{"torn\n{"seq":1,"body":1}\n{"seq":2,"body":2}\n'
    )


class Faulty(PerStream):
    """Gives an unusable answer for one event."""

    def __init__(self, *, line: bytes | None = None, path: str | None = None) -> None:
        self._line = line
        self._path = path

    def line(self, event: Event) -> bytes:
        if event.kind == "bad" and self._line is not None:
            return self._line
        return super().line(event)

    def path(self, event: Event) -> str | None:
        if event.kind == "bad":
            if self._path is not None:
                return self._path
            if self._line is None:
                raise ZeroDivisionError("a mistake")
        return super().path(event)


class Other(PerStream):
    name = "other"

    def path(self, event: Event) -> str:
        return f"other/{event.stream}"


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        (Faulty(), "per-stream: ZeroDivisionError: a mistake"),
        (Faulty(line=b"two\nlines"), "the line of event 2 has more than one line"),
        (Faulty(path="../outside"), "'../outside' leads out of the folder"),
        (Faulty(path="/etc/outside"), "leads out of the folder"),
        (Faulty(path=""), "leads out of the folder"),
        (Faulty(path="other/s"), "the file other/s belongs to the projection other"),
    ],
)
async def test_a_projection_that_fails_stops_alone_and_goes_on_once_it_is_mended(
    path: Path, faulty: Faulty, complaint: str
) -> None:
    async with await Store.open(path, projections=[Other(), faulty]) as store:
        await store.append("s", "k", b"1")
        await store.append("s", "bad", b"2")
        await store.append("s", "k", b"3")
        with pytest.raises(StoreError, match=complaint):
            await store.flush_projections()
        assert list(store.statistics().behind) == ["per-stream"]
        assert await store.retain(Retention(streams="s", keep_last=0)) <= 1
    assert content(path.parent / "other/s").count(b"\n") == 3
    assert len(await reopened(path)) == 1
    written = content(path.parent / "logs/s.jsonl")
    assert [line[7:8] for line in written.splitlines()] == [b"1", b"2", b"3"]


async def test_a_disk_in_the_way_is_tried_again_and_nothing_is_doubled(path: Path) -> None:
    obstacle = path.parent / "logs/b"
    replace(obstacle, b"a file where a folder has to be")
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append_many([("a", "k", b"1"), ("b/x", "k", b"2"), ("c", "k", b"3")])
        with pytest.raises(StoreError, match="Files are behind the store"):
            await store.flush_projections()
        assert "per-stream" in store.statistics().behind
        harm(obstacle, "removed")
        await store.append("a", "k", b"4")
        await store.flush_projections()
        assert store.statistics().behind == {}
        assert files_in(path.parent) == expected_files(await store.events())


async def test_files_written_before_the_obstacle_are_not_written_again(path: Path) -> None:
    obstacle = path.parent / "logs/b.jsonl"
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append_many([(stream, "k", b"1") for stream in "abc"])
        await store.flush_projections()
        harm(obstacle, "removed")
        harm(obstacle, "made a folder")
        await store.append_many([(stream, "k", b"2") for stream in "abc"])
        with pytest.raises(StoreError, match="IsADirectoryError"):
            await store.flush_projections()
        harm(obstacle / "anything", "folder removed")
        await store.append_many([(stream, "k", b"3") for stream in "abc"])
        await store.flush_projections()
        assert files_in(path.parent) == expected_files(await store.events())


async def test_nothing_counts_as_written_before_its_file_is_on_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(errno.EIO, "the disk does not answer")

    async with await Store.open(path, projections=[PerStream()]) as store:
        with monkeypatch.context() as patch:
            patch.setattr(lines, "sync", refuse)
            await store.append("s", "k", b"1")
            with pytest.raises(StoreError, match="the disk does not answer"):
                await store.flush_projections()
            assert await store.retain(Retention(streams="s", keep_last=0)) == 0
        assert await store.retain(Retention(streams="s", keep_last=0)) == 1
    assert content(path.parent / "logs/s.jsonl") == b'{"seq":1,"body":1}\n'


async def test_a_damaged_row_stops_the_files_there_and_harms_no_write(path: Path) -> None:
    async with await Store.open(path) as store:
        await store.append_many([("s", "k", b"%d" % index) for index in range(5)])
        await store.transact(lambda t: t.execute("UPDATE events SET body = x'00' WHERE seq = 3"))
    async with await Store.open(path, projections=[PerStream()]) as store:
        with pytest.raises(StoreError, match="row 3 of the table events"):
            await store.flush_projections()
        assert await store.append("s", "k", b"{}") == 6


async def test_flushing_a_store_without_projections_or_a_closed_one(path: Path) -> None:
    async with await Store.open(path) as store:
        await store.flush_projections()
    async with await Store.open(path, projections=[PerStream()]) as store:
        pass
    with pytest.raises(StoreClosed):
        await store.flush_projections()


async def test_one_who_stops_waiting_for_a_flush_stops_nothing(path: Path) -> None:
    async with await Store.open(path, projections=[PerStream()]) as store:
        for number in range(20):
            await store.append("s", "k", b"%d" % number)
            async with anyio.create_task_group() as group:
                group.start_soon(store.flush_projections)
                group.start_soon(store.flush_projections)
                await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        await store.flush_projections()
        assert files_in(path.parent) == expected_files(await store.events())
