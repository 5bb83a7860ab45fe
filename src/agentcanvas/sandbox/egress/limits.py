"""How much may pass through the egress proxy, as one value."""

from __future__ import annotations

import msgspec


class EgressLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one open door, so of one turn; seconds and bytes."""

    head_bytes: int = 64 * 1024
    head_s: float = 15.0
    """For a whole head to come, from the first moment on: dripping bytes do not prolong it."""
    keep_alive_s: float = 120.0
    """For the next request on a connection; then it is closed without a word."""
    connect_s: float = 20.0
    idle_s: float = 600.0
    """Without a byte in either direction; a model may think for minutes."""
    half_open_s: float = 30.0
    """The same, once one side has said its last."""
    connections: int = 128
    """At one time."""
    requests: int = 100_000
    sent_bytes: int = 2 * 1024**3
    """To outside, in all."""
    received_bytes: int = 20 * 1024**3
