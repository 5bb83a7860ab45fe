"""The collaboration messages over one WebSocket (V5): ``/api/v1/ws``.

Each message is ``{type, payload, requestId?}``. COLLAB_EVENT tells each event of the cards as it
happens; GET_COLLAB_LOG, GET_COLLAB_REPORT_MD and MANUAL_REVIEW are answered by a message of the
same type and request id, or by an ERROR. Everything of it is in the HTTP API as well; this is for
clients that speak in messages. Who may connect is the guard's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal
from urllib.parse import parse_qs

import anyio
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from starlette.types import Message, Receive, Scope, Send

from agentcanvas.errors import AgentCanvasError, NotFound, ProtocolError, ValidationError
from agentcanvas.proposals.model import Decision
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.protocol.scan import MAX_BYTES, prescan, too_large
from agentcanvas.runs import events as e
from agentcanvas.runs.office import Office
from agentcanvas.runs.report import markdown
from agentcanvas.web.feed import Feed
from agentcanvas.web.lines import line_of
from agentcanvas.web.sse import frames_of

PATH = "/api/v1/ws"
_GOING_AWAY = 1001
_KINDS = frozenset(str(kind.__struct_config__.tag) for kind in e.COLLABORATION)


class CollabEvent(Struct, frozen=True, rename="camel"):
    """An event of the cards; ``data`` is what its log calls the payload."""

    event: str
    actor: str
    provenance: str
    data: Raw
    ts: int
    run_id: str
    id: str


class _Line(Struct, frozen=True, rename="camel"):
    event: str
    actor: str
    provenance: str
    payload: Raw
    ts: int
    run_id: str
    seq: int


class _Asked(Struct, frozen=True, rename="camel"):
    type: str
    payload: Raw = Raw(b"{}")
    request_id: str | int | UnsetType = UNSET


class OfRun(Struct, frozen=True, rename="camel"):
    """Which run."""

    run_id: str


class ManualReview(Struct, frozen=True, rename="camel"):
    """A person's verdict; only an apply needs no reason."""

    run_id: str
    task_id: str
    decision: Literal["apply", "reject", "revise"]
    reason: str = ""


_asked = msgspec.json.Decoder(_Asked)
_line = msgspec.json.Decoder(_Line)


class CollaborationSocket:
    """Answers on one connection after the other."""

    def __init__(self, office: Office, feed: Feed, ending: asyncio.Event) -> None:
        self._office = office
        self._feed = feed
        self._ending = ending
        self._answers: dict[str, Callable[[Raw], Awaitable[Any]]] = {
            "GET_COLLAB_LOG": self._log,
            "GET_COLLAB_REPORT_MD": self._report,
            "MANUAL_REVIEW": self._review,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until it or the server ends."""
        await receive()
        await send({"type": "websocket.accept"})
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        place = asked.get("last_event_id", [""])[0] or await self._feed.head()
        run = asked.get("run", [None])[0]
        lock = anyio.Lock()

        async def say(kind: str, payload: Any, request_id: str | int | UnsetType = UNSET) -> None:
            said: dict[str, Any] = {"type": kind, "payload": payload}
            if request_id is not UNSET:
                said["requestId"] = request_id
            async with lock:
                text = msgspec.json.encode(said).decode()
                await send({"type": "websocket.send", "text": text})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell, place, run, say)
            tasks.start_soon(self._until_ending, send, tasks.cancel_scope)
            await self._hear(receive, say)
            tasks.cancel_scope.cancel()

    async def _until_ending(self, send: Send, scope: anyio.CancelScope) -> None:
        await self._ending.wait()
        await send({"type": "websocket.close", "code": _GOING_AWAY, "reason": "the server ends"})
        scope.cancel()

    async def _tell(self, place: str, run: str | None, say: Callable[..., Awaitable[None]]) -> None:
        async with aclosing(self._feed.frames(place, run)) as frames:
            async for frame in frames_of(frames):
                if frame.event == "reset":
                    await say("RESET", {"head": frame.id})
                    continue
                line = _line_in(frame.data)
                if line is not None:
                    await say(
                        "COLLAB_EVENT",
                        CollabEvent(
                            line.event,
                            line.actor,
                            line.provenance,
                            line.payload,
                            line.ts,
                            line.run_id,
                            frame.id,
                        ),
                    )

    async def _hear(self, receive: Receive, say: Callable[..., Awaitable[None]]) -> None:
        async for message in _messages(receive):
            request_id: str | int | UnsetType = UNSET
            try:
                asked = _read(message)
                request_id = asked.request_id
                answer = self._answers.get(asked.type)
                if answer is None:
                    known = ", ".join(self._answers)
                    raise ProtocolError(f"Nothing is called {asked.type}; there is {known}.")
                await say(asked.type, await answer(asked.payload), request_id)
            except AgentCanvasError as error:
                told = {"error_code": error.code, "error_message": str(error)}
                await say("ERROR", told, request_id)

    async def _log(self, payload: Raw) -> dict[str, Any]:
        run_id = _fit(payload, OfRun).run_id
        recorded = self._office.events(run_id, follow=False)
        lines = [
            Raw(line_of(entry))
            async for entry in recorded
            if isinstance(entry.event, e.COLLABORATION)
        ]
        return {"runId": run_id, "events": lines}

    async def _report(self, payload: Raw) -> dict[str, Any]:
        run_id = _fit(payload, OfRun).run_id
        recorded = [entry async for entry in self._office.events(run_id, follow=False)]
        return {"runId": run_id, "markdown": markdown(recorded)}

    async def _review(self, payload: Raw) -> dict[str, Any]:
        review = _fit(payload, ManualReview)
        decision, reason = Decision(review.decision), review.reason.strip()
        if decision is not Decision.APPLY and not reason:
            raise ValidationError(f"To {decision} needs a reason; say what should change.")
        scope = f"review:{review.task_id}"
        asks = [ask for ask in await self._office.asks(review.run_id) if ask.scope == scope]
        if not asks:
            raise NotFound(
                f"No proposal of {review.task_id} in {review.run_id} waits for a person."
            )
        verdict = {"decision": decision.value, "reason": reason}
        await self._office.answer(asks[0].ask_id, PersonAnswer(verdict, asks[0].person))
        return {"runId": review.run_id, "taskId": review.task_id, "decision": decision.value}


async def _messages(receive: Receive) -> AsyncIterator[Message]:
    while (message := await receive())["type"] != "websocket.disconnect":
        yield message


def _read(message: Message) -> _Asked:
    body = message.get("bytes") or (message.get("text") or "").encode()
    if len(body) > MAX_BYTES:
        raise too_large(len(body))
    prescan(body)
    try:
        return _asked.decode(body)
    except msgspec.ValidationError as error:
        raise ValidationError(f"The message does not fit: {error}.") from None
    except msgspec.DecodeError as error:
        raise ProtocolError(f"The message is not JSON: {error}.") from None


def _fit(payload: Raw, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.ValidationError as error:
        raise ValidationError(f"The payload does not fit: {error}.") from None


def _line_in(data: bytes) -> _Line | None:
    """The event of a frame, if it is one of the cards."""
    try:
        line = _line.decode(data)
    except msgspec.MsgspecError:
        return None  # an event without a payload, which no card has
    return line if line.event in _KINDS else None
