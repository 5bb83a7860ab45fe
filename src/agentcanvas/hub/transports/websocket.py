"""Over a WebSocket: the agent's half of the door ``/agent/ws``.

A connection is one ``Transport``; coming back after it broke is left to ``reconnecting``. Messages
go over the wire in one of the documented dialects, and nothing of them is lost on the way (M1).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import UNSET, UnsetType
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from agentcanvas.errors import (
    AgentCanvasError,
    Disconnected,
    PermissionDenied,
    Replaced,
    ValidationError,
)
from agentcanvas.hub import frames
from agentcanvas.hub.broker import Parcel, Receipt, Settlement
from agentcanvas.hub.client import Transport
from agentcanvas.hub.doors import check_size
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.frames import FromHub
from agentcanvas.hub.reconnecting import Dial
from agentcanvas.protocol.dialect import Dialect, DialectName
from agentcanvas.protocol.dialects import DIALECTS
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.limits import MessageLimits
from agentcanvas.protocol.wire_errors import about_what, from_body

_LIMITS = MessageLimits()
_LARGEST_FRAME = 4 * _LIMITS.size_bytes
"""A translation may be larger than the message, and carries what the hub says about it."""

_log = logging.getLogger(__name__)
_PING_S = 20.0
_OPEN_WITHIN_S = 10.0
_WORDS_OF_HUB = (b'{"receipts":', b'{"settled":')


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
    """Return a way to connect to the hub at ``ws://host:port``, as often as it is needed."""
    query = {
        "agent_id": agent,
        "instance": instance,
        "capabilities": ",".join(capabilities),
        "window": str(window),
        "dialect": dialect.value,
    }
    address = f"{url.rstrip('/').removesuffix(frames.PATH)}{frames.PATH}?{urlencode(query)}"
    headers = {"authorization": f"Bearer {token}"}

    async def dial() -> Transport:
        try:
            socket = await open_socket(
                address,
                additional_headers=headers,
                compression=None,
                max_size=_LARGEST_FRAME,
                open_timeout=_OPEN_WITHIN_S,
                ping_interval=_PING_S,
                ping_timeout=_PING_S,
                proxy=None,
            )
        except InvalidStatus as refused:
            raise _refusal(refused, url) from None
        except InvalidURI:
            raise ValidationError(f"{url} is no address of a hub; write ws://host:port.") from None
        except (OSError, InvalidHandshake) as failed:
            raise _unreachable(url, failed) from None
        return WebSocketLink(socket, DIALECTS[dialect])

    return dial


