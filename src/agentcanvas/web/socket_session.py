"""One agent's WebSocket, from its first frame to its last.

What arrives in one turn of the event loop is handed to the hub together and answered together. An
agent that does not read is not written to: only what the socket's buffer takes is held for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from starlette.types import Message, Receive, Send

from agentcanvas.errors import AgentCanvasError, Disconnected, Replaced
from agentcanvas.hub import frames
from agentcanvas.hub.broker import Outcome, Parcel, Receipt, Settlement
from agentcanvas.hub.doors import Admitted
from agentcanvas.hub.frames import Done, Word
from agentcanvas.hub.hub import Link
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import encode
from agentcanvas.web.doors import Doors
from agentcanvas.web.socket_refusal import close_reason

_GOODBYES = frozenset({1000, 1001})
_GOING_AWAY, _FAILED = 1001, 1011
_MESSAGES_ON_WAY = 1024
_BYTES_ON_WAY = 4 * 1024 * 1024
"""How much of one agent may be on its way to the disk; beyond, nothing more is read from it."""

_PARCELS_AT_ONCE = 64
_BYTES_AHEAD = 512 * 1024
"""About how much is taken from the inbox before the socket has taken it."""

_log = logging.getLogger(__name__)


class SocketSession:
    """Reads, answers and delivers."""

    def __init__(
        self,
        doors: Doors,
        link: Link,
        send: Send,
        *,
        dialect: DialectName | None = None,
        acks_by_itself: bool = False,
        many_at_once: bool = False,
    ) -> None:
        self._doors = doors
        self._link = link
        self._send = send
        self._dialect = dialect
        self._acks_by_itself = acks_by_itself
        self._many_at_once = many_at_once
        self._came: list[bytes] = []
        self._handing_in = False
        self._messages_on_way = self._bytes_on_way = 0
        self._room = asyncio.Event()
        self._in_hand = _InHand()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, receive: Receive) -> bool:
        """Work until the connection ends; tell whether the agent said goodbye."""
        self._beside(self._hand_out())
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return message.get("code") in _GOODBYES
            self._take(message)
            while self._messages_on_way >= _MESSAGES_ON_WAY or self._bytes_on_way >= _BYTES_ON_WAY:
                self._room.clear()
                await self._room.wait()

    def end(self) -> None:
        """Stop whatever still goes on; what was handed in is kept all the same."""
        for task in self._tasks:
            task.cancel()

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        wrong = None if task.cancelled() else task.exception()
        if wrong is None or isinstance(wrong, OSError):  # that is: the other side has gone
            return
        _log.error("a connection of %s failed", self._link.principal.id, exc_info=wrong)
        self._beside(self._close(_FAILED, "Something failed inside the hub."))

    # -- from the agent --------------------------------------------------------------------------

    def _take(self, message: Message) -> None:
        """Note frames; all that come in this turn of the loop are handed in together."""
        came = message.get("frames") or [_frame_in(message)]
        self._came += came
        self._messages_on_way += len(came)
        self._bytes_on_way += sum(map(len, came))
        if not self._handing_in:
            self._handing_in = True
            self._beside(self._hand_in())

    async def _hand_in(self) -> None:
        """Hand in what has come, batch after batch, in the order it came."""
        try:
            while self._came:
                batch, self._came = self._came, []
                began = self._doors.clock.monotonic()
                refused: list[bytes] = []
                words: list[Word] = []
                admitted = self._admitted(batch, words, refused)
                if words:
                    self._carry_out(words)
                ids = [each.envelope.id for each in admitted]
                try:
                    # A task, so that nothing is left lying when the connection ends meanwhile.
                    outcomes = asyncio.ensure_future(await self._link.submit(admitted))
                except Disconnected:
                    return  # whoever hands out says so
                except AgentCanvasError as failure:
                    outcomes = asyncio.ensure_future(_all(failure, len(ids)))
                self._beside(self._answer(outcomes, ids, refused, batch, began))
        finally:
            self._handing_in = False

    def _admitted(
        self, batch: Sequence[bytes], words: list[Word], refused: list[bytes]
    ) -> list[Admitted]:
        """Read a batch; words are put aside, and refusals written, on the way."""
        admitted = []
        for frame in batch:
            try:
                if frames.is_word(frame):
                    words.append(frames.read_word(frame))
                    continue
                admitted.append(self._doors.admit(frame, self._link.principal))
            except AgentCanvasError as refusal:
                about = frames.id_in(frame, self._doors.limits)
                refused.append(self._doors.refusal(refusal, about))
        return admitted

    async def _answer(
        self,
        outcomes: Awaitable[list[Outcome]],
        ids: Sequence[str],
        refused: list[bytes],
        batch: Sequence[bytes],
        began: float,
    ) -> None:
        """Say what became of a batch, once it is on disk."""
        try:
            kept: list[Receipt] = []
            for id_, outcome in zip(ids, await outcomes, strict=True):
                if isinstance(outcome, Receipt):
                    kept.append(outcome)
                else:
                    refused.append(self._doors.refusal(outcome, id_))
            self._doors.latency.add(self._doors.clock.monotonic() - began, len(ids))
            await self._say([frames.write_receipts(kept), *refused] if kept else refused)
        finally:
            self._messages_on_way -= len(batch)
            self._bytes_on_way -= sum(map(len, batch))
            self._room.set()

    # -- about parcels ---------------------------------------------------------------------------

    def _carry_out(self, words: Sequence[Word]) -> None:
        """Begin to do what words say; those of one turn share a commit and are answered together.

        A word with a ``ref`` is told how much of it was news, so it is settled by itself.
        """
        together = [number for word in words if word.ref is None for number in self._acked(word)]
        begun = [(word, self._acked(word)) for word in words if word.ref is not None]
        if together:
            begun.append((Word(), together))
        try:
            doing = [(word, acks, self._link.take_over(acks)) for word, acks in begun]
        except Disconnected:
            return  # whoever hands out says so
        others = [word for word in words if word.nack or word.hold]
        self._beside(self._finish(doing, others))

    def _acked(self, word: Word) -> list[int]:
        return self._in_hand.numbers(word.ack)

    async def _finish(
        self, doing: Sequence[tuple[Word, list[int], asyncio.Future[int]]], others: Sequence[Word]
    ) -> None:
        news: dict[int | None, int] = {}
        try:
            for word, acks, taken in doing:
                news[word.ref] = await taken
                self._in_hand.drop(acks)
            for word in others:
                news[word.ref] = news.get(word.ref, 0) + await self._give_back(word)
        except Disconnected:
            return
        except AgentCanvasError as failure:  # of the store: none of them was written
            refs = {word.ref for word, _, _ in doing} | {word.ref for word in others}
            await self._say([self._doors.refusal(failure, ref=ref) for ref in refs])
            return
        done = [Done(ref, number) for ref, number in news.items() if ref is not None]
        if done:
            await self._say([frames.write_settled(done)])

    async def _give_back(self, word: Word) -> int:
        """Do what a word says of parcels that are not taken over."""
        failed = self._in_hand.numbers(word.nack)
        news = await self._link.settle(failed, Settlement.FAILED) if failed else 0
        self._in_hand.drop(failed)
        held = self._in_hand.numbers(word.hold)
        return news + (await self._link.settle(held, Settlement.HELD) if held else 0)

    # -- to the agent ----------------------------------------------------------------------------

    async def _hand_out(self) -> None:
        """Send what there is for the agent, as fast as it reads."""
        most = _PARCELS_AT_ONCE
        try:
            while True:
                parcels = await self._link.receive(most)
                written = [await self._written(parcel) for parcel in parcels]
                await self._say([frame for frame in written if frame])
                size = sum(map(len, written))
                if self._acks_by_itself:
                    numbers = [parcel.number for parcel in parcels]
                    await self._link.settle(numbers, Settlement.TAKEN)
                most = max(1, min(_PARCELS_AT_ONCE, _BYTES_AHEAD * len(parcels) // (size + 1)))
        except Replaced as reason:
            await self._close(frames.REPLACED, str(reason))
        except Disconnected as reason:
            await self._close(_GOING_AWAY, str(reason))
        except AgentCanvasError as failure:
            await self._close(_FAILED, str(failure))

    async def _written(self, parcel: Parcel) -> bytes:
        """Return the frame of a parcel; it is empty if there can be none."""
        try:
            dialect = self._dialect or self._doors.spoken_by(self._link.principal)
            message = parcel.spelled if parcel.envelope.origin == dialect else b""
            message = message or encode(parcel.envelope, dialect)
        except AgentCanvasError as refusal:  # tried again, and in the end a dead letter
            _log.warning("message %s cannot be delivered: %s", parcel.envelope.id, refusal.code)
            await self._link.settle([parcel.number], Settlement.FAILED)
            return b""
        if not self._acks_by_itself:
            self._in_hand.add(parcel)
        return frames.write_delivered(message, frames.delivery_of(parcel))

    async def _say(self, said: Sequence[bytes]) -> None:
        if self._many_at_once:
            await self._send({"type": "websocket.send", "frames": said})
            return
        for frame in said:
            await self._send({"type": "websocket.send", "text": frame.decode()})

    async def _close(self, code: int, reason: str) -> None:
        with suppress(Exception):  # it may be closed from the other side already
            message = {"type": "websocket.close", "code": code, "reason": close_reason(reason)}
            await self._send(message)


class _InHand:
    """Parcels in an agent's hands, for those who name them by the ids of their messages."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}

    def add(self, parcel: Parcel) -> None:
        self._ids[parcel.number] = parcel.envelope.id

    def numbers(self, named: Sequence[int | str]) -> list[int]:
        """Return the numbers; of several messages with one id it means the first that came."""
        numbers = [name for name in named if isinstance(name, int)]
        if len(numbers) == len(named):
            return numbers
        first = {id_: number for number, id_ in reversed(self._ids.items())}
        found = [first.get(name) if isinstance(name, str) else name for name in named]
        return [number for number in found if number is not None]

    def drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._ids.pop(number, None)


def _frame_in(message: Message) -> bytes:
    """Return what came in the plain way."""
    text = message.get("text")
    frame: bytes = text.encode() if text is not None else message["bytes"]
    return frame


async def _all(failure: AgentCanvasError, number: int) -> list[Outcome]:
    return [failure] * number
