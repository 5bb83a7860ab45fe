"""The API under /api/v1: each operation asks the office and puts its answer on the wire."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from agentcanvas.clock import Clock
from agentcanvas.errors import NotFound
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs.office import Office, RunOrder, TranscriptEntry
from agentcanvas.runs.shown import ShownProposal
from agentcanvas.web import views as v
from agentcanvas.web.feed import Feed
from agentcanvas.web.files import AS_DATA, media_of
from agentcanvas.web.following import Following
from agentcanvas.web.lines import is_about, line_of, one_line
from agentcanvas.web.operation import operation
from agentcanvas.web.reports import report
from agentcanvas.web.stream import EventStream

_CREATED = 201
_PATCH = "text/x-patch"


class Api:
    """All operations, over one office and one feed."""

    def __init__(
        self,
        office: Office,
        feed: Feed,
        *,
        clock: Clock,
        ending: asyncio.Event,
        root: Path,
        version: str,
    ) -> None:
        self._office = office
        self._feed = feed
        self._following = Following(feed, clock=clock, ending=ending)
        self._root = root
        self._version = version

    def routes(self) -> list[Route]:
        """Every operation at its address; ids of tasks and asks may hold slashes."""
        run = "/runs/{run_id}"
        task = f"{run}/tasks/{{task_id:path}}"
        return [
            operation("GET", "/server", self.server),
            operation("GET", "/runs", self.runs),
            operation("POST", "/runs", self.start, status=_CREATED),
            operation("GET", run, self.run),
            operation("GET", f"{run}/events", self.run_events),
            operation("GET", f"{run}/window", self.window),
            operation("GET", f"{run}/order", self.order),
            operation("GET", f"{run}/transcript", self.transcript),
            operation("GET", f"{run}/report", self.report),
            operation("GET", f"{task}/proposal", self.proposal),
            operation("GET", f"{task}/patch", self.patch),
            operation("GET", f"{task}/file", self.file),
            operation("GET", f"{task}/trail", self.trail),
            operation("POST", f"{run}/stop", self.stop),
            operation("POST", f"{run}/stop-work", self.stop_work),
            operation("POST", f"{run}/tell", self.tell, status=_CREATED),
            operation("POST", f"{run}/resume", self.resume),
            operation("POST", f"{run}/retry", self.retry, status=_CREATED),
            operation("POST", f"{run}/undo", self.undo),
            operation("GET", "/asks", self.asks),
            operation("POST", "/asks/{ask_id:path}/answer", self.answer),
            operation("GET", "/events", self.events),
        ]

    # -- reading ---------------------------------------------------------------------------------

    async def server(self) -> v.ServerView:
        """Who answers here."""
        return await server_view(self._feed, self._root, self._version)

    async def runs(self) -> v.RunsView:
        """All runs, the newest first."""
        return v.RunsView(await self._feed.head(), await self._office.runs())

    async def run(self, path: v.RunPath) -> v.RunView:
        """How a run stands."""
        return v.RunView(await self._feed.head(), await self._office.state(path.run_id))

    async def run_events(
        self, path: v.RunPath, query: v.FollowQuery, headers: v.FeedHeaders
    ) -> v.EventsView | EventStream:
        """What happened in a run, so far or until it ends or is parked."""
        after = await self._following.after(query, headers)
        head = await self._feed.head()
        if query.follow:
            await self._office.state(path.run_id)
            recorded = self._office.events(path.run_id, after=after, follow=True)
            return self._following.stream(recorded, lambda entry: entry.seq, line_of)
        recorded = self._office.events(path.run_id, after=after, follow=False)
        return v.EventsView(head, tuple([msgspec.Raw(line_of(entry)) async for entry in recorded]))

    async def window(self, path: v.RunPath, query: v.WindowQuery) -> v.WindowView:
        """How a run stands, and the last of what happened in it."""
        found = await self._office.window(path.run_id, last=query.last, before=query.before)
        return v.WindowView(
            await self._feed.place(found.state.seq),
            found.state,
            found.summary,
            found.team,
            tuple([msgspec.Raw(line_of(entry)) for entry in found.events]),
            found.earlier,
        )

    async def order(self, path: v.RunPath) -> RunOrder:
        """What a run was started with."""
        return await self._office.order(path.run_id)

    async def transcript(
        self, path: v.RunPath, query: v.FollowQuery, headers: v.FeedHeaders
    ) -> v.TranscriptView | EventStream:
        """What an agent, or every agent, said and did."""
        after = await self._following.after(query, headers)
        head = await self._feed.head()
        if query.follow:
            await self._office.state(path.run_id)
        entries = self._office.transcript(
            path.run_id, query.agent, after=after, follow=query.follow
        )
        if query.follow:
            return self._following.stream(entries, lambda entry: entry.seq, _entry_line)
        return v.TranscriptView(head, tuple([entry async for entry in entries]))

    async def report(self, path: v.RunPath, query: v.ReportQuery) -> Response:
        """What happened, for people."""
        recorded = [entry async for entry in self._office.events(path.run_id, follow=False)]
        return report(recorded, query.format)

    async def proposal(self, path: v.TaskPath, query: v.AttemptQuery) -> ShownProposal:
        """All about a proposed change: files, hunks, evidence, findings, how it stands now."""
        return await self._office.proposal(path.run_id, path.task_id, query.attempt)

    async def patch(self, path: v.TaskPath, query: v.AttemptQuery) -> Response:
        """A proposed change of a task."""
        patch = await self._office.patch(path.run_id, path.task_id, query.attempt)
        return Response(patch, media_type=_PATCH)

    async def file(self, path: v.TaskPath, query: v.FileQuery) -> Response:
        """One file of a proposed change, as it was or as it would be."""
        content = await self._office.file(
            path.run_id, path.task_id, query.path, query.side, query.attempt
        )
        return Response(content, media_type=media_of(content), headers=AS_DATA)

    async def trail(self, path: v.TaskPath) -> v.EventsView:
        """Why a change is there: all that is on record about its task, to the verdict."""
        if path.task_id not in (await self._office.state(path.run_id)).tasks:
            raise NotFound(f"{path.run_id} has no task {path.task_id}.")
        head = await self._feed.head()
        recorded = self._office.events(path.run_id, follow=False)
        lines = [line_of(entry) async for entry in recorded if is_about(entry, path.task_id)]
        return v.EventsView(head, tuple(map(msgspec.Raw, lines)))

    async def events(self, query: v.FeedQuery, headers: v.FeedHeaders) -> EventStream:
        """Whatever happens, in all runs or in one, from a place or from now on."""
        if query.run is not None:
            await self._office.state(query.run)
        place = headers.last_event_id or query.last_event_id or await self._feed.head()
        return self._following.frames(self._feed.frames(place, query.run))

    # -- changing --------------------------------------------------------------------------------

    async def start(self, body: RunOrder) -> v.StartedView:
        """Begin a run."""
        return v.StartedView(await self._office.start(body))

    async def stop(self, path: v.RunPath, body: v.StopOrder) -> None:
        """End a run; answered when nothing of it is left running."""
        await self._office.stop(path.run_id, reason=body.reason)

    async def stop_work(self, path: v.RunPath, body: v.StopWorkOrder) -> v.StoppedView:
        """End what an agent does now, or what is done for a task; the run goes on."""
        ended = await self._office.stop_work(path.run_id, agent=body.agent, task_id=body.task_id)
        return v.StoppedView(ended)

    async def tell(self, path: v.RunPath, body: v.TellOrder) -> None:
        """Say something to an agent."""
        await self._office.tell(path.run_id, body.agent, body.text)

    async def resume(self, path: v.RunPath) -> None:
        """Go on with a run."""
        await self._office.resume(path.run_id)

    async def retry(self, path: v.RunPath) -> v.StartedView:
        """Begin the same again as a new run."""
        return v.StartedView(await self._office.retry(path.run_id))

    async def undo(self, path: v.RunPath, body: v.UndoOrder) -> v.UndoneView:
        """Take back what landed."""
        return v.UndoneView(await self._office.undo(path.run_id, body.task_id))

    # -- people ----------------------------------------------------------------------------------

    async def asks(self, query: v.AsksQuery) -> v.AsksView:
        """What waits for a person."""
        return v.AsksView(await self._feed.head(), await self._office.asks(query.run))

    async def answer(self, path: v.AskPath, body: PersonAnswer) -> None:
        """Answer one of them."""
        await self._office.answer(path.ask_id, body)


async def server_view(feed: Feed, root: Path, version: str) -> v.ServerView:
    """Who answers for a folder."""
    return v.ServerView(version, os.getpid(), str(root), await feed.epoch(), await feed.head())


def _entry_line(entry: TranscriptEntry) -> bytes:
    return one_line(msgspec.json.encode(entry))
