"""``connect``: a voice in the hub for whoever wants to ask, over any transport, that reconnects."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import AgentCanvasError, Disconnected
from agentcanvas.hub.background import beside
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.conversations import Client
from agentcanvas.hub.reconnecting import BackOff, Dial, Reconnecting
from agentcanvas.hub.recovery import Asking
from agentcanvas.hub.ways import way_to
from agentcanvas.protocol.limits import Limits

_DEFAULT_BACK_OFF = BackOff()
_DEFAULT_LIMITS = Limits()
_log = logging.getLogger(__name__)


OnMail: TypeAlias = Callable[[Delivery], Awaitable[object]]


async def drop(delivery: Delivery) -> None:
    """Take a message over and forget it."""
    await delivery.ack()


@asynccontextmanager
async def connect(
    hub: Dial | str,
    agent: str,
    *,
    token: str | None = None,
    clock: Clock | None = None,
    session: str | UnsetType = UNSET,
    wrap: Callable[[Connection], Asking] | None = None,
    on_mail: OnMail = drop,
    back_off: BackOff = _DEFAULT_BACK_OFF,
    limits: Limits = _DEFAULT_LIMITS,
) -> AsyncIterator[Client]:
    """Speak as ``agent`` until the block ends; ``wrap`` adds habits of ``recovery``.

    ``hub`` is an address such as ``ws://127.0.0.1:7718``, with a token, or a ``Dial``.

    ``on_mail`` gets whatever answers no request of ours: broadcasts, tasks, answers that are late.
    It has to acknowledge what it takes. By default such mail is dropped, since mail that nobody
    looks at would in the end keep answers from coming through.
    """
    clock = clock or SystemClock()
    way = Reconnecting(way_to(hub, agent, token), clock, back_off=back_off)
    await way.open()
    async with Connection.over(way, clock) as connection:
        asking = wrap(connection) if wrap is not None else None
        async with beside(lambda: _sort_mail(connection, on_mail)):
            yield Client(connection, agent, clock, session=session, asking=asking, limits=limits)


async def _sort_mail(connection: Connection, on_mail: OnMail) -> None:
    with suppress(Disconnected):  # whoever asks next is told
        async for delivery in connection.receive():
            try:
                await on_mail(delivery)
            except Disconnected:
                raise
            except AgentCanvasError as refusal:
                _log.warning("mail %s was not taken: %s", delivery.envelope.id, refusal.code)
