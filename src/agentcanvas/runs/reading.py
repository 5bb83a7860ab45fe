"""Looking at runs, over or under way: how they stand, what happened, who said what.

What is under way knows more than its record: for whom it waits now, and whether more is to come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from agentcanvas.clock import Clock
from agentcanvas.runs import events as e
from agentcanvas.runs import history, transcripts, windows
from agentcanvas.runs.lives import Lives
from agentcanvas.runs.office import RunSummary, TranscriptEntry, Window
from agentcanvas.runs.register import Register
from agentcanvas.runs.state import RunState, RunStatus
from agentcanvas.runs.tail import Tail

IsAnswered = Callable[[str], Awaitable[bool]]
"""Whether a run has got a person's answer that it has not taken up yet."""


class Reading:
    """What there is to know of the runs of one workspace."""

    def __init__(
        self, register: Register, lives: Lives, is_answered: IsAnswered, clock: Clock
    ) -> None:
        self._register = register
        self._lives = lives
        self._is_answered = is_answered
        self._tail = Tail(register.store, clock)

    async def runs(self) -> tuple[RunSummary, ...]:
        """Every run, the newest first."""
        found = []
        for run_id in self._register:
            summary = history.summary(await self._register.account(run_id))
            waits_for = summary.waits_for or self._lives.waits_for(run_id)
            found.append(msgspec.structs.replace(summary, waits_for=waits_for))
        return tuple(reversed(found))

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        return self._with_whom_it_waits_for(run_id, await self._register.state(run_id))

    async def window(self, run_id: str, *, last: int, before: int | None) -> Window:
        """How a run stands with the last of its events, or the last before a number."""
        stream = self._register.stream(run_id)
        found = await self._register.store.read(
            lambda look: windows.window_in(look, stream, last, before)
        )
        state = self._with_whom_it_waits_for(run_id, found.state)
        return msgspec.structs.replace(found, state=state)

    def _with_whom_it_waits_for(self, run_id: str, state: RunState) -> RunState:
        waits_for = state.waits_for or self._lives.waits_for(run_id)
        return msgspec.structs.replace(state, waits_for=waits_for)

    async def events(self, run_id: str, *, after: int, follow: bool) -> AsyncIterator[e.Recorded]:
        """What happened, in order; with ``follow`` it goes on until the run ends or is parked."""
        stream = self._register.stream(run_id)
        status = (await self._register.state(run_id)).status if after else RunStatus.NEW
        page = await self._tail.page(stream, after)
        while True:
            for row in page.rows:
                after = row.seq
                if row.kind in e.KINDS:
                    entry = e.from_row(row)
                    status = _status_after(entry.event, status)
                    yield entry
            if page.is_full:
                page = await self._tail.page(stream, after)
                continue
            if not follow or await self._rests(run_id, status):
                return
            page = await self._tail.beyond(stream, after, page.head)

    async def transcript(
        self, run_id: str, agent: str | None, *, after: int, follow: bool
    ) -> AsyncIterator[TranscriptEntry]:
        """What an agent, or every agent, said and did; followed as ``events`` are."""
        store, stream = self._register.store, self._register.stream(run_id)
        agents = [agent] if agent is not None else await self._agents(run_id)
        seen = dict.fromkeys(agents, after)
        while True:
            head = store.head
            # Asked first: what was said before it rested is then among what is read.
            is_over = not follow or await self._is_quiet(run_id)
            found: list[TranscriptEntry] = []
            for name in agents:
                said = transcripts.stream_of(stream, name)
                async for row in history.rows(store, said, seen[name]):
                    seen[name] = row.seq
                    found.append(TranscriptEntry(row.seq, name, transcripts.read(row)))
            for entry in sorted(found, key=lambda each: each.seq):
                yield entry
            if is_over:
                return
            await store.wait_beyond(head)

    async def _rests(self, run_id: str, status: RunStatus) -> bool:
        """Whether a run will do nothing more by itself."""
        if status is not RunStatus.PARKED:
            return status is not RunStatus.RUNNING
        return await self._is_quiet(run_id)

    async def _is_quiet(self, run_id: str) -> bool:
        """Whether nobody of a run says anything until a person does."""
        if run_id not in self._lives:
            return True
        return not (self._lives.is_busy(run_id) or await self._is_answered(run_id))

    async def _agents(self, run_id: str) -> list[str]:
        first = (await self._register.recorded(run_id))[0].event
        return (
            [member.id for member in first.payload.team] if isinstance(first, e.RunStarted) else []
        )


def _status_after(event: e.RunEvent, status: RunStatus) -> RunStatus:
    match event:
        case e.RunStarted() | e.RunResumed():
            return RunStatus.RUNNING
        case e.RunParked():
            return RunStatus.PARKED
        case e.RunInterrupted():
            return RunStatus.INTERRUPTED
        case e.RunEnded(payload=end):
            return RunStatus.DONE if end.done else RunStatus.STOPPED
        case _:
            return status
