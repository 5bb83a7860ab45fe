"""Every number AgentCanvas keeps to when nobody says otherwise (L1).

One frozen value, nested by noun. A unit is part of the field's name (``_ms``, ``_s``, ``_bytes``);
only the ``acp`` block keeps the key names of its own document on the wire, and its Python names
carry the unit instead. Ranges are part of the types, so that the exported JSON Schema has them too.

Where a value comes from (files, environment, flags) is the business of ``app.settings`` (D41).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Priority = Literal["low", "medium", "high", "critical"]

_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S
_DAY_MS = 1_000 * _DAY_S

# A bare number below `likely_unit_slip_below` is refused by the settings with a word about the
# unit: `30` where milliseconds are meant is nearly always thirty seconds.
TimeoutMs = Annotated[
    int,
    Meta(
        ge=1,
        le=_DAY_MS,
        description="milliseconds",
        extra={"likely_unit_slip_below": 1_000},
    ),
]
PauseMs = Annotated[int, Meta(ge=0, le=_DAY_MS, description="milliseconds")]
Seconds = Annotated[int, Meta(ge=1, le=_WEEK_S, description="seconds")]
BeatSeconds = Annotated[int, Meta(ge=1, le=3_600, description="seconds")]
Bytes = Annotated[int, Meta(ge=1, le=1 << 30, description="bytes")]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class MessageLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message on the wire."""

    size_bytes: Annotated[int, Meta(ge=1_024, le=1 << 30, description="bytes")] = 1_048_576
    depth: Annotated[int, Meta(ge=8, le=512, description="nested JSON levels")] = 64


class QueueLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent's inbox."""

    messages: Count = 10_000


class HeartbeatLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often an agent says it lives, and when silence means it does not."""

    interval_s: BeatSeconds = 30
    unavailable_s: Annotated[int, Meta(ge=1, le=_DAY_S, description="seconds")] = 90


class TaskLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task that names no timeout of its own (D32), and when a long one reports (H8)."""

    timeout_s: Seconds = 300
    progress_after_s: Seconds = 120
    progress_every_s: Seconds = 30


class DeliveryLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retries after the first try (C1: 1 + 3)."""

    retries: Annotated[int, Meta(ge=0, le=100)] = 3


class ReplayLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the clock of a signed message may be off (C9)."""

    window_s: Annotated[int, Meta(ge=1, le=_DAY_S, description="seconds")] = 300


class BlobLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What still travels inside a message, and how much each agent may keep by reference (D35)."""

    inline_bytes: Bytes = 65_536
    size_bytes: Bytes = 67_108_864
    quota_bytes: Bytes = 268_435_456


class SealLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of the messages of agents that come through a door (H6)."""

    signatures: Literal["off", "accept", "require"] = "accept"
    encryption: Literal["off", "accept", "require"] = "accept"


class BrokerLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The default rate limit of broker and router interactions (I5)."""

    rate_per_min: Count = 10


class BreakerLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a circuit opens, and how long before one trial call (H4, H11)."""

    failures: Count = 5
    half_open_after_ms: TimeoutMs = 30_000


CLI_ORDER = "claude codex gemini opencode qwen aider goose copilot cline kimi pi agy"


class CallbackLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom the hub calls when a task has ended that names an address (H8, C10)."""

    hosts: Annotated[str, Meta(max_length=2_000, description="names")] = "localhost 127.0.0.1 [::1]"
    attempts: Annotated[int, Meta(ge=1, le=100)] = 4
    timeout_s: Annotated[int, Meta(ge=1, le=600, description="seconds")] = 10


class CliTurnLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn of a coding CLI: in all, and without a line of output (D32).

    ``retries`` is how often it may try a model call again by itself, where it can be told.
    """

    timeout_s: Seconds = 1_800
    silent_s: Seconds = 300
    retries: Annotated[int, Meta(ge=0, le=100)] = 2


