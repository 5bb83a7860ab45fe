"""The office of another process, over HTTP: what a command asks the holder of a workspace (D1).

Errors come back as the exceptions they were; a stream that breaks is taken up again where it was,
without loss or repeats.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from agentcanvas.app.server import ServerInfo
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import Disconnected, ProtocolError
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs.events import Recorded
from agentcanvas.runs.office import RunOrder, RunSummary, TranscriptEntry, UndoneTask
from agentcanvas.runs.state import RunState
from agentcanvas.web import problems
from agentcanvas.web import views as v
from agentcanvas.web.app import PREFIX
from agentcanvas.web.lines import read_line
from agentcanvas.web.sse import Frame, frames_of
from agentcanvas.web.stream import PING_S

T = TypeVar("T")

_CONNECTS_WITHIN_S = 5.0
_SILENT_S = 3 * PING_S
_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Before a broken stream is taken up again; after the last one it is given up."""

_BAD = 400
_entries = msgspec.json.Decoder(TranscriptEntry)


class RemoteOffice:
    """An ``Office`` that asks a server: ``async with RemoteOffice(info) as office``."""

    def __init__(self, info: ServerInfo, *, clock: Clock | None = None) -> None:
        self._info = info
        self._clock = clock or SystemClock()
        self._client = httpx.AsyncClient(
            base_url=info.url + PREFIX,
            headers={"authorization": f"Bearer {info.token}"},
            # No limit on an answer: stopping a run takes as long as it takes. A server that is gone
            # is noticed by its socket.
            timeout=httpx.Timeout(None, connect=_CONNECTS_WITHIN_S),
            # Not through a proxy: loopback is this machine, whatever the environment says.
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    # -- records ---------------------------------------------------------------------------------

    async def runs(self) -> tuple[RunSummary, ...]:
        """Every run, the newest first."""
        return (await self._ask("GET", "/runs", v.RunsView)).runs

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        return (await self._ask("GET", _run(run_id), v.RunView)).state

    async def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[Recorded]:
        """What happened, in order; with ``follow`` until the run ends or is parked."""
        path = f"{_run(run_id)}/events"
        if not follow:
            view = await self._ask("GET", path, v.EventsView, {"after": after})
            for line in view.events:
                yield read_line(bytes(line))
            return
        async with aclosing(self._follow(path, {"after": after})) as frames:
            async for frame in frames:
                yield read_line(frame.data)

    async def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        """What an agent, or every agent, said and did."""
        path = f"{_run(run_id)}/transcript"
        query: dict[str, Any] = {"after": after} | ({} if agent is None else {"agent": agent})
        if not follow:
            for entry in (await self._ask("GET", path, v.TranscriptView, query)).entries:
                yield entry
            return
        async with aclosing(self._follow(path, query)) as frames:
            async for frame in frames:
                yield _entries.decode(frame.data)

    async def patch(self, run_id: str, task_id: str) -> bytes:
        """The latest proposed change of a task."""
        return await self._send("GET", f"{_run(run_id)}/tasks/{quote(task_id, safe='')}/patch")

    # -- control ---------------------------------------------------------------------------------

    async def start(self, order: RunOrder) -> str:
        """Begin a run; gives its id."""
        return (await self._ask("POST", "/runs", v.StartedView, body=order)).run_id

    async def resume(self, run_id: str) -> None:
        """Go on with a run that was interrupted, stopped or parked."""
        await self._send("POST", f"{_run(run_id)}/resume")

    async def retry(self, run_id: str) -> str:
        """Begin the same again as a new run."""
        return (await self._ask("POST", f"{_run(run_id)}/retry", v.StartedView)).run_id

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        """End a run; returns when nothing of it is left running."""
        await self._send("POST", f"{_run(run_id)}/stop", body=v.StopOrder(reason))

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        """Take back what a task landed, or all that a run landed."""
        path = f"{_run(run_id)}/undo"
        return (await self._ask("POST", path, v.UndoneView, body=v.UndoOrder(task_id))).undone

    # -- inbox -----------------------------------------------------------------------------------

    async def asks(self, run_id: str | None = None) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        query = {} if run_id is None else {"run": run_id}
        return (await self._ask("GET", "/asks", v.AsksView, query)).asks

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them."""
        await self._send("POST", f"/asks/{quote(ask_id, safe='')}/answer", body=answer)

    # -- the wire --------------------------------------------------------------------------------

    async def _ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        query: Mapping[str, Any] | None = None,
        body: msgspec.Struct | None = None,
    ) -> T:
        answer = await self._send(method, path, query, body)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"The server's answer cannot be understood: {error}.") from None

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: msgspec.Struct | None = None,
    ) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = await self._client.request(method, path, params=query, content=content)
        except httpx.TransportError as error:
            raise self._lost() from error
        if answer.status_code >= _BAD:
            raise problems.from_body(answer.content)
        return answer.content

    async def _follow(self, path: str, query: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        """The frames of a stream up to its end, over as many connections as it takes."""
        place: str | None = None
        pauses = iter(_PAUSES_S)
        while True:
            resumed = {} if place is None else {"last_event_id": place}
            try:
                async with aclosing(self._stream(path, {**query, **resumed})) as frames:
                    async for frame in frames:
                        pauses = iter(_PAUSES_S)
                        if frame.event == "end":
                            return
                        place = frame.id or place
                        yield frame
            except httpx.TransportError as error:
                broken: httpx.TransportError | None = error
            else:
                broken = None
            pause = next(pauses, None)
            if pause is None:
                raise self._lost() from broken
            await self._clock.sleep(pause)

    async def _stream(self, path: str, query: Mapping[str, Any]) -> AsyncGenerator[Frame, None]:
        timeout = httpx.Timeout(_SILENT_S, connect=_CONNECTS_WITHIN_S)
        request = self._client.stream(
            "GET", path, params={**query, "follow": "true"}, timeout=timeout
        )
        async with request as answer:
            if answer.status_code >= _BAD:
                raise problems.from_body(await answer.aread())
            async for frame in frames_of(answer.aiter_bytes()):
                if frame.event == "problem":
                    raise problems.from_body(frame.data)
                yield frame

    def _lost(self) -> Disconnected:
        return Disconnected(
            f"The server of this workspace ({self._info.url}, process {self._info.pid}) does not "
            "answer any more. Start it again: agentcanvas serve"
        )


def _run(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"
