"""What a worker used, handed in and did, as values every layer can name (D40).

``Usage``, ``BlobRef`` and ``ProposalRef`` travel inside messages and events; ``TranscriptEvent`` is
layer C of what a person can see (V1), one JSON line each. An absent field is ``UNSET``, never null,
and names are camelCase on the wire.

Reading a CLI's own stream into these events belongs to the runtimes, keeping them to ``store``.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from agentcanvas.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

Tokens = Annotated[int, Meta(ge=0)]
Milliseconds = Annotated[int, Meta(ge=0, description="milliseconds since the epoch")]
# `$` alone would let a line break at the end pass.
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
MediaType = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*$(?!\n)")]
Name = Annotated[str, Meta(min_length=1)]


class Usage(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a turn cost, as far as it is known (V2); unknown is absent, not zero."""

    input_tokens: Tokens | UnsetType = UNSET
    output_tokens: Tokens | UnsetType = UNSET
    cache_read: Tokens | UnsetType = UNSET
    cache_write: Tokens | UnsetType = UNSET
    model: str | UnsetType = UNSET
    cost: Annotated[float, Meta(ge=0, description="US dollars")] | UnsetType = UNSET
    estimated: Annotated[bool, Meta(description="the cost is by a price table")] | UnsetType = UNSET


class BlobRef(Struct, frozen=True, kw_only=True):
    """Content by its hash (D35)."""

    sha256: Sha256
    size: Annotated[int, Meta(ge=0, description="bytes")]
    media: MediaType

    @classmethod
    def of(cls, content: bytes, media: str) -> BlobRef:
        """The reference under which ``content`` is found."""
        return cls(sha256=hashlib.sha256(content).hexdigest(), size=len(content), media=media)


class ChangeStatus(StrEnum):
    """How a file differs from the base (S4); a rename is deleted + added (D14)."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedFile(Struct, frozen=True):
    """One file of a proposal."""

    path: Name
    status: ChangeStatus


class ProposalRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """Names a proposal and the generation it was made on (D6, D7), without its content.

    ``patch`` is a blob, or a path relative to the sandbox such as ``proposal/changes.patch``.
    """

    run_id: Name
    agent_id: Name
    proposal_id: Name
    generation: Annotated[int, Meta(ge=0)]
    patch: BlobRef | Name
    changed_files: tuple[ChangedFile, ...] = ()


class FailureClass(StrEnum):
    """Why a worker's turn failed, coarse enough to decide what to do next."""

    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    MODEL_NOT_FOUND = "model_not_found"
    SERVER = "server"
    NETWORK = "network"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    TURN_LIMIT = "turn_limit"
    HANDED_OFF = "handed_off"
    DENIED = "denied"
    CANCELLED = "cancelled"
    CRASH = "crash"
    UNKNOWN = "unknown"


class _Event(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """Common to all: when (ms since the epoch) and at which place in the transcript."""

    ts: Milliseconds
    seq: Annotated[int, Meta(ge=0)]


class TextEvent(_Event, frozen=True, kw_only=True, tag="text"):
    """Words for whoever asked."""

    text: str


class ThinkingEvent(_Event, frozen=True, kw_only=True, tag="thinking"):
    """Words the worker wrote to itself."""

    text: str


class ToolCallEvent(_Event, frozen=True, kw_only=True, tag="tool_call"):
    """A tool was started; ``input`` is kept as the JSON it came in."""

    name: str
    call_id: str | UnsetType = UNSET
    input: Raw | UnsetType = UNSET


class ToolResultEvent(_Event, frozen=True, kw_only=True, tag="tool_result"):
    """What the tool gave back; ``exit_code`` where it was a command."""

    output: str | BlobRef
    call_id: str | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET
    failed: bool = False


class FileChangeEvent(_Event, frozen=True, kw_only=True, tag="file_change"):
    """A change the worker reported itself; the proposal's diff is what counts."""

    path: str
    status: ChangeStatus


class UsageEvent(_Event, frozen=True, kw_only=True, tag="usage"):
    """Tokens and money, as the worker counts them."""

    usage: Usage


class SessionEvent(_Event, frozen=True, kw_only=True, tag="session"):
    """The worker's own session id, needed to continue it for a revision (D18)."""

    session_id: str
    model: str | UnsetType = UNSET


class RetryEvent(_Event, frozen=True, kw_only=True, tag="retry"):
    """The worker tries a model call again by itself."""

    attempt: Annotated[int, Meta(ge=1)]
    reason: str
    wait_ms: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


class ErrorEvent(_Event, frozen=True, kw_only=True, rename={"error_class": "class"}, tag="error"):
    """The turn, or a part of it, failed."""

    error_class: FailureClass
    message: str


class ResultEvent(_Event, frozen=True, kw_only=True, tag="result"):
    """The turn's final words; the last event of a turn that ended by itself."""

    text: str
    ok: bool = True


class NetworkEvent(_Event, frozen=True, kw_only=True, tag="network"):
    """A request that its processes made through the egress proxy (D11).

    A path or a query could hold a secret, so neither is here. ``reason`` says why it was refused
    or failed.
    """

    method: str
    host: str
    port: Annotated[int, Meta(ge=0)]
    allowed: bool
    status: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    sent: Annotated[int, Meta(ge=0, description="bytes")] = 0
    received: Annotated[int, Meta(ge=0, description="bytes")] = 0
    ms: Annotated[int, Meta(ge=0)] = 0
    reason: str = ""


class RawEvent(_Event, frozen=True, kw_only=True, tag="raw"):
    """A line of the worker's output that no reader understood, kept as it was."""

    line: str


TranscriptEvent = (
    TextEvent
    | ThinkingEvent
    | ToolCallEvent
    | ToolResultEvent
    | FileChangeEvent
    | UsageEvent
    | SessionEvent
    | RetryEvent
    | ErrorEvent
    | ResultEvent
    | NetworkEvent
    | RawEvent
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[TranscriptEvent] = msgspec.json.Decoder(TranscriptEvent)


def encode_jsonl(events: Iterable[TranscriptEvent]) -> bytes:
    """One line an event, each ended by a newline."""
    return b"".join(_one_line(_encoder.encode(event)) + b"\n" for event in events)


def _one_line(encoded: bytes) -> bytes:
    # Only a raw tool input can bring line breaks of its own; in strings they are escaped.
    return msgspec.json.format(encoded, indent=-1) if b"\n" in encoded else encoded


def decode_jsonl(lines: bytes) -> tuple[TranscriptEvent, ...]:
    """The events of a transcript; an error names the line that is not one.

    Blank lines are skipped.
    """
    return tuple(
        _decode_line(number, line)
        for number, line in enumerate(lines.split(b"\n"), start=1)
        if line.strip()
    )


def _decode_line(number: int, line: bytes) -> TranscriptEvent:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise ProtocolError(
            f"Line {number} of the transcript is not a transcript event: {wrong}.",
            pointer=f"/{number - 1}",
        ) from None
