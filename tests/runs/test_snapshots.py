"""A state from a snapshot and what came since is the state from everything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.proposals.model import AnnounceMessage, Decision, ProposalReview, WorkStatus
from agentcanvas.runs import events as e
from agentcanvas.runs import snapshots
from agentcanvas.runs.snapshots import Account, Snapshots, account_in, stream_of
from agentcanvas.runs.state import RunState, RunStatus, fold
from agentcanvas.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2", "D4")]

RUN = "run_20260101_000000"
STREAM = f"team/{RUN}"
TASKS, WORKERS = ("t1", "t2", "t3"), ("ada", "ben")


def start() -> e.RunEvent:
    team = (e.Member("ada", "Ada", "worker"),)
    return made(e.RunStarted, payload=e.Start("team", "Do it", team, "c0"))


def made(kind: Callable[..., e.RunEvent], **payload: object) -> e.RunEvent:
    return kind(actor="engine", provenance=e.Provenance.SYSTEM, **payload)


def turn(number: int) -> e.RunEvent:
    charge = e.Charge(number, number / 7, estimated=number % 3 == 0)
    done = e.TurnDone(turn_id=f"work/ask:{number}/turn", text="ok", charge=charge)
    return made(e.TurnEnded, payload=done)


def announced(worker: str, files: tuple[str, ...]) -> e.RunEvent:
    told = AnnounceMessage(
        run_id=RUN,
        worker_id=worker,
        worker_name=worker,
        status=WorkStatus.OK,
        summary="Done.",
        proposal_path="p.json",
        touched_files=files,
        duration_ms=1,
    )
    return made(e.Announced, payload=told)


def reviewed(task: str, decision: Decision) -> e.RunEvent:
    return made(e.ProposalReviewed, payload=ProposalReview(RUN, task, decision, reason="so"))


tasks, workers = st.sampled_from(TASKS), st.sampled_from(WORKERS)
files = st.lists(st.sampled_from(["a.py", "b.py", "c.py"]), unique=True, max_size=2).map(tuple)
happening = st.one_of(
    st.integers(0, 9).map(turn),
    st.builds(lambda t, w: made(e.TaskDispatched, payload=e.Dispatch(t, w, "x")), tasks, workers),
    st.builds(lambda t: made(e.ProposalSubmitted, payload=e.Submission(t, 1, "s")), tasks),
    st.builds(reviewed, tasks, st.sampled_from(Decision)),
    st.builds(announced, workers, files),
    st.builds(lambda t, f: made(e.ProposalLanded, payload=e.Landed(t, f, "c1")), tasks, files),
    st.builds(lambda t, f: made(e.ProposalUndone, payload=e.Undone(t, f)), tasks, files),
    st.builds(lambda t: made(e.TaskFailed, payload=e.Failure(t, "no")), tasks),
    st.just(made(e.Noted, payload=e.Note("n"))),
)
pauses = st.sampled_from(
    [
        [],
        [made(e.RunParked, payload=e.Waiting("you", "Well?")), made(e.RunResumed)],
        [made(e.RunInterrupted), made(e.RunResumed)],
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> list[e.RunEvent]:
    parts = draw(st.lists(st.tuples(st.lists(happening, max_size=12), pauses), max_size=4))
    return [start(), *(event for some, pause in parts for event in (*some, *pause))]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with await Store.in_memory() as store:
        yield store


async def append(store: Store, events: Iterable[e.RunEvent]) -> None:
    await store.append_many([(STREAM, e.kind_of(event), e.to_json(event)) for event in events])


async def everything(store: Store) -> RunState:
    return fold([e.from_row(row) for row in await store.events(stream=STREAM)])


async def account(store: Store) -> tuple[Account, int]:
    return await store.read(partial(account_in, stream=STREAM))


@given(histories(), st.integers(0, 60))
def test_a_fold_in_two_parts_is_the_fold_of_all(history: list[e.RunEvent], cut: int) -> None:
    entries = [e.Recorded(seq, 1000 + seq, RUN, event) for seq, event in enumerate(history, 1)]
    assert fold(entries[cut:], fold(entries[:cut])) == fold(entries)


@settings(max_examples=40, deadline=None)
@given(histories(), st.integers(1, 20))
def test_a_snapshot_and_what_came_since_is_all_of_it(history: list[e.RunEvent], size: int) -> None:
    anyio.run(_looked_at_every, size, history)


async def _looked_at_every(size: int, history: list[e.RunEvent]) -> None:
    async with await Store.in_memory() as store:
        shortcut, found = Snapshots(store, every=1), Account()
        for begin in range(0, len(history), size):
            await append(store, history[begin : begin + size])
            found = await shortcut.account(STREAM)
            assert found.state == await everything(store)
        whole = await store.events(stream=STREAM)
    turns = [event.payload for event in history if isinstance(event, e.TurnEnded)]
    charges = [turn.charge for turn in turns if turn.charge is not None]
    assert (found.started_ms, found.last_ms) == (whole[0].at_ms, whole[-1].at_ms)
    assert found.tokens == sum(charge.tokens for charge in charges)
    assert found.cost == sum(charge.cost for charge in charges)
    assert found.is_estimate == any(charge.estimated for charge in charges)


async def test_only_what_came_since_the_last_look_is_read(store: Store) -> None:
    await append(store, [start(), *map(turn, range(20))])
    await Snapshots(store, every=10).account(STREAM)
    await append(store, [turn(1), turn(2)])
    found, read = await account(store)
    assert read == 2
    assert found.state == await everything(store)


async def test_a_few_events_are_not_worth_a_row(store: Store) -> None:
    await append(store, [start(), turn(1)])
    await Snapshots(store).account(STREAM)
    assert not await store.events(stream=stream_of(STREAM))


async def test_there_is_one_snapshot_of_a_run(store: Store) -> None:
    shortcut = Snapshots(store, every=1)
    await append(store, [start()])
    for number in range(5):
        await append(store, [turn(number)])
        await shortcut.account(STREAM)
    assert len(await store.events(stream=stream_of(STREAM))) == 1


async def test_a_state_larger_than_an_event_is_kept_in_parts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_PART", 100)
    tasks = [made(e.TaskDispatched, payload=e.Dispatch(f"t{n}", "ä", "x")) for n in range(50)]
    await append(store, [start(), *tasks])
    await Snapshots(store, every=1).account(STREAM)
    assert len(await store.events(stream=stream_of(STREAM))) > 1
    found, read = await account(store)
    assert (found.state, read) == (await everything(store), 0)


@pytest.mark.parametrize(
    "body",
    [b'"{}"', b'"not json"', b"not even text", b'"{\\"version\\":\\"old\\",\\"account\\":{}}"'],
)
async def test_a_snapshot_of_another_kind_is_passed_over(store: Store, body: bytes) -> None:
    await append(store, [start(), turn(1)])
    await store.append(stream_of(STREAM), snapshots.KIND, body)
    found, read = await account(store)
    assert (found.state, read) == (await everything(store), 2)


async def test_a_snapshot_of_another_version_is_passed_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(store, [start(), turn(1)])
    await Snapshots(store, every=1).account(STREAM)
    monkeypatch.setattr(snapshots, "_version", lambda: "newer")
    found, read = await account(store)
    assert (found.state, read) == (await everything(store), 2)


async def test_a_damaged_snapshot_is_passed_over_and_made_again(store: Store) -> None:
    shortcut = Snapshots(store, every=1)
    await append(store, [start(), turn(1)])
    await shortcut.account(STREAM)
    name = stream_of(STREAM)
    await store.transact(
        lambda unit: unit.execute("UPDATE events SET body = x'22' WHERE stream = ?", (name,))
    )
    found, read = await account(store)
    assert (found.state, read) == (await everything(store), 2)
    await shortcut.account(STREAM)
    assert (await account(store))[1] == 0


async def test_a_run_that_ended_is_known_by_its_end(store: Store) -> None:
    end = made(e.RunEnded, payload=e.End("done", done=True, result="All there."))
    await append(store, [start(), end])
    found = await Snapshots(store, every=1).account(STREAM)
    assert (found.state.status, found.state.result) == (RunStatus.DONE, "All there.")
    assert (await account(store))[0] == found
