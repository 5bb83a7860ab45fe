"""What the egress proxy tells about each request: enough for a transcript, nothing secret."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from agentcanvas.errors import EgressRefused
from agentcanvas.sandbox.egress.flow import Allowance, Meter


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, allowed or refused; a path or a query could hold a secret, so neither is here.

    ``status`` is the answer's, 0 when there was none; ``reason`` says why it was refused or failed.
    """

    method: str
    host: str
    port: int
    allowed: bool
    status: int = 0
    sent: int = 0
    received: int = 0
    ms: int = 0
    reason: str = ""


Tell = Callable[[Request], None]


def defect_of(error: Exception) -> EgressRefused:
    """Say where something went wrong that should not; its own words could hold a secret."""
    *_, last = traceback.extract_tb(error.__traceback__)
    where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    return EgressRefused(f"The proxy failed at this, which is a defect of it: {where}", status=500)


class Telling:
    """Gathers what is told of a request; tells it once, at its end."""

    def __init__(self, tell: Tell, allowance: Allowance) -> None:
        self._tell = tell
        self._begun = anyio.current_time()
        self._method = ""
        self._host, self._port = "", 0
        self._allowed = False
        self.meter = Meter(allowance)
        self._status = 0
        self._reason = ""
        self._is_told = False
        self.has_begun = False

    def ask(self, method: str) -> None:
        """Note that a request has come."""
        self._method = method

    def name(self, host: str, port: int) -> None:
        """Note where it wants to go."""
        self._host, self._port = host, port

    def allow(self) -> None:
        """Note that it may go there."""
        self._allowed = True

    def begin(self, status: int) -> None:
        """Note that the answer has begun: from now on there is no other."""
        self._status, self.has_begun = status, True

    def refuse(self, refusal: EgressRefused) -> None:
        """Tell why it was refused, or what went wrong: now, because hearing of it may take long."""
        self._allowed = self._allowed and refusal.status not in {401, 403, 407}
        self._status, self._reason = self._status or refusal.status, str(refusal)
        self.close()

    def close(self) -> None:
        """Tell it, once; a connection that asked for nothing is not worth a word."""
        if self._is_told or not (self._method or self._reason):
            return
        self._is_told = True
        self._tell(
            Request(
                method=self._method,
                host=self._host,
                port=self._port,
                allowed=self._allowed,
                status=self._status,
                sent=self.meter.sent,
                received=self.meter.received,
                ms=round((anyio.current_time() - self._begun) * 1000),
                reason=self._reason,
            )
        )
