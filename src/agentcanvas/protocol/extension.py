"""What a dialect cannot say, carried along so that nothing is lost (D33, C7).

The extension never overrides what is visible: it is believed only as far as the message it
describes, spelled again in this dialect, gives exactly the visible fields.
"""

from __future__ import annotations

from msgspec import UNSET

from agentcanvas.protocol.envelope import AgentRef, Fragment, Priority, RetryPolicy, Security
from agentcanvas.protocol.kinds import Count, Kind
from agentcanvas.protocol.values import JsonObject, Maybe, NotNegative, Value

KEY = "x_agentcanvas"


class Held(Value, frozen=True):
    """Header fields that the visible message has no place for."""

    sender: Maybe[AgentRef] = UNSET
    recipient: Maybe[AgentRef] = UNSET
    session: Maybe[str] = UNSET
    sequence: Maybe[Count] = UNSET
    priority: Maybe[Priority] = UNSET
    correlation_id: Maybe[str] = UNSET
    reply_to: Maybe[str] = UNSET
    timeout_ms: Maybe[NotNegative] = UNSET
    retry: Maybe[RetryPolicy] = UNSET
    security: Maybe[Security] = UNSET
    trace_level: Maybe[int] = UNSET
    parent_task_id: Maybe[str] = UNSET
    signature: Maybe[str] = UNSET
    encrypted: Maybe[bool] = UNSET
    encryption_algorithm: Maybe[str] = UNSET


NOTHING_HELD = Held()


class Extension(Value, frozen=True):
    """``metadata.x_agentcanvas`` in MAC, ``x_agentcanvas`` at the top elsewhere.

    ``body`` holds body fields without a visible place, unless ``carried`` says that they stand in
    the payload's own free-form field. ``filled`` points at visible values that were invented.
    ``signature`` is this message's own, in the dialects that have no field for one.
    """

    kind: Maybe[Kind] = UNSET
    origin: Maybe[str] = UNSET
    filled: Maybe[tuple[str, ...]] = UNSET
    header: Maybe[Held] = UNSET
    body: Maybe[JsonObject] = UNSET
    carried: Maybe[bool] = UNSET
    fragments: Maybe[tuple[Fragment, ...]] = UNSET
    signature: Maybe[str] = UNSET
    verified_by: Maybe[str] = UNSET
