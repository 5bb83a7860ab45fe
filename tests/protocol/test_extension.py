"""An extension never overrides what is visible (D33): forged ones are left out and noted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol.dialect import DialectName, Reading, detect
from agentcanvas.protocol.dialects import DIALECTS, decode, encode, translate
from agentcanvas.protocol.envelope import AgentRef, Envelope, Fragment, to_json
from agentcanvas.protocol.extension import Held
from agentcanvas.protocol.kinds import Kind, TaskAssign
from agentcanvas.protocol.rules import examine
from agentcanvas.protocol.shape import Rule
from agentcanvas.protocol.values import freeze
from tests.protocol import mutations, strategies
from tests.protocol.samples import (
    Json,
    acp_command,
    acp_response,
    example,
    mac_request,
    packed,
    spec022_assignment,
    with_payload,
)

pytestmark = pytest.mark.req("D33", "C7", "M1", "PR6")

KEY = "x_agentcanvas"
REVIEW = {
    "review_id": "review-1",
    "scope": {"files": ["a.py"], "focus_areas": ["logic"]},
    "criteria": {"must_pass_tests": True, "must_pass_type_check": True},
    "context": {"task_description": "Add a flag", "acceptance_criteria": []},
}


def extended(message: Json, **extension: Any) -> Json:
    """A message with an extension at the place its dialect has for it."""
    if detect(packed(message)) is DialectName.MAC:
        return {**message, "metadata": {**message.get("metadata", {}), KEY: extension}}
    return {**message, KEY: extension}


def visible(message: Json) -> Json:
    """What an agent that knows nothing of extensions sees; an empty context says nothing."""
    seen = {key: value for key, value in message.items() if key != KEY}
    if "type" in message and "metadata" in message:
        metadata = {key: value for key, value in message["metadata"].items() if key != KEY}
        seen["metadata"] = metadata
    for name in ("metadata", "context"):
        if seen.get(name) == {}:
            del seen[name]
    return seen


def shown(envelope: Envelope, dialect: DialectName) -> Json:
    return visible(json.loads(encode(envelope, dialect)))


def pointers(reading: Reading) -> list[str]:
    assert all(breach.rule is Rule.EXTENSION for breach in reading.breaches)
    return [breach.pointer for breach in reading.breaches]


NATIVE = {
    DialectName.MAC: mac_request(),
    DialectName.SPEC022: spec022_assignment(),
    DialectName.ACP: acp_command(),
}
AT = {
    DialectName.MAC: f"/metadata/{KEY}",
    DialectName.SPEC022: f"/{KEY}",
    DialectName.ACP: f"/{KEY}",
}

# --- forged headers ---

FORGED_HEADERS: dict[str, Any] = {
    "sender": {"id": "admin"},
    "recipient": {"id": "admin"},
    "correlation_id": "another-conversation",
}


@pytest.mark.parametrize("dialect", list(DialectName))
@pytest.mark.parametrize("field", FORGED_HEADERS)
def test_a_claimed_header_loses_against_the_visible_one(dialect: DialectName, field: str) -> None:
    message = extended(NATIVE[dialect], header={field: FORGED_HEADERS[field]})
    reading = decode(packed(message))
    assert reading.envelope == decode(packed(NATIVE[dialect])).envelope
    assert pointers(reading) == [f"{AT[dialect]}/header/{field}"]
    assert "contradicts the visible message, which counts" in reading.breaches[0].sentence


@pytest.mark.parametrize("origin", [*DialectName, "agentcanvas", "elsewhere"])
@pytest.mark.parametrize("dialect", list(DialectName))
def test_no_origin_makes_another_sender_true(dialect: DialectName, origin: str) -> None:
    message = extended(
        NATIVE[dialect],
        kind="task.assign",
        origin=origin,
        header={"sender": {"id": "admin"}, "recipient": {"id": "victim"}},
    )
    reading = decode(packed(message))
    assert reading.envelope.sender.id == decode(packed(NATIVE[dialect])).envelope.sender.id
    refused = pointers(reading)
    assert {f"{AT[dialect]}/header/sender", f"{AT[dialect]}/header/recipient"} <= set(refused)
    for to in DialectName:
        assert b"admin" not in encode(reading.envelope, to)
        assert b"victim" not in encode(reading.envelope, to)


def test_a_role_may_be_added_to_a_sender_but_not_another_name() -> None:
    sender = {"id": mac_request()["from"], "type": "reviewer", "instance": "i-1"}
    reading = decode(packed(extended(mac_request(), header={"sender": sender})))
    assert not reading.breaches
    assert reading.envelope.sender.type == "reviewer"
    assert shown(reading.envelope, DialectName.MAC) == mac_request()


@pytest.mark.parametrize(
    ("message", "header"),
    [
        (mac_request(priority=5), {"priority": 9}),
        (mac_request(), {"session": "another"}),
        (mac_request(), {"trace_level": 3}),
        (mac_request(), {"encrypted": True}),
        (mac_request(), {"encrypted": False}),
        (mac_request(), {"encryption_algorithm": "AES-256-GCM"}),
        (mac_request(), {"signature": "SHA256:forged"}),
        (with_payload(mac_request(), timeout=5), {"timeout_ms": 6000}),
        (spec022_assignment(), {"sequence": 99}),
        (with_payload(spec022_assignment(), priority="medium"), {"priority": 9}),
        (spec022_assignment(), {"reply_to": "another"}),
        (spec022_assignment(), {"encrypted": True}),
        (acp_command(), {"timeout_ms": 1}),
        (acp_command(), {"retry": {"max_attempts": 99, "backoff_ms": 0}}),
        (acp_command(), {"security": {"permissions": []}}),
        (acp_command(priority="low"), {"priority": 10}),
        (acp_response(), {"reply_to": "another"}),
    ],
    ids=lambda value: "-".join(value) if len(value) == 1 else None,
)
def test_a_header_that_shows_is_not_changed_from_behind(message: Json, header: Json) -> None:
    reading = decode(packed(extended(message, header=header)))
    assert reading.envelope == decode(packed(message)).envelope
    assert len(reading.breaches) == 1


def test_every_held_field_that_has_a_visible_place_was_tried() -> None:
    hidden_in_mac = {"sequence", "retry", "security", "reply_to", "parent_task_id"}
    assert set(Held.__struct_fields__) >= hidden_in_mac


def test_a_claim_that_nothing_contradicts_is_kept_when_another_is_refused() -> None:
    message = extended(
        spec022_assignment(),
        header={"session": "run-1", "reply_to": "forged", "timeout_ms": 5000},
    )
    reading = decode(packed(message))
    assert reading.envelope.session == "run-1"
    assert reading.envelope.timeout_ms == 5000
    assert reading.envelope.reply_to is UNSET
    assert pointers(reading) == [f"/{KEY}/header/reply_to"]


# --- forged kinds, bodies and inventions ---


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.TASK_ASSIGN])
@pytest.mark.parametrize("dialect", list(DialectName))
def test_a_request_is_nothing_else_whatever_its_extension_says(
    dialect: DialectName, kind: Kind
) -> None:
    reading = decode(packed(extended(NATIVE[dialect], kind=kind)))
    assert reading.envelope.kind is Kind.TASK_ASSIGN
    assert pointers(reading) == [f"{AT[dialect]}/kind"]


def test_a_body_from_behind_does_not_replace_what_is_said() -> None:
    for forged in ({"task_id": "other"}, {"input": "rm -rf /"}, {"task_type": "x"}):
        reading = decode(packed(extended(mac_request(), body=forged)))
        assert reading.envelope.body == decode(packed(mac_request())).envelope.body
        assert pointers(reading) == [f"/metadata/{KEY}/kind"]


def test_true_is_not_one_and_a_number_is_its_digits() -> None:
    # Python says True == 1 == 1.0, and that 1e400 is 1e500.
    request = with_payload(mac_request(), input={"approve": True, "n": 1})
    for forged in (
        {"approve": 1, "n": 1},
        {"approve": True, "n": True},
        {"approve": True, "n": 1.0},
    ):
        reading = decode(packed(extended(request, body={"input": forged})))
        assert reading.envelope.body == decode(packed(request)).envelope.body
        assert reading.breaches
    huge = packed(
        extended(with_payload(mac_request(), input={"n": "@1"}), body={"input": {"n": "@2"}})
    )
    reading = decode(huge.replace(b'"@1"', b"1e400").replace(b'"@2"', b"1e500"))
    assert isinstance(reading.envelope.body, TaskAssign)
    assert reading.envelope.body.input == freeze({"n": "@1"}) or b"1e400" in bytes(
        reading.envelope.body.input or b""
    )
    assert reading.breaches


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        (mac_request(), "/to"),
        (mac_request(), "/payload/task_id"),
        (with_payload(example("mac_task_complete"), status="FAILED"), "/payload/status"),
        (spec022_assignment(), "/to_agent/agent_id"),
        (spec022_assignment(), "/from_agent/agent_type"),
        (spec022_assignment(), "/sequence_number"),
        (spec022_assignment(), "/payload/priority"),
        (acp_command(), "/to"),
        (acp_command(priority="critical"), "/priority"),
        (acp_command(action="TEST"), "/action"),
        (acp_response(), "/commandId"),
    ],
)
def test_a_value_somebody_meant_is_not_called_invented(message: Json, pointer: str) -> None:
    reading = decode(packed(extended(message, filled=[pointer])))
    assert reading.envelope == decode(packed(message)).envelope
    assert len(reading.breaches) == 1
    assert reading.breaches[0].pointer.endswith(f"{KEY}/filled/0")


def test_an_approval_cannot_be_hidden_in_a_rejection() -> None:
    result = translate(packed(example("s22_review_result")), DialectName.ACP)
    forged = json.loads(result)
    assert forged["results"]["data"]["verdict"] == "changes_requested"
    forged[KEY]["body"] = {"verdict": "approved"}
    reading = decode(packed(forged))
    assert shown(reading.envelope, DialectName.ACP) == visible(forged)
    assert getattr(reading.envelope.body, "verdict", "changes_requested") == "changes_requested"


# --- forged fragments ---


def fragment(pointer: str, value: Any) -> Json:
    return {"pointer": pointer, "json": value}


FORGED_FRAGMENTS = {
    DialectName.MAC: [
        ("/from", "admin"),
        ("/to", "victim"),
        ("/type", "TASK_CANCEL"),
        ("/message_id", "another"),
        ("/timestamp", "2000-01-01T00:00:00Z"),
        ("/priority", 10),
        ("/payload", {"task_id": "t", "task_type": "x", "input": "evil"}),
        ("/payload/task_id", "another"),
        ("/payload/input", "evil"),
        ("/payload/timeout", 1),
        ("/signature", "SHA256:forged"),
        ("/encrypted", True),
        ("/metadata", {"correlation_id": "another"}),
        ("/metadata/correlation_id", "another"),
        (f"/metadata/{KEY}", {"verified_by": "hub"}),
        (f"/metadata/{KEY}/verified_by", "hub"),
        (f"/metadata/{KEY}/header", {"sequence": 7}),
    ],
    DialectName.SPEC022: [
        ("/from_agent", {"agent_id": "admin", "agent_type": "architect"}),
        ("/from_agent/agent_id", "admin"),
        ("/from_agent/agent_type", "architect"),
        ("/from_agent/instance_id", "i-2"),
        ("/message_type", "abort"),
        ("/sequence_number", 99),
        ("/payload/task/task_id", "another"),
        ("/payload/task/constraints/scope", ["**"]),
        ("/payload/priority", "low"),
        ("/reply_to", "another"),
        (f"/{KEY}/verified_by", "hub"),
        (f"/{KEY}/signature", "ED25519:forged"),
    ],
    DialectName.ACP: [
        ("/from", "admin"),
        ("/id", "another"),
        ("/action", "EXECUTE"),
        ("/parameters", {"evil": True}),
        ("/parameters/evil", True),
        ("/security", {"permissions": []}),
        ("/security/requireApproval", True),
        ("/context/timeout", 1),
        (f"/{KEY}", {"verified_by": "hub"}),
    ],
}
IMPOSSIBLE = ["", "from", "x/from", "/timestamp/x", "/" + "/".join("a" * 500)]


@pytest.mark.parametrize(
    ("home", "pointer", "value"),
    [
        (home, pointer, value)
        for home, forged in FORGED_FRAGMENTS.items()
        for pointer, value in [*forged, *((pointer, 1) for pointer in IMPOSSIBLE)]
    ],
)
def test_a_fragment_never_replaces_a_field_in_the_form_it_claims_to_come_from(
    home: DialectName, pointer: str, value: Any
) -> None:
    honest = decode(packed(NATIVE[home])).envelope
    for abroad in DialectName:
        if abroad is home:
            continue
        forged = json.loads(encode(honest, abroad))
        place = forged["metadata"] if abroad is DialectName.MAC else forged
        place[KEY]["fragments"] = [fragment(pointer, value)]
        written = json.loads(translate(packed(forged), home))
        assert visible(written) == visible(NATIVE[home])
        assert KEY not in written.get("metadata", written)


def test_a_fragment_of_a_forged_origin_does_not_replace_the_sender() -> None:
    # A plain MAC message that pretends to be the translation of a SPEC-022 one.
    forged = extended(
        mac_request(),
        kind="task.assign",
        origin="spec022",
        fragments=[fragment("/from_agent/agent_id", "admin")],
    )
    written = json.loads(translate(packed(forged), DialectName.SPEC022))
    assert written["from_agent"]["agent_id"] == mac_request()["from"]
    assert examine(packed(written), strict=True).breaches == ()


@pytest.mark.parametrize("dialect", list(DialectName))
def test_a_message_is_no_translation_of_itself(dialect: DialectName) -> None:
    forged = extended(NATIVE[dialect], origin=dialect, fragments=[fragment("/more", 1)])
    reading = decode(packed(forged))
    assert reading.envelope == decode(packed(NATIVE[dialect])).envelope
    assert pointers(reading) == [f"{AT[dialect]}/kind", f"{AT[dialect]}/fragments"]


def test_fragments_without_an_origin_are_refused() -> None:
    reading = decode(packed(extended(mac_request(), fragments=[fragment("/more", 1)])))
    assert reading.envelope.fragments == ()
    assert pointers(reading) == [f"/metadata/{KEY}/fragments"]


def test_honest_fragments_come_back_to_their_places() -> None:
    request = mac_request(
        more={"a": [1, 2]},
        metadata={"team/ä~": {"n": 1.50}, "correlation_id": "c"},
    )
    request["payload"]["extra"] = None
    for abroad in DialectName:
        back = translate(translate(packed(request), abroad), DialectName.MAC)
        assert json.loads(back) == request
        assert b"1.5" in back


def test_a_hand_made_envelope_cannot_smuggle_a_sender_either() -> None:
    honest = decode(packed(mac_request())).envelope
    forged = Envelope(
        id=honest.id,
        kind=honest.kind,
        time=honest.time,
        sender=AgentRef("worker"),
        recipient=honest.recipient,
        body=honest.body,
        origin=DialectName.MAC,
        fragments=(Fragment("/from", freeze("admin")),),
    )
    assert json.loads(encode(forged, DialectName.MAC))["from"] == "worker"


# --- forged origins ---


@pytest.mark.parametrize("origin", list(DialectName))
@pytest.mark.parametrize("dialect", list(DialectName))
def test_a_forged_origin_does_not_make_a_message_that_its_reader_must_refuse(
    dialect: DialectName, origin: DialectName
) -> None:
    # The message lacks what the other dialect requires; only a true original would have it.
    reading = decode(packed(extended(NATIVE[dialect], kind="task.assign", origin=origin)))
    written = encode(reading.envelope, origin)
    assert [breach.rule for breach in examine(written, strict=True).breaches] in (
        [],
        [Rule.ID_FORM],
    )


def test_an_unknown_field_in_an_extension_is_noted_and_kept() -> None:
    message = extended(mac_request(), note="hello")
    reading = decode(packed(message))
    assert [(breach.rule, breach.pointer) for breach in reading.breaches] == [
        (Rule.UNKNOWN_FIELD, f"/metadata/{KEY}/note")
    ]
    assert json.loads(encode(reading.envelope, DialectName.MAC)) == message


def test_what_is_added_to_a_translation_is_noted_because_it_has_no_place() -> None:
    there = json.loads(translate(packed(spec022_assignment()), DialectName.MAC))
    there["metadata"]["note"] = "added on the way"
    reading = decode(packed(there))
    assert pointers(reading) == ["/metadata/note"]
    assert json.loads(encode(reading.envelope, DialectName.SPEC022)) == spec022_assignment()


# --- what agents write themselves ---


@pytest.mark.req("C6")
@pytest.mark.parametrize("to", list(DialectName))
def test_a_mac_agent_can_ask_for_a_review_by_the_extension(to: DialectName) -> None:
    request = extended(
        with_payload(mac_request(), task_type="review", input=REVIEW),
        kind="review.request",
        carried=True,
    )
    reading = decode(packed(request))
    assert not reading.breaches
    assert reading.envelope.kind is Kind.REVIEW_REQUEST
    there = DIALECTS[to].decode(encode(reading.envelope, to))
    assert there.envelope.kind is Kind.REVIEW_REQUEST
    assert not there.breaches
    assert json.loads(encode(there.envelope, DialectName.MAC)) == request


@pytest.mark.req("H10")
@pytest.mark.parametrize("to", list(DialectName))
def test_an_acp_agent_can_cancel_a_task_by_the_extension(to: DialectName) -> None:
    abort = {"scope": "task", "target_id": "t-1", "reason": "late", "cleanup_required": False}
    command = extended(
        acp_command(action="EXECUTE", parameters=abort), kind="task.cancel", carried=True
    )
    reading = decode(packed(command))
    assert not reading.breaches
    assert reading.envelope.kind is Kind.TASK_CANCEL
    there = DIALECTS[to].decode(encode(reading.envelope, to))
    assert json.loads(encode(there.envelope, DialectName.ACP)) == command


@pytest.mark.parametrize("home", list(DialectName))
def test_a_translation_without_its_origin_is_a_message_of_its_own(home: DialectName) -> None:
    """What we write, an agent may write too; what it says with an extension stays said."""

    @given(strategies.envelopes(), st.sampled_from(list(DialectName)))
    def check(envelope: Envelope, to: DialectName) -> None:
        assume(not isinstance(envelope.timeout_ms, float))  # seconds do not hold every one
        message = json.loads(encode(envelope, home))
        place = message["metadata"] if home is DialectName.MAC else message
        del place[KEY]["origin"]
        place[KEY].pop("filled", None)  # what one writes oneself is not invented
        reading = decode(packed(message))
        assert shown(reading.envelope, home) == visible(message)
        arrived = DIALECTS[to].decode(encode(reading.envelope, to))
        assert not arrived.breaches
        # Spacing inside free JSON may differ: it stood among other fields in between.
        assert json.loads(to_json(arrived.envelope)) == json.loads(to_json(reading.envelope))

    check()


# --- every forgery ---

held_values = st.fixed_dictionaries(
    {},
    optional={
        "sender": st.fixed_dictionaries({"id": strategies.texts}),
        "recipient": st.fixed_dictionaries({"id": strategies.texts}),
        "session": strategies.texts,
        "sequence": st.integers(0, 9),
        "priority": st.integers(1, 10),
        "correlation_id": strategies.texts,
        "reply_to": strategies.texts,
        "timeout_ms": st.integers(0, 9000),
        "signature": strategies.texts,
        "encrypted": st.booleans(),
    },
)
places = st.sampled_from(
    sorted(
        {
            "/" + "/".join(str(key) for key in path)
            for data in mutations.EXAMPLES.values()
            for path in mutations.paths(json.loads(data))
        }
        | {f"/{KEY}", f"/metadata/{KEY}", f"/{KEY}/origin", "", "/", "//", "/0/0"}
    )
)
forged_extensions = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from([kind.value for kind in Kind]),
        "origin": st.sampled_from(["mac", "spec022", "acp", "agentcanvas", "x"]),
        "filled": st.lists(places, max_size=6),
        "header": held_values,
        "body": st.dictionaries(st.sampled_from(mutations.WORDS), mutations.values, max_size=3),
        "carried": st.booleans(),
        "fragments": st.lists(
            st.fixed_dictionaries({"pointer": places, "json": mutations.values}), max_size=3
        ),
        "signature": strategies.texts,
        "verified_by": strategies.texts,
    },
)


@st.composite
def forgeries(draw: st.DrawFn) -> Json:
    """A message with an extension that says something else: made up, or an honest one altered."""
    message = mutations.copy(draw(mutations.any_message))
    place = message
    if "type" in message:
        place = message.setdefault("metadata", {})
    honest = place.get(KEY, {})
    made_up: Json = dict(draw(forged_extensions))
    place[KEY] = {**honest, **made_up}
    if honest and draw(st.booleans()):
        place[KEY]["header"] = {**honest.get("header", {}), **made_up.get("header", {})}
    if draw(st.booleans()):
        message = draw(mutations.mutated(st.just(message)))
    return dict(message)


def without_lost_fields(message: Json, reading: Reading) -> Json:
    """The visible message but for unknown fields, which a translation has no place for."""
    seen = visible(message)
    unknown = {Rule.UNKNOWN_FIELD, Rule.EXTENSION}
    for breach in reading.breaches:
        path = [
            step.replace("~1", "/").replace("~0", "~") for step in breach.pointer.split("/")[1:]
        ]
        if breach.rule not in unknown or KEY in path[:2]:
            continue
        place: Any = seen
        for step in path[:-1]:
            place = place[int(step)] if isinstance(place, list) else place[step]
        del place[path[-1]]
    if seen.get("metadata") == {}:
        del seen["metadata"]
    return seen


@given(forgeries())
def test_whatever_an_extension_claims_the_visible_message_stays(message: Json) -> None:
    data = packed(message)
    try:
        reading = decode(data)
    except ProtocolError:
        return
    home = detect(data)
    envelope = reading.envelope
    expected = visible(message)
    if envelope.origin != home:
        expected = without_lost_fields(message, reading)
        # It seals this form of the message and says nothing in it.
        expected.pop("signature", None)
    assert shown(envelope, home) == expected
    for abroad in DialectName:
        there = DIALECTS[abroad].decode(encode(envelope, abroad)).envelope
        assert shown(there, home) == expected