class CliChoice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which coding CLI a member gets that names none: the first of these that works."""

    order: Annotated[str, Meta(max_length=500, description="names")] = CLI_ORDER


class AcpTimeouts(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={
        "default_ms": "default",
        "low_priority_ms": "low_priority",
        "high_priority_ms": "high_priority",
    },
):
    """How long a command that names no timeout may take."""

    default_ms: TimeoutMs = 30_000
    low_priority_ms: TimeoutMs = 60_000
    high_priority_ms: TimeoutMs = 15_000

    def for_priority_ms(self, priority: Priority) -> int:
        """The timeout of a command of this priority; critical counts as high (C1)."""
        if priority in ("high", "critical"):
            return self.high_priority_ms
        return self.low_priority_ms if priority == "low" else self.default_ms


class AcpRetry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attempts of a command, the first included, and the growing pause between them."""

    max_attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    backoff_ms: PauseMs = 1_000
    backoff_multiplier: Annotated[float, Meta(ge=1, le=100)] = 2

    def pause_ms(self, failed_attempts: int) -> int:
        """How long to wait after this many attempts have failed (1 or more).

        Never longer than a day, however many attempts and whatever the multiplier.
        """
        pause = float(self.backoff_ms)
        for _ in range(failed_attempts - 1):
            pause *= self.backoff_multiplier
            if pause >= _DAY_MS:
                return _DAY_MS
        return round(pause)


class AcpSecurity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which commands need a permission, and from which priority on a person is asked (H6, C5)."""

    require_permissions: bool = True
    approval_threshold: Priority = "high"
    audit_level: Literal["detailed"] = "detailed"


class AcpPerformance(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"cache_ttl_s": "cache_ttl"},
):
    """Caching of answers, and how many commands run at once."""

    enable_caching: bool = True
    cache_ttl_s: Annotated[int, Meta(ge=0, le=_WEEK_S, description="seconds")] = 3_600
    max_parallel: Annotated[int, Meta(ge=1, le=1_000)] = 5


class Acp(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``acp`` block, to the letter of its document (L1)."""

    version: Literal["2.0"] = "2.0"
    timeouts: AcpTimeouts = AcpTimeouts()
    retry: AcpRetry = AcpRetry()
    security: AcpSecurity = AcpSecurity()
    performance: AcpPerformance = AcpPerformance()


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them; ``Limits()`` is L1 with the defaults of the decisions."""

    message: MessageLimits = MessageLimits()
    queue: QueueLimits = QueueLimits()
    heartbeat: HeartbeatLimits = HeartbeatLimits()
    task: TaskLimits = TaskLimits()
    delivery: DeliveryLimits = DeliveryLimits()
    replay: ReplayLimits = ReplayLimits()
    blob: BlobLimits = BlobLimits()
    seal: SealLimits = SealLimits()
    broker: BrokerLimits = BrokerLimits()
    breaker: BreakerLimits = BreakerLimits()
    callback: CallbackLimits = CallbackLimits()
    cli_turn: CliTurnLimits = CliTurnLimits()
    cli: CliChoice = CliChoice()
    acp: Acp = Acp()


class Contradiction(Struct, frozen=True):
    """Two values, each in range, that cannot hold together; ``key`` is the one to change."""

    key: str
    against: str
    sentence: str


def contradictions(limits: Limits) -> tuple[Contradiction, ...]:
    """Every pair of limits that defeat each other."""
    beat, turn = limits.heartbeat, limits.cli_turn
    found: list[Contradiction] = []
    if beat.unavailable_s <= beat.interval_s:
        found.append(
            Contradiction(
                "heartbeat.unavailable_s",
                "heartbeat.interval_s",
                f"{beat.unavailable_s} s is not longer than heartbeat.interval_s "
                f"({beat.interval_s} s): every agent would count as gone between two heartbeats; "
                f"use {3 * beat.interval_s} (three missed ones)",
            )
        )
    if turn.silent_s > turn.timeout_s:
        found.append(
            Contradiction(
                "cli_turn.silent_s",
                "cli_turn.timeout_s",
                f"{turn.silent_s} s is longer than cli_turn.timeout_s ({turn.timeout_s} s) "
                "and would never be reached; lower it or raise the timeout",
            )
        )
    if 2 * limits.blob.inline_bytes > limits.message.size_bytes:
        found.append(
            Contradiction(
                "blob.inline_bytes",
                "message.size_bytes",
                f"{limits.blob.inline_bytes} bytes leave no room in a message of "
                f"message.size_bytes ({limits.message.size_bytes}), since base64 adds a third; "
                f"use at most {limits.message.size_bytes // 2}",
            )
        )
    if limits.blob.size_bytes > limits.blob.quota_bytes:
        found.append(
            Contradiction(
                "blob.size_bytes",
                "blob.quota_bytes",
                f"{limits.blob.size_bytes} bytes are more than all blobs of an agent together may "
                f"have ({limits.blob.quota_bytes}); lower it or raise the quota",
            )
        )
    return tuple(found)
