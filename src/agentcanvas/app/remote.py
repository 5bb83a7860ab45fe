"""The office of another process, over HTTP: what a command asks the holder of a workspace (D1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

import msgspec

from agentcanvas.app.wire import Wire
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs.events import Recorded
from agentcanvas.runs.office import RunOrder, RunSummary, TranscriptEntry, UndoneTask, Window
from agentcanvas.runs.shown import ShownProposal, Side
from agentcanvas.runs.state import RunState
from agentcanvas.web import views as v
from agentcanvas.web.lines import read_line

_entries = msgspec.json.Decoder(TranscriptEntry)


class RemoteOffice(Wire):
    """An ``Office`` that asks a server: ``async with RemoteOffice(info) as office``."""

    # -- records ---------------------------------------------------------------------------------

    async def runs(self) -> tuple[RunSummary, ...]:
        """Every run, the newest first."""
        return (await self.ask("GET", "/runs", v.RunsView)).runs

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        return (await self.ask("GET", _run(run_id), v.RunView)).state

    async def window(self, run_id: str, *, last: int = 500, before: int | None = None) -> Window:
        """How a run stands with the last of its events, or the last before a number."""
        query = {"last": last} | ({} if before is None else {"before": before})
        view = await self.ask("GET", f"{_run(run_id)}/window", v.WindowView, query)
        events = tuple(read_line(bytes(line)) for line in view.events)
        return Window(view.state, view.summary, view.team, events, view.earlier)

    async def order(self, run_id: str) -> RunOrder:
        """What a run was started with."""
        return await self.ask("GET", f"{_run(run_id)}/order", RunOrder)

    async def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[Recorded]:
        """What happened, in order; with ``follow`` until the run ends or is parked."""
        path = f"{_run(run_id)}/events"
        if not follow:
            view = await self.ask("GET", path, v.EventsView, {"after": after})
            for line in view.events:
                yield read_line(bytes(line))
            return
        async with aclosing(self.follow(path, {"after": after})) as frames:
            async for frame in frames:
                yield read_line(frame.data)

    async def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        """What an agent, or every agent, said and did."""
        path = f"{_run(run_id)}/transcript"
        query: dict[str, Any] = {"after": after} | ({} if agent is None else {"agent": agent})
        if not follow:
            for entry in (await self.ask("GET", path, v.TranscriptView, query)).entries:
                yield entry
            return
        async with aclosing(self.follow(path, query)) as frames:
            async for frame in frames:
                yield _entries.decode(frame.data)

    async def proposal(
        self, run_id: str, task_id: str, attempt: int | None = None
    ) -> ShownProposal:
        """All about a proposed change of a task, the latest if no attempt is named."""
        path = f"{_task(run_id, task_id)}/proposal"
        return await self.ask("GET", path, ShownProposal, _attempt(attempt))

    async def patch(self, run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        """A proposed change of a task, the latest if no attempt is named."""
        return await self.fetch("GET", f"{_task(run_id, task_id)}/patch", _attempt(attempt))

    async def file(
        self, run_id: str, task_id: str, path: str, side: Side, attempt: int | None = None
    ) -> bytes:
        """One file of a proposed change, as it was or as it would be."""
        query = {"path": path, "side": side.value, **_attempt(attempt)}
        return await self.fetch("GET", f"{_task(run_id, task_id)}/file", query)

    # -- control ---------------------------------------------------------------------------------

    async def start(self, order: RunOrder) -> str:
        """Begin a run; gives its id."""
        return (await self.ask("POST", "/runs", v.StartedView, body=order)).run_id

    async def resume(self, run_id: str) -> None:
        """Go on with a run that was interrupted, stopped or parked."""
        await self.fetch("POST", f"{_run(run_id)}/resume")

    async def retry(self, run_id: str) -> str:
        """Begin the same again as a new run."""
        return (await self.ask("POST", f"{_run(run_id)}/retry", v.StartedView)).run_id

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        """End a run; returns when nothing of it is left running."""
        await self.fetch("POST", f"{_run(run_id)}/stop", body=v.StopOrder(reason))

    async def stop_work(
        self, run_id: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """End what an agent does now, or what is done for a task."""
        order = v.StopWorkOrder(agent, task_id)
        return (
            await self.ask("POST", f"{_run(run_id)}/stop-work", v.StoppedView, body=order)
        ).turns

    async def tell(self, run_id: str, agent: str, text: str) -> None:
        """Say something to an agent of a run that goes on."""
        await self.fetch("POST", f"{_run(run_id)}/tell", body=v.TellOrder(agent, text))

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        """Take back what a task landed, or all that a run landed."""
        path = f"{_run(run_id)}/undo"
        return (await self.ask("POST", path, v.UndoneView, body=v.UndoOrder(task_id))).undone

    # -- inbox -----------------------------------------------------------------------------------

    async def asks(self, run_id: str | None = None) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        query = {} if run_id is None else {"run": run_id}
        return (await self.ask("GET", "/asks", v.AsksView, query)).asks

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them."""
        await self.fetch("POST", f"/asks/{quote(ask_id, safe='')}/answer", body=answer)


def _run(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"


def _task(run_id: str, task_id: str) -> str:
    return f"{_run(run_id)}/tasks/{quote(task_id, safe='')}"


def _attempt(number: int | None) -> dict[str, Any]:
    return {} if number is None else {"attempt": number}
