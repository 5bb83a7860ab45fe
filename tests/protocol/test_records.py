"""Usage, references and transcripts: their names on the wire, and that nothing is lost there."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol.records import (
    BlobRef,
    ChangedFile,
    ChangeStatus,
    ErrorEvent,
    FailureClass,
    FileChangeEvent,
    NetworkEvent,
    ProposalRef,
    RawEvent,
    ResultEvent,
    RetryEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultEvent,
    TranscriptEvent,
    Usage,
    UsageEvent,
    decode_jsonl,
    encode_jsonl,
)

pytestmark = pytest.mark.req("D40")


def on_the_wire(record: msgspec.Struct) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(record), type=dict[str, object])


BLOB = BlobRef.of(b"hello", "text/plain")


def test_usage_is_camel_case_and_says_only_what_is_known() -> None:
    usage = Usage(input_tokens=10, cache_read=3, model="m", cost=0.5)
    assert msgspec.json.encode(usage) == b'{"inputTokens":10,"cacheRead":3,"model":"m","cost":0.5}'
    assert msgspec.json.encode(Usage()) == b"{}"
    full = {
        "inputTokens": 1,
        "outputTokens": 2,
        "cacheRead": 3,
        "cacheWrite": 4,
        "model": "m",
        "cost": 0.1,
    }
    assert msgspec.to_builtins(msgspec.convert(full, Usage)) == full


@pytest.mark.parametrize("field", ["inputTokens", "cost", "model"])
def test_null_is_not_another_way_to_be_absent(field: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({field: None}, Usage)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"outputTokens": -1}, Usage)


def test_a_blob_is_named_by_its_hash_size_and_media_type() -> None:
    assert hashlib.sha256(b"hello").hexdigest() == BLOB.sha256
    assert msgspec.to_builtins(BLOB) == {
        "sha256": BLOB.sha256,
        "size": 5,
        "media": "text/plain",
    }
    assert msgspec.json.decode(msgspec.json.encode(BLOB), type=BlobRef) == BLOB


@pytest.mark.parametrize(
    "wrong",
    [
        {"sha256": "ABC"},
        {"sha256": "../../etc/passwd"},
        {"sha256": "a" * 64 + "\n"},
        {"sha256": "A" * 64},
        {"size": -1},
        {"media": "png"},
        {"media": "image/png\nx"},
        {"media": "image/png\n"},
    ],
)
def test_a_malformed_blob_reference_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**msgspec.to_builtins(BLOB), **wrong}, BlobRef)


@pytest.mark.parametrize("patch", [BLOB, "proposal/changes.patch"])
def test_a_proposal_is_named_with_its_generation_and_changed_files(patch: BlobRef | str) -> None:
    ref = ProposalRef(
        run_id="run_20260219_100000",
        agent_id="custom:coder-1",
        proposal_id="p-1",
        generation=2,
        patch=patch,
        changed_files=(
            ChangedFile("src/foo.ts", ChangeStatus.MODIFIED),
            ChangedFile("src/bar.ts", ChangeStatus.ADDED),
        ),
    )
    assert on_the_wire(ref) == {
        "runId": "run_20260219_100000",
        "agentId": "custom:coder-1",
        "proposalId": "p-1",
        "generation": 2,
        "patch": msgspec.to_builtins(patch),
        "changedFiles": [
            {"path": "src/foo.ts", "status": "modified"},
            {"path": "src/bar.ts", "status": "added"},
        ],
    }
    assert msgspec.json.decode(msgspec.json.encode(ref), type=ProposalRef) == ref


EVENTS: tuple[TranscriptEvent, ...] = (
    SessionEvent(ts=1_771_495_201_000, seq=0, session_id="s-1", model="m"),
    ThinkingEvent(ts=1_771_495_201_001, seq=1, text="Where are the routes?"),
    ToolCallEvent(ts=2, seq=2, name="Bash", call_id="c1", input=Raw(b'{"command":"ls"}')),
    ToolResultEvent(ts=3, seq=3, output="a.py\nb.py", call_id="c1", exit_code=0),
    ToolResultEvent(ts=4, seq=4, output=BLOB, exit_code=2, failed=True),
    FileChangeEvent(ts=5, seq=5, path="a.py", status=ChangeStatus.DELETED),
    RetryEvent(ts=6, seq=6, attempt=1, reason="overloaded", wait_ms=500),
    UsageEvent(ts=7, seq=7, usage=Usage(output_tokens=5)),
    ErrorEvent(ts=8, seq=8, error_class=FailureClass.RATE_LIMIT, message="429"),
    NetworkEvent(ts=9, seq=9, method="CONNECT", host="x.org", port=443, allowed=False, reason="no"),
    RawEvent(ts=9, seq=9, line="Reconnecting… 1/3"),
    TextEvent(ts=10, seq=10, text="Done: \u2028 é 😀\r\n"),
    ResultEvent(ts=11, seq=11, text="Done", ok=False),
)


def test_a_transcript_is_one_json_line_an_event_and_is_read_back() -> None:
    lines = encode_jsonl(EVENTS)
    assert lines.count(b"\n") == len(EVENTS)
    assert lines.endswith(b"\n")
    assert b"null" not in lines
    assert encode_jsonl(decode_jsonl(lines)) == lines
    assert [type(event) for event in decode_jsonl(lines)] == [type(event) for event in EVENTS]
    assert decode_jsonl(b"\n" + lines.replace(b"\n", b"\r\n")) == decode_jsonl(lines)


def test_every_kind_of_event_has_its_own_tag_and_all_carry_time_and_place() -> None:
    lines = [on_the_wire(event) for event in EVENTS]
    tags = [line["type"] for line in lines]
    assert set(tags) == {
        *("text", "thinking", "tool_call", "tool_result", "file_change", "usage"),
        *("session", "retry", "error", "result", "network", "raw"),
    }
    assert all({"ts", "seq"} <= set(line) for line in lines)
    assert lines[8]["class"] == "rate_limit"
    assert lines[3]["exitCode"] == 0


def test_a_tool_input_with_line_breaks_stays_on_one_line() -> None:
    pretty = Raw(b'{\n  "a": "x\\ny",\r\n  "b": [1,\n2]\n}')
    lines = encode_jsonl([ToolCallEvent(ts=1, seq=0, name="t", input=pretty)])
    assert lines.count(b"\n") == 1
    assert b"\r" not in lines
    (event,) = decode_jsonl(lines)
    assert isinstance(event, ToolCallEvent)
    assert event.input is not UNSET
    assert msgspec.json.decode(event.input) == {"a": "x\ny", "b": [1, 2]}


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b'{"type":"text","ts":1,"seq":0}',
        b'{"type":"dance","ts":1,"seq":0}',
        b'{"type":"text","ts":null,"seq":0,"text":"x"}',
        b'{"type":"text","ts":-1,"seq":0,"text":"x"}',
        b'{"type":"text","ts":1,"seq":0,"text":"x"',
        b'\xff{"type":"text"}',
        b"[]",
    ],
)
def test_a_line_that_is_no_event_is_refused_by_its_number(line: bytes) -> None:
    good = encode_jsonl(EVENTS[:2])
    with pytest.raises(ProtocolError, match="Line 3 of the transcript") as caught:
        decode_jsonl(good + line + b"\n" + good)
    assert caught.value.pointer == "/2"


@given(
    texts=st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]))),
    seq=st.integers(0, 2**53),
)
def test_any_text_survives_a_transcript(texts: list[str], seq: int) -> None:
    events = tuple(RawEvent(ts=0, seq=seq, line=text) for text in texts)
    assert decode_jsonl(encode_jsonl(events)) == events


def test_the_records_can_be_described_as_json_schema() -> None:
    (_, definitions) = msgspec.json.schema_components([TranscriptEvent, ProposalRef])
    assert {"TextEvent", "RawEvent", "ProposalRef", "BlobRef", "Usage"} <= set(definitions)
    assert definitions["BlobRef"]["properties"]["sha256"]["pattern"]