class WebSocketLink:
    """One connection (``client.Transport``)."""

    def __init__(self, socket: ClientConnection, dialect: Dialect) -> None:
        self._socket = socket
        self._dialect = dialect
        self._sent: dict[str, list[asyncio.Future[Receipt]]] = {}
        self._settling: dict[int, asyncio.Future[int]] = {}
        self._parcels: deque[Parcel] = deque()
        self._stirred = asyncio.Event()
        self._broken: Disconnected | None = None
        self._last_ref = 0
        self._reading = asyncio.create_task(self._read(), name="agentcanvas websocket")

    async def send(
        self,
        envelope: Envelope,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Sequence[int] = (),
    ) -> Receipt:
        """Hand a message over, and take parcels over with it; both are safe when this returns."""
        if not taking:
            return await self._hand_over(envelope, on_behalf_of)
        news = await self._begin_to_settle(taking, Settlement.TAKEN)
        try:
            return await self._hand_over(envelope, on_behalf_of)
        finally:
            await news

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        while not self._parcels:
            self._raise_if_broken()
            self._stirred.clear()
            await self._stirred.wait()
        return [self._parcels.popleft() for _ in range(min(most, len(self._parcels)))]

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news."""
        return await (await self._begin_to_settle(numbers, how))

    async def close(self) -> None:
        """End the connection, with a goodbye."""
        self._break(Disconnected("The connection is closed."))
        await self._socket.close()
        self._reading.cancel()

    # -- to the hub ------------------------------------------------------------------------------

    async def _hand_over(self, envelope: Envelope, on_behalf_of: OnBehalfOf | UnsetType) -> Receipt:
        if on_behalf_of is not UNSET:
            raise PermissionDenied("Only the engine, in the hub's own process, relays for others.")
        data = self._dialect.encode(envelope)
        check_size(len(data), _LIMITS)
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        waiting = self._sent.setdefault(envelope.id, [])
        waiting.append(receipt)
        try:
            await self._write(data)
            return await receipt
        finally:
            waiting.remove(receipt)
            if not waiting and self._sent.get(envelope.id) is waiting:
                del self._sent[envelope.id]

    async def _begin_to_settle(
        self, numbers: Sequence[int], how: Settlement
    ) -> asyncio.Future[int]:
        """Say it, and return what waits until it is done; nobody has to wait for that."""
        self._last_ref += 1
        ref = self._last_ref
        news: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        news.add_done_callback(lambda done: self._settled(ref, done))
        self._settling[ref] = news
        try:
            await self._write(frames.write_word(numbers, how, ref))
        except BaseException:
            news.cancel()
            raise
        return news

    def _settled(self, ref: int, done: asyncio.Future[int]) -> None:
        self._settling.pop(ref, None)
        if not done.cancelled():
            done.exception()  # seen, also when whoever asked was cancelled

    async def _write(self, frame: bytes) -> None:
        self._raise_if_broken()
        try:
            await self._socket.send(frame, text=True)
        except ConnectionClosed as closed:
            raise _ended(closed) from None

    # -- from the hub ----------------------------------------------------------------------------

    async def _read(self) -> None:
        reason = Disconnected("The connection to the hub broke.")
        try:
            while True:
                self._take(await self._socket.recv(decode=False))
        except ConnectionClosed as closed:
            reason = _ended(closed)
        except AgentCanvasError as wrong:
            reason = Disconnected(f"The hub says what nobody understands: {wrong}")
        finally:
            self._break(reason)

    def _take(self, frame: bytes) -> None:
        if frame.startswith(_WORDS_OF_HUB):
            self._take_word(frames.read_from_hub(frame))
            return
        found = frames.read_delivered(frame)
        if found is None:
            self._take_refusal(frame)
            return
        message, delivery = found
        self._parcels.append(
            Parcel(
                delivery.number,
                delivery.session,
                self._dialect.decode(message).envelope,
                delivery.redelivered,
                delivery.tries,
                delivery.on_behalf_of,
            )
        )
        self._stirred.set()

    def _take_word(self, word: FromHub) -> None:
        for receipt in word.receipts or ():
            for waiting in self._sent.get(receipt.id, ()):
                if not waiting.done():
                    waiting.set_result(receipt)
        for done in word.settled or ():
            news = self._settling.get(done.ref)
            if news is not None and not news.done():
                news.set_result(done.news)

    def _take_refusal(self, frame: bytes) -> None:
        refusal, about = from_body(frame), about_what(frame)
        waiting: list[asyncio.Future[Any]] = list(self._sent.get(about.message or "", ()))
        if about.ref is not None and about.ref in self._settling:
            waiting.append(self._settling[about.ref])
        if not waiting:  # whoever sent it has stopped waiting
            _log.info("the hub refused something: %s", refusal)
        for each in waiting:
            if not each.done():
                each.set_exception(refusal)

    # -- its end ---------------------------------------------------------------------------------

    def _break(self, reason: Disconnected) -> None:
        if self._broken is None:
            self._broken = reason
        self._stirred.set()
        waiting: list[asyncio.Future[Any]] = [each for same in self._sent.values() for each in same]
        for each in (*waiting, *self._settling.values()):
            if not each.done():
                each.set_exception(type(reason)(str(reason)))

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise type(self._broken)(str(self._broken))


def _refusal(refused: InvalidStatus, url: str) -> AgentCanvasError:
    """What the hub said instead of letting us in; it may let us in later if it only lacks room."""
    body = refused.response.body
    if not body:
        return _unreachable(url, refused)
    error = from_body(bytes(body))
    if error.recoverable:
        return Disconnected(str(error))
    return error


def _unreachable(url: str, failed: Exception) -> Disconnected:
    return Disconnected(f"The hub at {url} cannot be reached: {str(failed).rstrip('.')}.")


def _ended(closed: ConnectionClosed) -> Disconnected:
    frame = closed.rcvd
    if frame is None:
        return Disconnected("The connection to the hub broke.")
    if frame.code == frames.REPLACED:
        return Replaced(frame.reason or "Another connection has taken the place of this one.")
    reason = frame.reason or f"code {frame.code}"
    return Disconnected(f"The hub ended the connection: {reason}")
