"""What the person whom a hub belongs to can do with it: tokens, agents, messages, the record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    AgentCanvasError,
    AgentNotFound,
    Disconnected,
    MessageTooLarge,
    NotFound,
    PermissionDenied,
    ProtocolError,
    Unauthenticated,
    ValidationError,
)
from agentcanvas.hub import chronicle
from agentcanvas.hub.broker import Settlement
from agentcanvas.hub.guard import Principal, PrincipalKind, Scope
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.keeper import HANDED_IN, Keeper
from agentcanvas.hub.office import Choice, Entry, Fate, HubOffice, TaskOrder, TokenOrder
from agentcanvas.hub.tokens import Tokens
from agentcanvas.protocol.kinds import AgentStatus, Heartbeat, Kind, TaskAssign
from agentcanvas.store import Store
from tests.hub.helpers import TIME, a_broker, assign, complete, message, of_kind, progress

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]

MAC: dict[str, Any] = {
    "message_id": "6d8f9d0e-6a8c-4b5e-9a6c-0a4f0a4b7a01",
    "type": "TASK_REQUEST",
    "from": "asker",
    "to": "worker",
    "timestamp": TIME,
    "payload": {"task_id": "t-mac", "task_type": "review", "input": "x"},
}
S22: dict[str, Any] = {
    "message_id": "6d8f9d0e-6a8c-4b5e-9a6c-0a4f0a4b7a02",
    "timestamp": TIME,
    "sequence_number": 1,
    "from_agent": {"agent_id": "asker", "agent_type": "architect"},
    "to_agent": {"agent_id": "worker", "agent_type": "developer"},
    "message_type": "status_query",
    "payload": {"agent_id": "worker"},
}
ACP: dict[str, Any] = {
    "id": "cmd-1",
    "timestamp": TIME,
    "version": "2.0",
    "from": "asker",
    "to": "worker",
    "priority": "medium",
    "action": "TEST",
    "parameters": {},
}


class Kept:
    """A hub, and its keeper."""

    def __init__(self, hub: Hub, tokens: Tokens, office: Keeper) -> None:
        self.hub = hub
        self.tokens = tokens
        self.office = office

    async def knows(self, *names: str) -> None:
        for name in names:
            await self.office.new_token(TokenOrder(name=name))

    async def fails(self, sender: str, to: str) -> int:
        """Have a message given up; tell the number of the dead letter."""
        sent = await self.hub.send(Principal(sender), message(sender, to))
        link = await self.hub.connect(Principal(to))
        for _ in range(4):
            (parcel,) = await link.receive(1)
            await link.settle([parcel.number], Settlement.FAILED)
        await link.close()
        return sent.numbers[0]


@asynccontextmanager
async def keeping(store: Store, clock: VirtualClock) -> AsyncIterator[Kept]:
    async with a_broker(store, clock) as broker, Hub.open(broker, store, clock=clock) as hub:
        tokens = Tokens(store, clock)
        await tokens.load()
        yield Kept(hub, tokens, Keeper(hub, broker, store, tokens, clock))


@pytest.fixture
async def kept(store: Store, clock: VirtualClock) -> AsyncIterator[Kept]:
    async with keeping(store, clock) as kept:
        yield kept


def ids(entries: tuple[Entry, ...]) -> list[str]:
    return [chronicle.read_id(entry) for entry in entries]


async def test_a_keeper_is_a_hub_office(kept: Kept) -> None:
    office: HubOffice = kept.office
    assert await office.agents() == ()


# -- tokens ----------------------------------------------------------------------------------------


@pytest.mark.req("H6", "D26", "D27")
async def test_a_token_lets_its_owner_in_and_makes_it_known(kept: Kept) -> None:
    made = await kept.office.new_token(TokenOrder(name="worker", permissions=("files",)))
    assert kept.tokens.authenticate(made.text, claimed="worker").permissions == {"files"}
    assert made.text not in repr(made)
    sent = await kept.office.assign(TaskOrder(to="worker", task_type="review"))
    assert sent.thread == sent.id
    (line,) = await kept.office.tokens()
    assert (line.name, line.kind, line.permissions) == ("worker", PrincipalKind.AGENT, ("files",))
    _, _, secret = made.text.split("_", 2)  # a secret may contain "_" itself
    assert len(secret) > 30
    assert secret not in str(line)


async def test_the_prefix_of_a_name_says_whose_token_it_is(kept: Kept) -> None:
    await kept.office.new_token(TokenOrder(name="person:ana"))
    await kept.office.new_token(TokenOrder(name="door:ide", scopes=(Scope.READ,)))
    kinds = {line.name: line.kind for line in await kept.office.tokens()}
    assert kinds == {"person:ana": PrincipalKind.PERSON, "door:ide": PrincipalKind.DOOR}
    for name in ("engine:run-1", "hub", "broadcast", "", "x" * 201, "a\nb"):
        with pytest.raises(ValidationError):
            await kept.office.new_token(TokenOrder(name=name))
    with pytest.raises(ValidationError, match="prefix door:"):
        await kept.office.new_token(TokenOrder(name="worker", scopes=(Scope.READ,)))
    assert len(await kept.office.tokens()) == 2


async def test_a_revoked_agent_is_thrown_out_and_not_known_any_more(kept: Kept) -> None:
    await kept.knows("asker")
    made = await kept.office.new_token(TokenOrder(name="worker"))
    link = await kept.hub.connect(kept.tokens.authenticate(made.text))
    async with anyio.create_task_group() as group:

        async def listen() -> None:
            with pytest.raises(Disconnected):
                await link.receive(1)
            group.cancel_scope.cancel()

        group.start_soon(listen)
        (revoked,) = await kept.office.revoke("worker")
        await anyio.sleep_forever()
    assert revoked.revoked_ms is not None
    with pytest.raises(Unauthenticated):
        kept.tokens.authenticate(made.text)
    with pytest.raises(AgentNotFound, match="Agent not found: worker"):
        await kept.hub.send(Principal("asker"), message("asker", "worker"))
    with pytest.raises(NotFound):
        await kept.office.revoke("worker")


async def test_who_has_another_token_stays_known(kept: Kept) -> None:
    first = await kept.office.new_token(TokenOrder(name="worker"))
    second = await kept.office.new_token(TokenOrder(name="worker"))
    await kept.office.revoke(first.id)
    assert kept.tokens.authenticate(second.text).id == "worker"
    await kept.office.assign(TaskOrder(to="worker", task_type="review"))


# -- agents ----------------------------------------------------------------------------------------


@pytest.mark.req("L1")
async def test_agents_are_listed_with_what_they_can_do_and_what_waits(
    kept: Kept, clock: VirtualClock
) -> None:
    await kept.knows("asker", "idle", "worker")
    worker = Principal("worker")
    await kept.hub.connect(worker, capabilities=["review", "code"])
    beat = Heartbeat(status=AgentStatus.BUSY, load=0.5, tasks_running=2, tasks_queued=1)
    await kept.hub.send(worker, of_kind(Kind.HEARTBEAT, "worker", "hub", beat))
    await kept.hub.send(Principal("asker"), message("asker", "idle"))
    await clock.sleep(5)
    lines = {line.id: line for line in await kept.office.agents()}
    assert list(lines) == ["asker", "idle", "worker"]
    assert (lines["worker"].state, lines["worker"].load) == ("present", 0.5)
    assert (lines["worker"].tasks_running, lines["worker"].tasks_queued) == (2, 1)
    assert lines["worker"].silent_s == 5
    assert (lines["idle"].state, lines["idle"].waiting) == ("away", 1)
    assert lines["idle"].silent_s is None
    found = await kept.office.agents(["code", "review"])
    assert [line.id for line in found] == ["worker"]
    assert await kept.office.agents(["draw"]) == ()


@pytest.mark.req("L1", "D31")
async def test_a_silent_agent_is_listed_as_lost(kept: Kept, clock: VirtualClock) -> None:
    await kept.knows("worker", "asker")
    await kept.hub.connect(Principal("worker"))
    await kept.hub.send(Principal("asker"), assign("asker", "worker", "t1"))
    await clock.sleep(91)
    (line,) = [line for line in await kept.office.agents() if line.id == "worker"]
    assert (line.state, line.load) == ("lost", None)
    for choice in (Choice(kind="agent_lost", agent="worker"), Choice(session="default")):
        lost = [each for each in await kept.office.latest(choice, 10) if each.event == "agent_lost"]
        assert len(lost) == 1, "said once, though it stands in the session as well"


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.req("M1")
@pytest.mark.parametrize("value", [MAC, S22, ACP], ids=["mac", "spec022", "acp"])
async def test_a_message_of_any_dialect_is_delivered_as_its_senders(
    kept: Kept, value: dict[str, Any]
) -> None:
    await kept.knows("asker", "worker")
    sent = await kept.office.send(json.dumps(value).encode())
    link = await kept.hub.connect(Principal("worker"))
    (parcel,) = await link.receive(1)
    assert (parcel.envelope.id, parcel.envelope.sender.id) == (sent.id, "asker")
    (entry,) = await kept.office.latest(Choice(agent="asker"), 10)
    assert HANDED_IN in chronicle.read(entry).validation_errors
    assert entry.seq == sent.number
    states = {line.id: line.state for line in await kept.office.agents()}
    assert states["asker"] == "away", "what a person hands in is no sign of life"


async def test_a_repeated_message_is_told_so_and_delivered_once(kept: Kept) -> None:
    await kept.knows("asker", "worker")
    data = json.dumps(MAC).encode()
    assert not (await kept.office.send(data)).repeated
    assert (await kept.office.send(data)).repeated
    (line,) = [line for line in await kept.office.agents() if line.id == "worker"]
    assert line.waiting == 1


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"to": "nobody"}, AgentNotFound, "Agent not found: nobody"),
        ({"from": "nobody"}, AgentNotFound, "Agent not found: nobody.*token new nobody"),
        ({"from": "engine:run-1"}, AgentNotFound, "Agent not found"),
        ({"from": "hub"}, AgentNotFound, "Agent not found"),
        ({"type": "NONSENSE"}, ProtocolError, "NONSENSE"),
        ({"payload": 7}, ProtocolError, "payload"),
        ({"message_id": None}, ProtocolError, "message_id"),
    ],
)
async def test_what_cannot_be_sent_says_why(
    kept: Kept, change: dict[str, Any], error: type[AgentCanvasError], sentence: str
) -> None:
    await kept.knows("asker", "worker")
    with pytest.raises(error, match=sentence):
        await kept.office.send(json.dumps({**MAC, **change}).encode())
    assert all(line.waiting == 0 for line in await kept.office.agents())


async def test_garbage_heartbeats_false_seals_and_giants_are_refused(kept: Kept) -> None:
    await kept.knows("asker", "worker")
    for garbage in (b"", b"{", b"[]", b"\xff\xfe", b"{}", b"null", b'"' + b"a" * 100):
        with pytest.raises(ProtocolError):
            await kept.office.send(garbage)
    with pytest.raises(MessageTooLarge):
        await kept.office.send(b" " * 1_048_577)
    beat = {**MAC, "type": "HEARTBEAT", "payload": {"status": "ACTIVE"}}
    with pytest.raises(ValidationError, match="only an agent itself"):
        await kept.office.send(json.dumps(beat).encode())
    sealed = {**MAC, "metadata": {"x_agentcanvas": {"verified_by": "verified_by_hub"}}}
    with pytest.raises((PermissionDenied, ProtocolError)):
        await kept.office.send(json.dumps(sealed).encode())


@given(st.binary(max_size=400))
def test_no_bytes_at_all_break_the_keeper(data: bytes) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with await Store.in_memory(clock=clock) as store, keeping(store, clock) as kept:
            with pytest.raises(AgentCanvasError):
                await kept.office.send(data)

    anyio.run(main)


async def test_a_task_from_a_person_is_answered_to_that_person_and_its_mail_does_not_pile_up(
    kept: Kept,
) -> None:
    await kept.knows("worker")
    worker = Principal("worker")
    link = await kept.hub.connect(worker)
    for number in range(3):
        order = TaskOrder(to="worker", task_type="review", input=Raw(b'{"n": 1}'), priority=7)
        sent = await kept.office.assign(order)
        (parcel,) = await link.receive(1)
        body = parcel.envelope.body
        assert isinstance(body, TaskAssign)
        assert (body.task_type, parcel.envelope.priority) == ("review", 7)
        await link.settle([parcel.number], Settlement.TAKEN)
        assert body.task_id
        await kept.hub.send(
            worker, complete("worker", "person:you", body.task_id, correlation_id=sent.thread)
        )
        assert len(await kept.office.thread(sent.thread)) == 2, number
    waiting = await kept.hub.broker.since("person:you")
    assert len(waiting) == 3
    await kept.office.assign(TaskOrder(to="worker", task_type="review"))
    numbers = [parcel.number for parcel in waiting]
    assert await kept.hub.broker.acknowledge("person:you", numbers) == 0, "taken over before"


# -- the record ------------------------------------------------------------------------------------


@pytest.mark.req("M4")
async def test_a_conversation_is_found_by_its_name_and_by_any_of_its_messages(kept: Kept) -> None:
    await kept.knows("asker", "worker", "other")
    send = kept.hub.send
    asker, worker = Principal("asker"), Principal("worker")
    task = of_kind(
        Kind.TASK_ASSIGN, "asker", "worker", TaskAssign(task_id="t1"), correlation_id="c-1"
    )
    noise = message("asker", "other", correlation_id="c-2")
    half = progress("worker", "asker", "t1", reply_to=task.id, correlation_id="c-1")
    done = complete("worker", "asker", "t1", reply_to=task.id)  # names no conversation
    for who, envelope in ((asker, task), (asker, noise), (worker, half), (worker, done)):
        await send(who, envelope)
    expected = [task.id, half.id, done.id]
    for name in ("c-1", task.id, half.id):
        assert ids(await kept.office.thread(name)) == expected, name
    assert ids(await kept.office.thread("c-2")) == [noise.id]
    assert await kept.office.thread("nothing") == ()
    assert await kept.office.thread('%_"\\') == ()
    fates = [each.standing and each.standing.fate for each in await kept.office.thread("c-1")]
    assert fates == [Fate.WAITING] * 3


async def test_a_conversation_that_only_answers_hold_together_is_found(kept: Kept) -> None:
    await kept.knows("asker", "worker")
    first = message("asker", "worker")
    second = message("worker", "asker", reply_to=first.id)
    third = message("asker", "worker", reply_to=second.id)
    for envelope in (first, second, third):
        await kept.hub.send(Principal(envelope.sender.id), envelope)
    assert ids(await kept.office.thread(first.id)) == [first.id, second.id, third.id]


async def test_the_newest_lines_are_chosen_by_agent_kind_session_and_conversation(
    kept: Kept,
) -> None:
    await kept.knows("asker", "worker", "other")
    await kept.hub.sessions.open("s2", members=["asker", "other"])
    first = message("asker", "worker", correlation_id="c-1")
    second = message("asker", "other", session="s2")
    task = of_kind(Kind.TASK_ASSIGN, "worker", "other", TaskAssign(task_id="t1"))
    for envelope in (first, second, task):
        await kept.hub.send(Principal(envelope.sender.id), envelope)
    with pytest.raises(AgentNotFound):
        await kept.hub.send(Principal("asker"), message("asker", "nobody"))

    async def chosen(most: int = 100, **choice: Any) -> list[str]:
        return ids(await kept.office.latest(Choice(**choice), most))

    assert await chosen(agent="worker") == [first.id, task.id]
    assert await chosen(kind="task.assign") == await chosen(kind="task") == [task.id]
    assert await chosen(kind="message") == [first.id, second.id, task.id]
    assert await chosen(session="s2") == [second.id]
    assert await chosen(correlation="c-1") == [first.id]
    assert len(await chosen(kind="rejected", agent="asker")) == 1
    assert await chosen(kind="message", most=2) == [second.id, task.id]
    assert await chosen(most=0) == []
    assert await chosen(agent="nobody at all") == []


async def test_lines_come_as_they_happen_from_any_place_on(kept: Kept) -> None:
    await kept.knows("asker", "worker")
    sent = [message("asker", "worker", str(number)) for number in range(3)]
    await kept.hub.send(Principal("asker"), sent[0])
    heard: list[str] = []
    async with anyio.create_task_group() as group:

        async def listen() -> None:
            async with aclosing(kept.office.entries(Choice(agent="asker"), after=0)) as entries:
                async for entry in entries:
                    heard.extend(ids((entry,)))
                    if len(heard) == len(sent):
                        group.cancel_scope.cancel()

        group.start_soon(listen)
        for envelope in sent[1:]:
            await anyio.lowlevel.checkpoint()
            await kept.hub.send(Principal("asker"), envelope)
        await anyio.sleep_forever()
    assert heard == [envelope.id for envelope in sent]


# -- dead letters ----------------------------------------------------------------------------------


@pytest.mark.req("H2")
async def test_a_dead_letter_is_shown_and_resent_once_only(kept: Kept) -> None:
    await kept.knows("asker", "worker")
    number = await kept.fails("asker", "worker")
    (letter,) = await kept.office.dead_letters()
    assert letter == await kept.office.dead_letter(number)
    assert (letter.recipient, letter.tries) == ("worker", 4)
    await kept.office.resend(number)
    assert await kept.office.dead_letters() == ()
    for again in (kept.office.resend, kept.office.delete, kept.office.dead_letter):
        with pytest.raises(NotFound, match="no dead letter"):
            await again(number)
    link = await kept.hub.connect(Principal("worker"))
    (parcel,) = await link.receive(1)
    assert parcel.redelivered


async def test_a_dead_letter_is_deleted_for_good(kept: Kept) -> None:
    await kept.knows("asker", "worker")
    number = await kept.fails("asker", "worker")
    await kept.office.delete(number)
    assert await kept.office.dead_letters() == ()
    with pytest.raises(NotFound):
        await kept.office.resend(number)
    entries = await kept.office.latest(Choice(agent="worker", kind="deleted"), 5)
    assert len(entries) == 1
    with pytest.raises(NotFound):
        await kept.office.resend(-1)
