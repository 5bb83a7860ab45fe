"""Over plain HTTP: the agent's half of the door ``/api/v1/messages``.

For those whom a proxy keeps from a WebSocket. Mail is asked for by calls that wait; all else is as
over a WebSocket, and coming back after a break is left to ``reconnecting``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import httpx
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agentcanvas.errors import Disconnected, PermissionDenied, ValidationError
from agentcanvas.hub import frames
from agentcanvas.hub.broker import Parcel, Receipt, Settlement
from agentcanvas.hub.client import Transport
from agentcanvas.hub.doors import check_size
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.reconnecting import Dial
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import DIALECTS
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.limits import MessageLimits
from agentcanvas.protocol.wire_errors import from_body

T = TypeVar("T")

MESSAGES = "/api/v1/messages"
_LIMITS = MessageLimits()
_MOST = 64
_WAIT_S = 25.0
"""Shorter than the patience of most proxies."""

_ANSWERS_WITHIN_S = 15.0
_ERROR = 400


class _Taken(Struct, frozen=True):
    messages: tuple[Raw, ...]


class _Settled(Struct, frozen=True):
    news: int


def dialing(
    url: str,
    agent: str,
    token: str,
    *,
    instance: str = "",
    capabilities: Iterable[str] = (),
    window: int = 64,
    dialect: DialectName = DialectName.MAC,
) -> Dial:
    """Return a way to connect to the hub at ``http://host:port``, as often as it is needed."""
    able = list(capabilities)

    async def dial() -> Transport:
        try:
            client = httpx.AsyncClient(
                base_url=url.rstrip("/"),
                headers={"authorization": f"Bearer {token}"},
                params={"agent_id": agent},
                timeout=_ANSWERS_WITHIN_S,
                trust_env=False,
            )
        except httpx.InvalidURL:
            raise ValidationError(
                f"{url} is no address of a hub; write http://host:port."
            ) from None
        order = {
            "most": min(window, _MOST),
            "window": window,
            "instance": instance,
            "capabilities": able,
            "dialect": dialect.value,
        }
        link = HttpLink(client, order)
        try:
            await link.begin()
        except BaseException:
            await client.aclose()
            raise
        return link

    return dial


class HttpLink:
    """One connection (``client.Transport``), as far as there is one."""

    def __init__(self, client: httpx.AsyncClient, order: dict[str, Any]) -> None:
        self._client = client
        self._order = order
        self._dialect = DIALECTS[DialectName(order["dialect"])]
        self._parcels: deque[Parcel] = deque()
        self._closed = False

    async def begin(self) -> None:
        """Say who we are; what waits already may come with the answer."""
        self._parcels.extend(await self._take(wait_s=0.0))

    async def send(
        self,
        envelope: Envelope,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Sequence[int] = (),
    ) -> Receipt:
        """Hand a message over, and take parcels over with it; both are safe when this returns."""
        if on_behalf_of is not UNSET:
            raise PermissionDenied("Only the engine, in the hub's own process, relays for others.")
        if not taking:
            return await self._send(envelope)
        news = asyncio.ensure_future(self.settle(taking, Settlement.TAKEN))
        try:
            return await self._send(envelope)
        finally:
            await news

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        while not self._parcels:
            self._parcels.extend(await self._take(wait_s=_WAIT_S))
        return [self._parcels.popleft() for _ in range(min(most, len(self._parcels)))]

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news."""
        word = frames.write_word(numbers, how)
        query = {"instance": self._order["instance"]}
        return (await self._ask("/ack", word, _Settled, query=query)).news

    async def close(self) -> None:
        """End the connection, with a goodbye if the hub still hears us."""
        self._closed = True
        with suppress(httpx.HTTPError):
            await self._client.delete(
                f"{MESSAGES}/take", params={"instance": self._order["instance"]}
            )
        await self._client.aclose()

    async def _send(self, envelope: Envelope) -> Receipt:
        data = self._dialect.encode(envelope)
        check_size(len(data), _LIMITS)
        return await self._ask("", data, Receipt)

    async def _take(self, wait_s: float) -> list[Parcel]:
        order = msgspec.json.encode({**self._order, "wait": wait_s})
        taken = await self._ask("/take", order, _Taken, patience_s=wait_s)
        return [self._parcel(bytes(each)) for each in taken.messages]

    def _parcel(self, frame: bytes) -> Parcel:
        found = frames.read_delivered(frame)
        if found is None:
            raise Disconnected("The hub delivers what nobody understands.")
        message, delivery = found
        return Parcel(
            delivery.number,
            delivery.session,
            self._dialect.decode(message).envelope,
            delivery.redelivered,
            delivery.tries,
            delivery.on_behalf_of,
        )

    async def _ask(
        self,
        path: str,
        body: bytes,
        kind: type[T],
        *,
        query: dict[str, str] | None = None,
        patience_s: float = 0.0,
    ) -> T:
        if self._closed:
            raise Disconnected("The connection is closed.")
        try:
            answer = await self._client.post(
                MESSAGES + path,
                content=body,
                params=query,
                timeout=_ANSWERS_WITHIN_S + patience_s,
            )
        except (httpx.HTTPError, RuntimeError) as failed:  # the latter: closed meanwhile
            where = self._client.base_url
            raise Disconnected(
                f"The hub at {where} cannot be reached: {str(failed) or type(failed).__name__}."
            ) from None
        if answer.status_code >= _ERROR:
            raise from_body(answer.content)
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError:
            raise Disconnected(f"{self._client.base_url} does not answer as a hub does.") from None
