"""The hub as a whole: who may say what to whom, where it belongs, and what is put on record."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    AgentNotFound,
    InvalidMessage,
    MessageTooLarge,
    PermissionDenied,
    ValidationError,
)
from agentcanvas.hub.broker import Receipt
from agentcanvas.hub.events import EventKind, OnBehalfOf
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub, Link
from agentcanvas.hub.session import Sessions
from agentcanvas.protocol.envelope import AgentRef, AgentType
from agentcanvas.protocol.kinds import (
    Ack,
    Broadcast,
    Kind,
    RejectReason,
    TaskAccept,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.reviews import (
    ReviewContext,
    ReviewCriteria,
    ReviewRequest,
    ReviewResult,
    ReviewScope,
    Verdict,
    Verification,
    VerificationResult,
)
from agentcanvas.store import Store
from tests.hub.helpers import (
    ENGINE,
    a_hub,
    assign,
    complete,
    events,
    heartbeat,
    message,
    of_kind,
    take_all,
    text_of,
)

pytestmark = pytest.mark.anyio

A, B, C = Principal("a"), Principal("b"), Principal("c")


async def next_from(link: Link) -> str:
    (parcel,) = await take_all(link._inbox, 1)
    return text_of(parcel.envelope)


async def run_session(hub: Hub, *edges: tuple[str, str]) -> None:
    """Open the session of a run, whose flow has these edges."""
    await hub.sessions.open("run-1", members=["a", "b", "c"], edges=edges, owner=ENGINE.id)


# -- who ---------------------------------------------------------------------------------------


async def test_a_message_names_its_own_sender(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(PermissionDenied, match="a cannot send as b"):
            await hub.send(A, message("b", "c"))
        with pytest.raises(PermissionDenied):
            await hub.send(A, heartbeat("b"))


@pytest.mark.req("H11", "M2")
async def test_an_unknown_receiver_is_refused_by_name(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(AgentNotFound) as refusal:
            await hub.send(A, message("a", "nobody"))
        assert str(refusal.value) == "Agent not found: nobody"
        with pytest.raises(AgentNotFound, match=r"^Agent not found: stranger$"):
            await hub.send(Principal("stranger"), message("stranger", "a"))


@pytest.mark.req("D23")
async def test_topology_is_enforced_for_every_sender(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        await run_session(hub, ("a", "b"))
        await hub.send(A, message("a", "b", session="run-1"))
        with pytest.raises(PermissionDenied, match="a may not address c in the session run-1"):
            await hub.send(A, message("a", "c", session="run-1"))
        with pytest.raises(PermissionDenied):
            await hub.send(B, message("b", "a", session="run-1"))
        await hub.send(A, message("a", ENGINE.id, session="run-1"))
        await hub.send(ENGINE, message(ENGINE.id, "c", session="run-1"))


@pytest.mark.req("D23")
async def test_answers_go_back_along_the_edge_they_came_by(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await run_session(hub, ("a", "b"))
        await hub.send(A, assign("a", "b", "t1", session="run-1"))
        await hub.send(B, complete("b", "a", "t1", session="run-1"))


@pytest.mark.req("D22")
async def test_only_the_engine_speaks_on_behalf_of_others_and_keeps_to_their_edges(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await run_session(hub, ("a", "b"))
        for_a = OnBehalfOf("a", "e1")
        with pytest.raises(PermissionDenied, match="only the engine can"):
            await hub.send(C, message("c", "b", session="run-1"), on_behalf_of=for_a)
        relayed = message(ENGINE.id, "b", session="run-1")
        await hub.send(ENGINE, relayed, on_behalf_of=for_a)
        with pytest.raises(PermissionDenied, match="a may not address c"):
            await hub.send(ENGINE, message(ENGINE.id, "c", session="run-1"), on_behalf_of=for_a)
        link = await hub.connect(B)
        (parcel,) = await link.receive(1)
        assert parcel.envelope == relayed
        assert parcel.on_behalf_of == for_a
        (recorded,) = await events(store, EventKind.MESSAGE, "run-1")
        assert recorded["on_behalf_of"] == {"speaker": "a", "edge": "e1"}


@pytest.mark.parametrize("name", ["hub", "broadcast", ""])
async def test_some_names_are_nobodys(store: Store, clock: VirtualClock, name: str) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(PermissionDenied):
            await hub.connect(Principal(name))


async def test_sessions_and_their_edges_survive_a_restart(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await run_session(hub, ("a", "b"))
        await hub.sessions.join("run-1", "d")
        await hub.sessions.leave("run-1", "c")
    async with a_hub(store, clock) as hub:
        session = hub.sessions.get("run-1")
        assert session is not None
        assert session.members == {"a", "b", "d"}
        assert session.edges == frozenset({("a", "b")})
        with pytest.raises(PermissionDenied, match="belongs to engine:run-1"):
            await hub.sessions.open("run-1", members=["evil"])


@pytest.mark.req("D27")
async def test_a_hundred_who_join_and_leave_at_once_all_do(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        before = hub.sessions.get("default")
        assert before is not None
        for number in range(50):
            await hub.sessions.join("default", f"early-{number}")
        coming = [hub.sessions.join("default", f"a{number}") for number in range(50)]
        going = [hub.sessions.leave("default", f"early-{number}") for number in range(50)]
        await asyncio.gather(*coming, *going)
        session = hub.sessions.get("default")
        assert session is not None
        assert session.members == before.members | {f"a{number}" for number in range(50)}
        written = Sessions(store)
        await written.load()
        assert written.get("default") == session


# -- where -------------------------------------------------------------------------------------


@pytest.mark.req("D27")
async def test_a_message_without_a_session_belongs_to_that_of_what_it_answers(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await run_session(hub, ("a", "b"), ("b", "a"))
        asked = message("a", "b", session="run-1", correlation_id="thread-1")
        await hub.send(A, asked)
        by_reply = await hub.send(B, message("b", "a", reply_to=asked.id))
        by_thread = await hub.send(B, message("b", "a", correlation_id="thread-1"))
        by_root = await hub.send(B, message("b", "a", correlation_id=asked.id))
        assert [each.session for each in (by_reply, by_thread, by_root)] == ["run-1"] * 3
        unknown = await hub.send(B, message("b", "a", reply_to="who knows"))
        plain = await hub.send(B, message("b", "a"))
        assert [each.session for each in (unknown, plain)] == ["default"] * 2


@pytest.mark.req("D27", "W3")
@pytest.mark.parametrize("thread", ["c-1", None])
async def test_an_answer_without_a_recipient_goes_to_whoever_asked_and_says_what_it_answers(
    store: Store, clock: VirtualClock, thread: str | None
) -> None:
    async with a_hub(store, clock) as hub:
        asked = assign("a", "b", "t1", **({"correlation_id": thread} if thread else {}))
        await hub.send(A, asked)
        body = TaskResult(summary="done")
        answer = of_kind(Kind.TASK_COMPLETE, "b", None, body, reply_to=asked.id, origin="acp")
        await hub.send(B, answer)
        link = await hub.connect(A)
        (parcel,) = await link.receive(1)
        assert parcel.envelope == msgspec.structs.replace(
            answer,
            recipient=AgentRef("a"),
            correlation_id=thread or asked.id,
            body=TaskResult(task_id="t1", summary="done"),
        )
        repeat = await hub.send(B, answer)
        assert repeat.repeated
        with pytest.raises(InvalidMessage, match="names no recipient"):
            await hub.send(B, message("b", None))


@pytest.mark.req("D27")
async def test_what_the_messages_of_a_batch_answer_is_looked_up_at_once(
    store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    read = store.read

    async def counted(look: Any) -> Any:
        looks.append(look)
        return await read(look)

    async with a_hub(store, clock) as hub:
        await run_session(hub, ("a", "b"), ("b", "a"))
        asked = [message("a", "b", session="run-1") for _ in range(20)]
        await hub.send_all(A, asked)
        monkeypatch.setattr(store, "read", counted)
        answers = [message("b", "a", correlation_id=each.id) for each in asked]
        kept = await hub.send_all(B, [message("b", "a"), *answers])
        sessions = [each.session for each in kept if isinstance(each, Receipt)]
        assert sessions == ["default"] + 20 * ["run-1"]
        assert len(looks) == 1
        await hub.send_all(B, [message("b", "a")])
        assert len(looks) == 1, "a message that answers nothing needs none"


async def test_a_session_that_does_not_exist_is_refused(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(ValidationError, match="There is no session run-9"):
            await hub.send(A, message("a", "b", session="run-9"))


@pytest.mark.req("M4")
async def test_it_is_on_record_how_long_a_message_took_to_be_kept(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await hub.send_all(A, [message("a", "b")])
        await hub.send(A, message("a", "b"))
        for came_ms in (clock.now_ms() - 250, clock.now_ms() + 250):  # or the clock was set
            late = await hub.prepare(A, message("a", "b"))
            await hub.broker.post([msgspec.structs.replace(late, came_ms=came_ms)])
        recorded = await events(store, EventKind.MESSAGE)
        assert [each["processing_duration_ms"] for each in recorded] == [0, 0, 250, 0]


@pytest.mark.req("M5")
async def test_a_repeat_is_known_however_long_either_of_them_took(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        sent = message("a", "b")
        (first,) = await hub.send_all(A, [sent])
        await clock.sleep(5)
        late = await hub.prepare(A, sent)
        await clock.sleep(5)
        (again,) = await hub.broker.post([late])
        assert isinstance(first, Receipt)
        assert isinstance(again, Receipt)
        assert (again.repeated, again.numbers) == (True, first.numbers)


# -- what --------------------------------------------------------------------------------------


@pytest.mark.req("M2")
async def test_a_task_is_assigned_once_and_ended_once(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(InvalidMessage, match="No active assignment of the task t1"):
            await hub.send(B, complete("b", "a", "t1"))
        await hub.send(A, assign("a", "b", "t1"))
        with pytest.raises(InvalidMessage, match="was assigned before"):
            await hub.send(A, assign("a", "b", "t1"))
        await hub.send(B, complete("b", "a", "t1"))
        with pytest.raises(InvalidMessage, match="No active assignment of the task t1"):
            await hub.send(B, complete("b", "a", "t1"))
        with pytest.raises(InvalidMessage, match="was assigned before"):
            await hub.send(A, assign("a", "c", "t1"))


@pytest.mark.req("M2")
async def test_tasks_of_one_batch_are_judged_one_after_the_other(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        outcomes = await hub.send_all(
            A, [assign("a", "b", "t1"), assign("a", "b", "t1"), assign("a", "nobody", "t2")]
        )
        assert [type(outcome) for outcome in outcomes] == [Receipt, InvalidMessage, AgentNotFound]


@pytest.mark.req("M2")
async def test_open_tasks_survive_a_restart(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        await hub.send(A, assign("a", "b", "t1"))
        rejection = TaskReject(task_id="t2", reason=RejectReason.OVERLOADED)
        await hub.send(A, assign("a", "b", "t2"))
        await hub.send(B, of_kind(Kind.TASK_REJECT, "b", "a", rejection))
    async with a_hub(store, clock) as hub:
        await hub.send(B, complete("b", "a", "t1"))
        with pytest.raises(InvalidMessage):
            await hub.send(B, complete("b", "a", "t2"))


@pytest.mark.req("M2")
async def test_a_review_has_a_result_only_when_it_was_asked_for(
    store: Store, clock: VirtualClock
) -> None:
    request = ReviewRequest(
        review_id="r1",
        task_id="t1",
        scope=ReviewScope(files=("x.py",), focus_areas=()),
        criteria=ReviewCriteria(must_pass_tests=True, must_pass_type_check=True),
        context=ReviewContext(task_description="x", acceptance_criteria=()),
    )
    passed = VerificationResult(passed=True)
    result = ReviewResult(
        review_id="r1",
        task_id="t1",
        verdict=Verdict.APPROVED,
        findings=(),
        verification=Verification(tests=passed, type_check=passed),
        summary="fine",
    )
    async with a_hub(store, clock) as hub:
        with pytest.raises(InvalidMessage, match="No active request for the review r1"):
            await hub.send(B, of_kind(Kind.REVIEW_RESULT, "b", "a", result))
        await hub.send(A, of_kind(Kind.REVIEW_REQUEST, "a", "b", request))
        await hub.send(B, of_kind(Kind.REVIEW_RESULT, "b", "a", result))
        with pytest.raises(InvalidMessage):
            await hub.send(B, of_kind(Kind.REVIEW_RESULT, "b", "a", result))


@pytest.mark.req("C6")
async def test_an_acknowledgment_of_a_task_arrives_as_its_acceptance(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        asked = assign("a", "b", "t1")
        await hub.send(A, asked)
        ack = of_kind(Kind.ACK, "b", "a", Ack(), reply_to=asked.id)
        await hub.send(B, ack)
        again = await hub.send(B, ack)
        assert again.repeated
        other = of_kind(Kind.ACK, "b", "a", Ack(), reply_to="something else")
        await hub.send(B, other)
        link = await hub.connect(A)
        first, second = await take_all(link._inbox, 2)
        assert first.envelope.kind is Kind.TASK_ACCEPT
        assert first.envelope.body == TaskAccept(task_id="t1")
        assert second.envelope == other


@pytest.mark.req("M2", "M3")
async def test_an_unusual_direction_is_recorded_and_not_refused(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        backwards = assign("a", "b", "t1")
        odd = type(backwards)(
            **{
                **{name: getattr(backwards, name) for name in backwards.__struct_fields__},
                "sender": AgentRef("a", AgentType.DEVELOPER),
                "recipient": AgentRef("b", AgentType.ARCHITECT),
            }
        )
        await hub.send(A, odd)
        (recorded,) = await events(store, EventKind.MESSAGE)
        assert "goes from architect to developer" in recorded["validation_errors"][0]


@pytest.mark.req("L1")
async def test_a_message_over_the_size_limit_is_refused(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(MessageTooLarge, match="send large content as a blob"):
            await hub.send(A, message("a", "b", "x" * 1_048_576))


async def test_text_that_is_no_unicode_is_refused(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(InvalidMessage, match="not valid Unicode"):
            await hub.send(A, message("a", "b", "\ud800"))


@pytest.mark.req("H3")
async def test_a_broadcast_is_one_copy_each_with_an_id_of_its_own(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        news = of_kind(Kind.BROADCAST, "a", "broadcast", Broadcast(event="NEWS"))
        receipt = await hub.send(A, news)
        assert len(receipt.numbers) == 3  # the original and two copies
        repeat = await hub.send(A, news)
        assert repeat.repeated
        copies = []
        for principal in (B, C):
            link = await hub.connect(principal)
            (parcel,) = await take_all(link._inbox, 1)
            assert parcel.envelope.recipient == AgentRef(principal.id)
            assert parcel.envelope.correlation_id == news.id
            copies.append(parcel.envelope)
        assert len({news.id, *(copy.id for copy in copies)}) == 3
        assert hub.broker.statistics().posted == 2


@pytest.mark.req("H3", "D23")
async def test_a_broadcast_reaches_members_along_edges_only(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock, members=["a", "b", "c", "d"]) as hub:
        await run_session(hub, ("a", "b"))
        news = of_kind(Kind.BROADCAST, "a", "broadcast", Broadcast(event="NEWS"), session="run-1")
        receipt = await hub.send(A, news)
        assert len(receipt.numbers) == 2
        link = await hub.connect(B)
        assert len(await take_all(link._inbox, 1)) == 1


@pytest.mark.req("D31")
async def test_refusals_are_on_record_but_a_flood_of_them_is_not(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:

        async def try_in_vain() -> None:
            with pytest.raises(AgentNotFound):
                await hub.send(A, message("a", "nobody", session="default"))

        for _ in range(100):
            await try_in_vain()
        await clock.advance(1)
        await try_in_vain()
        found = await events(store, EventKind.REJECTED)
        assert [(each["code"], each.get("suppressed", 0)) for each in found] == [
            ("AGENT_NOT_FOUND", 0),
            ("AGENT_NOT_FOUND", 99),
        ]
        assert found[0]["sentence"] == "Agent not found: nobody"
