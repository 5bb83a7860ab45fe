"""A canary secret in every field of every kind of message: it must turn up nowhere afterwards."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, inspect

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import AgentCanvasError, InvalidMessage
from agentcanvas.hub.audit import Trail
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.journal import Choice, Decision, StoreJournal
from agentcanvas.hub.redaction import Redactor
from agentcanvas.hub.tokens import Tokens
from agentcanvas.protocol.envelope import Envelope, from_json, to_json
from agentcanvas.protocol.kinds import BODY_TYPES, Kind, StatusQuery, TaskAssign
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Store
from tests.hub.helpers import TIME, a_broker, assign, complete, message, of_kind

pytestmark = [pytest.mark.anyio, pytest.mark.req("D37", "H6")]

CANARY = 'sk-canary-4f1d/77"é+'
SPELLINGS = (
    CANARY.encode(),
    msgspec.json.encode(CANARY)[1:-1],
    quote(CANARY, safe="").encode(),
    base64.b64encode(CANARY.encode()),
)


def filled(info: inspect.Type, text: str) -> Any:  # noqa: C901 - a case a type
    """Fill a type with values whose every text holds ``text``."""
    if isinstance(info, inspect.StructType):
        return {field.encode_name: filled(field.type, text) for field in info.fields}
    if isinstance(info, inspect.UnionType):
        texts = [each for each in info.types if isinstance(each, inspect.StrType)]
        return filled((texts or info.types)[0], text)
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        return [filled(info.item_type, text)]
    if isinstance(info, inspect.DictType):
        return {f"key {text}": filled(info.value_type, text)}
    if isinstance(info, inspect.EnumType):
        return next(iter(info.cls)).value
    if isinstance(info, inspect.StrType):
        return f"text {text}"
    if isinstance(info, inspect.BoolType):
        return False
    if isinstance(info, inspect.IntType):
        return info.ge or 0
    if isinstance(info, inspect.FloatType):
        return float(info.ge or 0)
    if isinstance(info, inspect.Metadata):
        return filled(info.type, text)
    assert isinstance(info, inspect.RawType | inspect.AnyType), info
    return {f"free {text}": {"passed": False, "output": f"in {text} between"}}


HEADERS = ("correlation_id", "reply_to", "parent_task_id", "encryption_algorithm", "signature")


def canary_message(kind: Kind, text: str = CANARY) -> Envelope:
    """Make a message of a kind with the canary in every text there is."""
    parts = {
        "id": f"id {kind} {text}",
        "kind": kind.value,
        "time": TIME,
        "sender": {"id": "a", "instance": f"instance {text}"},
        "recipient": {"id": "b", "instance": f"instance {text}"},
        "security": {"permissions": []},
        "body": filled(inspect.type_info(BODY_TYPES[kind]), text),
        "fragments": [{"pointer": f"/x{text}", "json": {text: text}}],
        **{name: f"{name} {text}" for name in HEADERS},
    }
    return from_json(msgspec.json.encode(parts))


def test_the_canary_is_in_every_text_of_every_kind() -> None:
    for kind in Kind:
        envelope = canary_message(kind)
        assert to_json(envelope).count(msgspec.json.encode(CANARY)[1:-1]) > len(HEADERS)
    body = canary_message(Kind.REVIEW_RESULT).body
    assert CANARY in str(body)


async def everything_in(store: Store, hub: Hub) -> bytes:
    """Dump all that is kept or shown: every table, mail, cards, the trail."""

    def dump(look: Any) -> list[bytes]:
        names = [
            name for (name,) in look.query("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return [
            value if isinstance(value, bytes) else str(value).encode()
            for name in names
            for row in look.query(f"SELECT * FROM {name}")
            for value in row
        ]

    found = await store.read(dump)
    for agent in ("a", "b", "c"):
        found += [to_json(each.envelope) for each in await hub.broker.since(agent, limit=1000)]
    found += [to_json(dead.envelope) for dead in await hub.broker.dead_letters()]
    found += [str(hub.presence.cards()).encode(), *await Trail(store).export()]
    return b"\n".join(found)


@pytest.mark.parametrize("person", [None, "you"])
async def test_a_known_secret_is_kept_nowhere_whatever_the_field_and_the_kind(
    store: Store, clock: VirtualClock, person: str | None
) -> None:
    redactor = Redactor({"API_KEY": CANARY})
    async with (
        a_broker(store, clock) as broker,
        Hub.open(broker, store, clock=clock, redactor=redactor, person=person) as hub,
    ):
        await hub.sessions.open("default", members=["a", "b", "c"])
        a = Principal("a", permissions=frozenset({"*"}))
        await hub.connect(a)
        refused = 0
        for kind in Kind:
            for envelope in (
                canary_message(kind),
                msgspec.structs.replace(canary_message(kind), session=CANARY),
                msgspec.structs.replace(canary_message(kind), priority=9, reply_to=UNSET),
            ):
                try:
                    await hub.send(a, envelope)
                except AgentCanvasError:
                    refused += 1
            await hub.send_all(a, [canary_message(kind)])
            await clock.advance(2)  # refusals are noted once a second
        assert refused
        await StoreJournal(store, redactor).note(
            Decision(choice=Choice.RETRIED, message_id=CANARY, recipient="b", code=CANARY)
        )
        await clock.advance(3600)
        kept = await everything_in(store, hub)
        assert b"[redacted:API_KEY]" in kept
        for spelling in SPELLINGS:
            assert spelling not in kept


async def test_the_recipient_gets_the_message_with_the_name_in_place_of_the_secret(
    store: Store, clock: VirtualClock
) -> None:
    async with (
        a_broker(store, clock) as broker,
        Hub.open(broker, store, clock=clock, redactor=Redactor({"KEY": CANARY})) as hub,
    ):
        await hub.sessions.open("default", members=["a", "b"])
        task = f"task-{CANARY}"
        await hub.send(Principal("a"), assign("a", "b", task))
        (parcel,) = await broker.since("b")
        assert parcel.envelope.task_id == "task-[redacted:KEY]"
        await hub.send(Principal("b"), complete("b", "a", task))  # it still ends the same task
        (answer,) = await broker.since("a")
        assert answer.envelope.task_id == "task-[redacted:KEY]"


async def test_a_token_is_known_by_its_form_though_nobody_keeps_it(
    store: Store, clock: VirtualClock
) -> None:
    issued = await Tokens(store, clock).issue("a")
    hidden = issued.text.replace("a", "\\u0061")
    async with a_broker(store, clock) as broker, Hub.open(broker, store, clock=clock) as hub:
        await hub.sessions.open("default", members=["a", "b"])
        a = Principal("a")
        await hub.send(a, message("a", "b", f"my token is {issued.text}, look"))
        free = msgspec.Raw(f'{{"x": "{hidden}"}}'.encode())
        await hub.send(a, of_kind(Kind.TASK_ASSIGN, "a", "b", TaskAssign(input=free)))
        await hub.send(a, message("a", "b", "contact_form act_ and act_nothing are no tokens"))
        kept = await everything_in(store, hub)
        assert issued.text.encode() not in kept
        assert hidden.encode() not in kept
        texts = [each.envelope.body for each in await broker.since("b")]
        assert isinstance(texts[0], StatusQuery)
        assert texts[0].query_type == "my token is [redacted:token], look"
        assert isinstance(texts[2], StatusQuery)
        assert texts[2].query_type == "contact_form act_ and act_nothing are no tokens"


def test_what_is_clean_stays_the_same_object_and_what_is_short_is_not_looked_for() -> None:
    redactor = Redactor({"KEY": CANARY})
    assert not redactor.know("SHORT", "1234567")
    clean = message("a", "b", '1234567 and \\u0041 and "quotes"\n')
    assert redactor.envelope(clean) is clean
    assert Redactor().envelope(clean) is clean


def test_a_secret_where_nothing_can_be_put_in_its_place_is_refused_without_repeating_it() -> None:
    redactor = Redactor({"DATE_KEY": TIME[:10]})
    with pytest.raises(InvalidMessage) as caught:
        redactor.envelope(message("a", "b"))
    assert TIME[:10] not in str(caught.value)


def test_a_longer_secret_goes_before_a_shorter_one_inside_it() -> None:
    redactor = Redactor({"SHORT": "hunter22", "LONG": "hunter22-and-more"})
    assert redactor.text("x hunter22-and-more hunter22") == "x [redacted:LONG] [redacted:SHORT]"


def test_numbers_and_names_of_members_are_looked_at_too() -> None:
    redactor = Redactor({"PIN_SECRET": "12345678"})
    line = b'{"a": 12345678, "12345678": true, "b": [1.5, false, null]}'
    cleaned = msgspec.json.decode(redactor.quietly(line))
    assert cleaned == {
        "a": "[redacted:PIN_SECRET]",
        "[redacted:PIN_SECRET]": True,
        "b": [1.5, False, None],
    }


@pytest.mark.parametrize("number", [b"1e999", b"-1.50E+400", b"1" * 5000])
def test_a_number_that_nothing_can_hold_hides_no_secret_and_stays_as_it_was(number: bytes) -> None:
    redactor = Redactor({"PIN_SECRET": "12345678"})
    clean = b'{"a":"\\u0041","n":[%b,1.50,true]}' % number
    assert redactor.quietly(clean) == clean
    line = b'{"a":"\\u003112345678","n":[%b,1.50,12345678]}' % number
    hidden = b'"[redacted:PIN_SECRET]"'
    assert redactor.quietly(line) == b'{"a":"1[redacted:PIN_SECRET]","n":[%b,1.50,%b]}' % (
        number,
        hidden,
    )


@given(
    secret=st.text(min_size=8, max_size=40),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_no_text_hides_a_secret(secret: str, before: str, after: str) -> None:
    redactor = Redactor()
    if not redactor.know("S_KEY", secret):
        return  # an ordinary word, which is not looked for
    try:
        envelope = of_kind(
            Kind.TASK_ASSIGN,
            "a",
            "b",
            TaskAssign(task_id="t", input=freeze({before: [before + secret + after]})),
        )
    except UnicodeEncodeError:
        return
    try:
        cleaned = redactor.envelope(envelope)
    except InvalidMessage:
        return  # it is part of a word that cannot be changed
    assert isinstance(cleaned.body, TaskAssign)
    assert cleaned.body.input is not UNSET
    texts = _texts(msgspec.json.decode(cleaned.body.input))
    assert not any(secret in each.replace("[redacted:S_KEY]", "") for each in texts)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value]
