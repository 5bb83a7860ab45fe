"""Bytes that pass through: counted, limited, and never waited for without end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio

from agentcanvas.errors import EgressRefused
from agentcanvas.sandbox.egress.bodies import PIECE
from agentcanvas.sandbox.egress.limits import EgressLimits


class Allowance:
    """What may still pass through one door, in all its connections."""

    def __init__(self, limits: EgressLimits) -> None:
        self._sent = limits.sent_bytes
        self._received = limits.received_bytes
        self._requests = limits.requests

    def ask(self) -> None:
        """Count a request."""
        self._requests -= 1
        if self._requests < 0:
            raise EgressRefused("This turn has made all the requests that it may", status=429)

    def send(self, count: int) -> None:
        """Count bytes that go out."""
        self._sent -= count
        if self._sent < 0:
            raise EgressRefused("This turn has sent all that it may", status=413)

    def receive(self, count: int) -> None:
        """Count bytes that come in."""
        self._received -= count
        if self._received < 0:
            raise EgressRefused("This turn has received all that it may", status=502)


class Meter:
    """What one request has moved so far; each move puts off the moment of giving up."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._scope: anyio.CancelScope | None = None
        self._patience_s = 0.0
        self.sent = 0
        self.received = 0

    def count_sent(self, count: int) -> None:
        """Count bytes that go out."""
        self.put_off()
        self.sent += count
        self._allowance.send(count)

    def count_received(self, count: int) -> None:
        """Count bytes that come in."""
        self.put_off()
        self.received += count
        self._allowance.receive(count)

    def give_up(self, scope: anyio.CancelScope, patience_s: float) -> None:
        """Cancel a scope when nothing has moved for so long."""
        self._scope, self._patience_s = scope, patience_s
        self.put_off()

    def put_off(self) -> None:
        """Take note that something has moved."""
        if self._scope:
            self._scope.deadline = anyio.current_time() + self._patience_s


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def tunnel(inside: Stream, outside: Stream, meter: Meter, limits: EgressLimits) -> None:
    """Pass bytes both ways until both sides have ended, or nothing has moved for too long."""
    trouble: Exception | None = None

    async def pass_on(source: Stream, target: Stream, count: Callable[[int], None]) -> None:
        nonlocal trouble
        try:
            while data := await source[0].read(PIECE):
                count(len(data))
                target[1].write(data)
                await target[1].drain()
            if target[1].can_write_eof():  # TLS has no half of an end
                target[1].write_eof()
            meter.give_up(scope, limits.half_open_s)
        except (OSError, EgressRefused) as error:
            trouble = error
            scope.cancel()

    with anyio.CancelScope() as scope:
        meter.give_up(scope, limits.idle_s)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on, inside, outside, meter.count_sent)
            tasks.start_soon(pass_on, outside, inside, meter.count_received)
    if trouble:
        raise trouble
