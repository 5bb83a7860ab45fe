"""The office of another process does what the office itself does, errors included (D1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentcanvas import errors
from agentcanvas.app.remote import RemoteOffice
from agentcanvas.app.server import ServerInfo, serve_beside
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import (
    AgentCanvasError,
    ApplyConflict,
    Disconnected,
    FlowError,
    FormError,
    IllegalTransition,
    NotFound,
    ProtocolError,
    Unauthenticated,
    UnsafePatch,
)
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs.office import Office, RunOrder
from agentcanvas.store import Store
from agentcanvas.web import problems
from tests.web.office import PATCH, FakeOffice, ended, noted, parked, started
from tests.web.streams import Wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]

RUN = "run 1/ü"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".agentcanvas").mkdir()
    return tmp_path


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with await Store.open(root / ".agentcanvas" / "agentcanvas.db") as store:
        yield store


@pytest.fixture
def office(store: Store) -> FakeOffice:
    return FakeOffice(store)


@pytest.fixture
async def server(office: FakeOffice, store: Store, root: Path) -> AsyncIterator[ServerInfo]:
    async with serve_beside(office, store, root, port=0, static=None) as info:
        yield info


@pytest.fixture
async def remote(server: ServerInfo) -> AsyncIterator[RemoteOffice]:
    async with RemoteOffice(server) as remote:
        yield remote


async def test_it_is_an_office(remote: RemoteOffice) -> None:
    office: Office = remote
    assert await office.runs() == ()


async def test_it_reads_what_the_office_reads(remote: RemoteOffice, office: FakeOffice) -> None:
    await office.write("r1", started(), noted("one\n<two>"), ended())
    await office.write("r2", started())
    office.say(1, "a1", "hello")
    office.say(2, "a2", "hi")
    assert await remote.runs() == await office.runs()
    assert await remote.state("r1") == await office.state("r1")
    assert [entry async for entry in remote.events("r1", follow=False)] == [
        entry async for entry in office.events("r1", follow=False)
    ]
    assert [entry.seq async for entry in remote.events("r1", after=2)] == [3]
    assert [entry async for entry in remote.transcript("r1")] == office.said
    assert [entry async for entry in remote.transcript("r1", "a2")] == office.said[1:]
    assert [entry async for entry in remote.transcript("r1", after=1)] == office.said[1:]
    assert await remote.patch("r1", "t/1") == PATCH
    assert office.calls == [("patch", "r1", "t/1", None)]


async def test_it_starts_and_ends_what_the_office_starts_and_ends(
    remote: RemoteOffice, office: FakeOffice
) -> None:
    order = RunOrder(flow="f", flow_text="name: f", request="fix it", approve_plan=True)
    run = await remote.start(order)
    await remote.stop(run, reason="enough")
    await remote.resume(run)
    assert await remote.retry(run) == f"{run}_again"
    undone = await remote.undo(run)
    assert undone == await office.undo(run)
    await remote.undo(run, "t/7")
    assert office.calls == [
        ("start", order),
        ("stop", run, "enough"),
        ("resume", run),
        ("retry", run),
        ("undo", run, None),
        ("undo", run, None),
        ("undo", run, "t/7"),
    ]


async def test_it_answers_what_waits_for_a_person(remote: RemoteOffice, office: FakeOffice) -> None:
    ask = PersonAsk(
        ask_id="r1/round:1/ask",
        person="you",
        run_id="r1",
        agent_id="a1",
        scope="plan:i1",
        text="Is this the plan?",
        schema={"type": "object"},
        default={"tasks": []},
    )
    office.open_asks.append(ask)
    assert await remote.asks() == (ask,)
    assert await remote.asks("r2") == ()
    await remote.answer(ask.ask_id, PersonAnswer({"tasks": [1]}, "you"))
    assert office.calls == [("answer", ask.ask_id, PersonAnswer({"tasks": [1]}, "you"))]


async def test_it_follows_a_run_to_its_end(remote: RemoteOffice, office: FakeOffice) -> None:
    await office.write("r1", started())
    heard = []
    async for entry in remote.events("r1"):
        heard.append(entry)
        if entry.seq == 1:
            await office.write("r1", noted("one"), parked())
    assert heard == [entry async for entry in office.events("r1", follow=False)]


async def test_it_follows_a_transcript_to_the_end_of_the_run(
    remote: RemoteOffice, office: FakeOffice
) -> None:
    await office.write("r1", started())
    office.say(1, "a1", "one")
    heard = []
    async for entry in remote.transcript("r1", "a1", follow=True):
        heard.append(entry)
        if len(heard) == 1:
            office.say(2, "a1", "two")
            await office.write("r1", ended())
    assert heard == office.said


async def test_a_stream_that_breaks_is_taken_up_without_loss_or_repeats(
    server: ServerInfo, office: FakeOffice
) -> None:
    await office.write("r1", started())
    wire = Wire(server)
    heard = []
    async with (
        wire.plugged_in() as info,
        RemoteOffice(info, clock=NoPause()) as remote,
        anyio.create_task_group() as group,
    ):

        async def work() -> None:
            for number in range(60):
                await office.write("r1", noted(str(number)))
            await office.write("r1", ended())

        group.start_soon(work)
        async for entry in remote.events("r1"):
            heard.append(entry.seq)
            if len(heard) in (1, 2, 20, 61):
                wire.cut()
    assert heard == list(range(1, 63))
    assert wire.connections > 1  # a cut may come while the one before is being mended


class NoPause(SystemClock):
    """Time that passes at once for whoever waits."""

    async def sleep_until(self, deadline: float) -> None:
        del deadline
        await anyio.lowlevel.checkpoint()


async def test_a_server_that_does_not_come_back_is_given_up_with_the_next_step(
    office: FakeOffice, store: Store, root: Path
) -> None:
    await office.write("r1", started())
    async with serve_beside(office, store, root, port=0) as info:
        remote = RemoteOffice(info, clock=VirtualClock())
        following = aiter(remote.events("r1"))
        await anext(following)
    with pytest.raises(Disconnected, match="agentcanvas serve"):
        await anext(following)
    with pytest.raises(Disconnected, match=rf"{info.url}, process {info.pid}"):
        await remote.runs()
    await remote.close()


async def test_a_wrong_token_is_told_apart(server: ServerInfo) -> None:
    other = ServerInfo(server.pid, server.url, "wrong", server.version)
    async with RemoteOffice(other) as remote:
        with pytest.raises(Unauthenticated):
            await remote.runs()
        with pytest.raises(Unauthenticated):
            await anext(aiter(remote.events("r1")))


async def test_a_name_with_any_character_arrives_as_it_is(
    remote: RemoteOffice, office: FakeOffice
) -> None:
    with pytest.raises(NotFound, match=f"Nothing waits for an answer under {RUN}"):
        await remote.answer(RUN, PersonAnswer(""))


@pytest.mark.parametrize(
    "call",
    [
        lambda remote: remote.state("nope"),
        lambda remote: remote.patch("nope", "t"),
        lambda remote: remote.stop("nope"),
        lambda remote: remote.resume("nope"),
        lambda remote: remote.retry("nope"),
        lambda remote: remote.undo("nope"),
        lambda remote: anext(aiter(remote.events("nope"))),
        lambda remote: anext(aiter(remote.events("nope", follow=False))),
        lambda remote: anext(aiter(remote.transcript("nope"))),
        lambda remote: anext(aiter(remote.transcript("nope", follow=True))),
    ],
)
async def test_an_unknown_run_is_the_same_error_with_the_same_sentence(
    remote: RemoteOffice, call: Callable[[RemoteOffice], Coroutine[Any, Any, object]]
) -> None:
    with pytest.raises(NotFound, match=r"^There is no run nope\. See: agentcanvas runs$"):
        await call(remote)


async def test_a_move_that_is_not_legal_is_the_same_error(
    remote: RemoteOffice, office: FakeOffice
) -> None:
    await office.write("r1", started(), ended())
    with pytest.raises(IllegalTransition, match="only a running one is stopped"):
        await remote.stop("r1")


@pytest.mark.parametrize(
    "raised",
    [
        FlowError("two problems", problems=["f.yaml:1:2 one", "f.yaml:3:4 two"]),
        ApplyConflict("x.py was edited.", conflicts={"x.py": "line 3"}),
        UnsafePatch("not this", breaches={".git/config": "internal"}),
        FormError("no goal", part="goal"),
        ProtocolError("bad", pointer="/a", message_id="m1"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_an_error_carries_comes_along(
    remote: RemoteOffice, office: FakeOffice, raised: AgentCanvasError
) -> None:
    office.failure = raised
    with pytest.raises(type(raised)) as caught:
        await remote.state("r1")
    assert type(caught.value) is type(raised)
    assert str(caught.value) == str(raised)
    assert vars(caught.value) == vars(raised)


def every_class(kind: type[AgentCanvasError]) -> list[type[AgentCanvasError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in every_class(child))]


OURS = [kind for kind in every_class(AgentCanvasError) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_comes_back_as_itself(kind: type[AgentCanvasError]) -> None:
    raised = kind.__new__(kind)
    raised.args = ("What is wrong, and what to do.",)
    back = problems.from_body(problems.to_body(raised, time="2026-01-31T09:30:00.000Z"))
    # A class without a code of its own is said in its parent's words.
    expected = kind if "code" in vars(kind) else kind.__base__
    assert type(back) is expected
    assert str(back) == "What is wrong, and what to do."
    assert 400 <= problems.status_of(raised) < 600


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"type": "HEARTBEAT"}'])
def test_an_answer_of_somebody_else_is_one_sentence(body: bytes) -> None:
    assert isinstance(problems.from_body(body), ProtocolError)
