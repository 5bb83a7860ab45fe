"""Every default of L1 and of the decisions, and the document's own configuration block."""

from __future__ import annotations

from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentcanvas.protocol.limits import (
    CLI_ORDER,
    Acp,
    AcpRetry,
    AcpTimeouts,
    BlobLimits,
    CliTurnLimits,
    HeartbeatLimits,
    Limits,
    MessageLimits,
    Priority,
    contradictions,
)

pytestmark = pytest.mark.req("L1")

ACP_CONFIG = Path(__file__).parent / "examples" / "acp_config.yaml"


def test_the_defaults_are_those_of_the_documents_and_decisions() -> None:
    assert msgspec.to_builtins(Limits()) == {
        "message": {"size_bytes": 1_048_576, "depth": 64},
        "queue": {"messages": 10_000},
        "heartbeat": {"interval_s": 30, "unavailable_s": 90},
        "task": {"timeout_s": 300, "progress_after_s": 120, "progress_every_s": 30},
        "delivery": {"retries": 3},
        "replay": {"window_s": 300},
        "blob": {"inline_bytes": 65_536, "size_bytes": 67_108_864, "quota_bytes": 268_435_456},
        "seal": {"signatures": "accept", "encryption": "accept"},
        "broker": {"rate_per_min": 10},
        "breaker": {"failures": 5, "half_open_after_ms": 30_000},
        "callback": {"hosts": "localhost 127.0.0.1 [::1]", "attempts": 4, "timeout_s": 10},
        "cli_turn": {"timeout_s": 1_800, "silent_s": 300, "retries": 2},
        "cli": {"order": CLI_ORDER},
        "acp": YAML(typ="safe", pure=True).load(ACP_CONFIG.read_text())["acp"],
    }


def test_the_acp_block_of_the_document_is_read_and_written_as_it_stands() -> None:
    document = YAML(typ="safe", pure=True).load(ACP_CONFIG.read_text())
    limits = msgspec.convert(document, Limits)
    assert limits.acp == Acp()
    assert msgspec.to_builtins(limits)["acp"] == document["acp"]


@pytest.mark.parametrize(
    ("priority", "timeout_ms"),
    [("low", 60_000), ("medium", 30_000), ("high", 15_000), ("critical", 15_000)],
)
def test_a_command_times_out_by_its_priority_and_critical_counts_as_high(
    priority: Priority, timeout_ms: int
) -> None:
    assert AcpTimeouts().for_priority_ms(priority) == timeout_ms


def test_the_pause_between_attempts_doubles() -> None:
    assert [AcpRetry().pause_ms(failed) for failed in (1, 2, 3)] == [1_000, 2_000, 4_000]


@given(
    retry=st.builds(
        AcpRetry,
        backoff_ms=st.integers(0, 86_400_000),
        backoff_multiplier=st.floats(1, 100),
    ),
    failed=st.integers(1, 100),
)
def test_a_pause_never_shrinks_and_never_exceeds_a_day(retry: AcpRetry, failed: int) -> None:
    pause = retry.pause_ms(failed)
    assert pause <= retry.pause_ms(failed + 1) <= 86_400_000


def test_units_are_in_the_names_of_every_duration_and_size() -> None:
    def described(schema: dict[str, object], name: str) -> None:
        unit = schema.get("description")
        ends = {"milliseconds": "_ms", "seconds": "_s", "bytes": "_bytes"}
        if isinstance(unit, str) and unit in ends:
            assert name.endswith(ends[unit]), name

    def walk(struct: type[msgspec.Struct]) -> None:
        for field in msgspec.structs.fields(struct):
            if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
                walk(field.type)
            else:
                described(msgspec.json.schema(field.type), field.name)

    walk(Limits)


@pytest.mark.parametrize(
    "document",
    [
        {"message": {"size_bytes": 0}},
        {"message": {"depth": 7}},
        {"queue": {"messages": 0}},
        {"heartbeat": {"interval_s": 3_601}},
        {"delivery": {"retries": -1}},
        {"acp": {"retry": {"backoff_multiplier": 0.5}}},
        {"acp": {"version": "1.0"}},
        {"acp": {"security": {"approval_threshold": "urgent"}}},
        {"acp": {"timeouts": {"default_ms": 1_000}}},
        {"heartbeats": {}},
    ],
)
def test_the_types_and_their_schema_refuse_the_same_documents(document: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, Limits)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, msgspec.json.schema(Limits))
    jsonschema.validate(msgspec.to_builtins(Limits()), msgspec.json.schema(Limits))


def test_the_defaults_do_not_contradict_each_other() -> None:
    assert contradictions(Limits()) == ()


@pytest.mark.parametrize(
    ("limits", "key", "against"),
    [
        (
            Limits(heartbeat=HeartbeatLimits(interval_s=90)),
            "heartbeat.unavailable_s",
            "heartbeat.interval_s",
        ),
        (
            Limits(cli_turn=CliTurnLimits(timeout_s=299)),
            "cli_turn.silent_s",
            "cli_turn.timeout_s",
        ),
        (
            Limits(message=MessageLimits(size_bytes=131_071)),
            "blob.inline_bytes",
            "message.size_bytes",
        ),
    ],
)
def test_limits_that_defeat_each_other_are_named(limits: Limits, key: str, against: str) -> None:
    (found,) = contradictions(limits)
    assert (found.key, found.against) == (key, against)
    assert against in found.sentence


def test_values_just_inside_a_contradiction_are_fine() -> None:
    assert not contradictions(
        Limits(
            heartbeat=HeartbeatLimits(interval_s=89),
            cli_turn=CliTurnLimits(timeout_s=300),
            message=MessageLimits(size_bytes=131_072),
            blob=BlobLimits(inline_bytes=65_536),
        )
    )


def test_limits_cannot_be_altered() -> None:
    with pytest.raises(AttributeError):
        Limits().queue.messages = 1  # type: ignore[misc]  # that it is refused is the point
