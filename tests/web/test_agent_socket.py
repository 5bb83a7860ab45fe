"""The WebSocket door: who gets in, what is said there, and what becomes of it (H1, H2, M5, D36)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from agentcanvas.app.hub import OpenHub
from agentcanvas.app.server import ServerInfo
from agentcanvas.hub.office import TokenOrder
from agentcanvas.web.socket_protocol import SocketProtocol
from tests.app.hub_process import hub_beside, ws
from tests.web.sockets import TIME, Wire, mac, wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1")]

NAMES = ("a", "b", "c")


class Place:
    """A hub, and the tokens of three agents."""

    def __init__(self, info: ServerInfo, opened: OpenHub, tokens: dict[str, str]) -> None:
        self.url = info.url
        self.opened = opened
        self.tokens = tokens

    def wire(self, agent: str, query: str = "") -> Any:
        return wire(self.url, agent, self.tokens[agent], query)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with hub_beside(tmp_path) as (info, opened):
        orders = [TokenOrder(name=name) for name in NAMES]
        tokens = {each.name: (await opened.keeper.new_token(each)).text for each in orders}
        yield Place(info, opened, tokens)


async def kept(one: Wire, message: dict[str, Any]) -> dict[str, Any]:
    """Send a message and return its receipt."""
    await one.say(message)
    (receipt,) = (await one.hear())["receipts"]
    found: dict[str, Any] = receipt
    return found


@pytest.mark.req("M1", "W3")
async def test_whoever_asked_in_another_dialect_finds_its_task_in_an_answer_of_acp(
    place: Place,
) -> None:
    async with place.wire("a") as a, place.wire("b", "&dialect=acp") as b:
        asked = mac("a", "b", "m-1", metadata={"correlation_id": "c-1"})
        asked |= {"type": "TASK_REQUEST"}
        asked |= {"payload": {"task_id": "t-1", "task_type": "count_words", "input": "two words"}}
        await kept(a, asked)
        command = await b.hear_message()
        answer = {"id": "r-1", "commandId": command["id"], "timestamp": TIME, "version": "2.0"}
        await b.say(answer | {"from": "b", "status": "success", "results": {"data": 2}})
        done = await a.hear_message()
        assert (done["type"], done["from"], done["to"]) == ("TASK_COMPLETE", "b", "a")
        assert (done["payload"]["task_id"], done["payload"]["output"]) == ("t-1", 2)
        assert done["metadata"]["correlation_id"] == "c-1"


@pytest.mark.req("W3")
async def test_an_answer_of_acp_comes_as_it_was_to_whoever_speaks_acp(place: Place) -> None:
    async with place.wire("a", "&dialect=acp") as a, place.wire("b", "&dialect=acp") as b:
        head = {"timestamp": TIME, "version": "2.0"}
        command = {"id": "c-1", **head, "from": "a", "to": "b", "priority": "low"}
        await kept(a, command | {"action": "TEST", "parameters": {}})
        assert (await b.hear_message())["id"] == "c-1"
        answer: dict[str, Any] = {"id": "r-1", "commandId": "c-1", **head, "from": "b"}
        answer |= {"status": "success", "results": {"data": 2}}
        await b.say(answer)
        came = await a.hear_message()
        assert came.pop("delivery")["session"] == "default"
        assert came == answer


async def test_a_message_is_kept_delivered_and_acknowledged(place: Place) -> None:
    async with place.wire("a") as a, place.wire("b") as b:
        receipt = await kept(a, mac("a", "b", "m-1"))
        assert (receipt["id"], receipt["session"]) == ("m-1", "default")
        came = await b.hear_message()
        assert came.pop("delivery") == {"number": receipt["numbers"][0], "session": "default"}
        assert came == mac("a", "b", "m-1")
        await b.say({"ack": ["m-1"], "ref": 7})
        assert await b.hear() == {"settled": [{"ref": 7, "news": 1}]}
        await b.say({"ack": receipt["numbers"], "ref": 8})
        assert await b.hear() == {"settled": [{"ref": 8, "news": 0}]}


@pytest.mark.req("M5")
async def test_a_repeated_id_is_delivered_once_and_acknowledged_again(place: Place) -> None:
    async with place.wire("a") as a, place.wire("b") as b:
        await kept(a, mac("a", "b", "m-1"))
        assert (await kept(a, mac("a", "b", "m-1")))["repeated"] is True
        await kept(a, mac("a", "b", "m-2"))
        assert [(await b.hear_message())["message_id"] for _ in range(2)] == ["m-1", "m-2"]


@pytest.mark.req("C11")
async def test_an_id_used_for_another_message_is_refused(place: Place) -> None:
    async with place.wire("a") as a:
        await kept(a, mac("a", "b", "m-1"))
        await a.say(mac("a", "b", "m-1", "something else"))
        error = await a.hear_error()
        assert (error["error_type"], error["original_message_id"]) == ("VALIDATION_ERROR", "m-1")


async def test_what_comes_in_one_read_is_handed_in_kept_and_answered_together(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[int] = []
    hand_over = SocketProtocol._hand_over

    def noted(self: SocketProtocol, messages: list[bytes]) -> None:
        came.append(len(messages))
        hand_over(self, messages)

    monkeypatch.setattr(SocketProtocol, "_hand_over", noted)
    async with place.wire("a") as a:
        messages = [json.dumps(mac("a", "b", f"m-{number}")).encode() for number in range(50)]
        frames = [Frame(Opcode.TEXT, each).serialize(mask=True) for each in messages]
        a.socket.transport.write(b"".join(frames))
        receipts = (await a.hear())["receipts"]
    assert came == [50]
    assert [each["id"] for each in receipts] == [f"m-{number}" for number in range(50)]


async def test_a_message_in_pieces_with_a_ping_between_is_one_message(place: Place) -> None:
    async with place.wire("a") as a:
        whole = json.dumps(mac("a", "b", "m-1"))
        pong = None

        async def pieces() -> AsyncIterator[str]:
            nonlocal pong
            yield whole[:50]
            pong = await a.socket.ping()
            yield whole[50:]

        await a.socket.send(pieces())
        assert (await a.hear())["receipts"][0]["id"] == "m-1"
        assert pong is not None
        await pong


@pytest.mark.parametrize("way", ["query", "header", "sub-protocol"])
async def test_a_token_may_be_shown_in_three_ways(place: Place, way: str) -> None:
    address, token = f"{ws(place.url)}/agent/ws?agent_id=a", place.tokens["a"]
    more: dict[str, Any] = {"proxy": None}
    if way == "query":
        address += f"&auth_token={token}"
    elif way == "header":
        more["additional_headers"] = {"Authorization": f"Bearer {token}"}
    else:
        more["subprotocols"] = ["agentcanvas", f"token.{token}"]
    async with connect(address, **more) as socket:
        assert socket.subprotocol == ("agentcanvas" if way == "sub-protocol" else None)
        receipt = await kept(Wire(socket), mac("a", "b", "m-1"))
        assert receipt["id"] == "m-1"


@pytest.mark.req("H6", "M3")
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("agent_id=a", 401, "UNAUTHENTICATED"),
        ("agent_id=a&auth_token=wrong", 401, "UNAUTHENTICATED"),
        ("agent_id=b&auth_token=TOKEN_OF_A", 401, "UNAUTHENTICATED"),
        ("agent_id=a&auth_token=TOKEN_OF_A&window=0", 422, "VALIDATION_FAILED"),
        ("agent_id=a&auth_token=TOKEN_OF_A&dialect=latin", 422, "VALIDATION_FAILED"),
    ],
)
async def test_who_is_not_let_in_is_told_why_in_a_mac_error(
    place: Place, query: str, status: int, code: str
) -> None:
    query = query.replace("TOKEN_OF_A", place.tokens["a"])
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{ws(place.url)}/agent/ws?{query}", proxy=None)
    assert refused.value.response.status_code == status
    error = json.loads(refused.value.response.body)
    assert error["type"] == "ERROR"
    assert error["payload"]["error_code"] == code


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1", "null"])
async def test_a_foreign_page_does_not_get_in(place: Place, origin: str) -> None:
    address = f"{ws(place.url)}/agent/ws?agent_id=a&auth_token={place.tokens['a']}"
    with pytest.raises(InvalidStatus) as refused:
        await connect(address, proxy=None, additional_headers={"Origin": origin})
    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body)["type"] == "ERROR"


@pytest.mark.req("M3", "H11")
@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ("no JSON at all", "JSON"),
        ("[1, 2]", "a JSON object"),
        ("{}", "no field tells it"),
        ('{"type": "TASK_REQUEST", "from": "a"}', "Missing required field"),
        ('{"ack": "m-1"}', "This is no word about messages"),
        ('{"ack": [1.5]}', "This is no word about messages"),
        ("{" * 100_000, "flatten it"),
        (b"\\xff\\xfe", "JSON"),
    ],
)
async def test_what_cannot_be_understood_is_answered_and_the_connection_goes_on(
    place: Place, frame: str | bytes, sentence: str
) -> None:
    async with place.wire("a") as a:
        await a.say(frame)
        error = await a.hear_error()
        assert error["error_type"] == "PROTOCOL_ERROR"
        assert error["severity"] == "ERROR"
        assert sentence in error["error_message"]
        assert "Traceback" not in error["error_message"]
        assert (await kept(a, mac("a", "b", "m-1")))["id"] == "m-1"


@pytest.mark.req("L1")
async def test_a_message_that_is_too_large_is_refused_before_it_is_read(place: Place) -> None:
    async with place.wire("a") as a:
        await a.say(mac("a", "b", "m-1", "x" * 1_048_576))
        assert (await a.hear_error())["error_code"] == "MESSAGE_TOO_LARGE"
        await a.say("x" * 2_200_000)
        code, _ = await a.ended()
        assert code == 1009
    async with place.wire("b") as b:
        await kept(b, mac("b", "a", "m-2"))


async def test_nobody_speaks_in_the_name_of_another(place: Place) -> None:
    async with place.wire("a") as a:
        await a.say(mac("b", "c", "m-1"))
        error = await a.hear_error()
        assert error["error_message"] == ("a cannot send as b; a message names its own sender.")


@pytest.mark.req("D36")
async def test_a_second_connection_closes_the_first_unless_it_is_another_instance(
    place: Place,
) -> None:
    async with (
        place.wire("a") as first,
        place.wire("a", "&instance=two") as other,
        place.wire("a") as second,
    ):
        code, reason = await first.ended()
        assert code == 4409
        assert "taken the place" in reason
        await kept(second, mac("a", "b", "m-1"))
        await kept(other, mac("a", "b", "m-2"))


@pytest.mark.req("D28", "H2")
async def test_what_was_not_acknowledged_comes_again_and_says_so(place: Place) -> None:
    async with place.wire("a") as a:
        for number in range(3):
            await kept(a, mac("a", "b", f"m-{number}"))
        async with place.wire("b") as b:
            assert [(await b.hear_message())["message_id"] for _ in range(3)]
            await b.say({"ack": ["m-0"], "ref": 1})
            assert (await b.hear())["settled"][0]["news"] == 1
        async with place.wire("b") as b:
            again = []
            for _ in range(2):
                message = await b.hear_message()
                again.append((message["message_id"], message["delivery"]["redelivered"]))
                await b.say({"ack": [message["message_id"]]})
            assert again == [("m-1", True), ("m-2", True)]


async def test_messages_may_count_as_taken_over_once_they_were_sent(place: Place) -> None:
    async with place.wire("a") as a:
        await kept(a, mac("a", "b", "m-1"))
        await kept(a, mac("a", "b", "m-2"))
        async with place.wire("b", "&ack=auto") as b:
            assert [(await b.hear_message())["message_id"] for _ in range(2)] == ["m-1", "m-2"]
        await kept(a, mac("a", "b", "m-3"))
        async with place.wire("b") as b:
            assert (await b.hear_message())["message_id"] == "m-3"


@pytest.mark.req("M1")
async def test_each_agent_hears_the_dialect_that_it_speaks(place: Place) -> None:
    async with place.wire("a") as a, place.wire("b", "&dialect=spec022") as b:
        await kept(a, mac("a", "b", "m-1"))
        came = await b.hear_message()
        assert (came["message_type"], came["from_agent"]["agent_id"]) == ("status_query", "a")
        del came["delivery"]
        came["message_id"], came["from_agent"], came["to_agent"] = "m-2", came["to_agent"], None
        async with place.wire("c", "&dialect=acp") as c:
            await kept(a, mac("a", "c", "m-3"))
            assert (await c.hear_message())["version"] == "2.0"


async def test_a_message_made_of_one_that_was_delivered_does_not_keep_the_hubs_member(
    place: Place,
) -> None:
    async with place.wire("a") as a, place.wire("b") as b:
        await kept(a, mac("a", "b", "m-1"))
        came = await b.hear_message()
        came |= {"message_id": "m-2", "from": "b", "to": "a"}
        await kept(b, came)
        answer = await a.hear_message()
        assert answer["delivery"].keys() == {"number", "session"}
        assert answer["delivery"] != came["delivery"]
