"""An office on a real store that does only what a test tells it to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio

from agentcanvas.errors import IllegalTransition, NotFound
from agentcanvas.proposals.model import ProposalState
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.records import TextEvent
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunOrder, RunSummary, TranscriptEntry, UndoneTask, Window
from agentcanvas.runs.shown import ShownProposal, Side
from agentcanvas.runs.state import RunState, RunStatus, fold
from agentcanvas.runs.windows import window_in
from agentcanvas.store import Store

FLOW = "team-alpha"
PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \xff\n"
SHOWN = ShownProposal(
    run_id="run_1",
    task_id="t1",
    proposal_id="t1.r0",
    attempt=1,
    worker="a1",
    status=ProposalState.WAITING,
    generation=0,
    created_at="2026-02-19T10:00:00Z",
)
FILES = {
    "dot.png": b"\x89PNG\r\n\x1a\n\0",
    "photo.jpg": b"\xff\xd8\xff\xe0",
    "old.gif": b"GIF89a",
    "new.webp": b"RIFF\0\0\0\0WEBPVP8 ",
    "page.html": b"<script>alert(1)</script>",
    "drawing.svg": b"<svg onload='alert(1)'/>",
    "x": b"",
}
GOES_ON = frozenset({RunStatus.NEW, RunStatus.RUNNING})


def started(request: str = "Refactor") -> e.RunStarted:
    team = (e.Member("a1", "Coder", "worker"),)
    payload = e.Start(FLOW, request, team, head="abc1234def")
    return e.RunStarted(actor="user", provenance=e.Provenance.USER_INPUT, payload=payload)


def noted(entry: str) -> e.Noted:
    return e.Noted(actor="a1", provenance=e.Provenance.SYSTEM, payload=e.Note(entry))


def ended(reason: str = "all tasks are done") -> e.RunEnded:
    payload = e.End(reason, done=True)
    return e.RunEnded(actor="engine", provenance=e.Provenance.SYSTEM, payload=payload)


def parked() -> e.RunParked:
    payload = e.Waiting("you", "Apply it?")
    return e.RunParked(actor="engine", provenance=e.Provenance.SYSTEM, payload=payload)


class FakeOffice:
    """Keeps runs as events in the store; what it was asked to do is in ``calls``."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[tuple[object, ...]] = []
        self.open_asks: list[PersonAsk] = []
        self.said: list[TranscriptEntry] = []
        self.failure: Exception | None = None
        self.asked = anyio.Event()

    async def write(self, run_id: str, *events: e.RunEvent) -> int:
        """Append events of a run; give the number of the last."""
        rows = [(f"{FLOW}/{run_id}", e.kind_of(event), e.to_json(event)) for event in events]
        return (await self.store.append_many(rows))[-1]

    def say(self, seq: int, agent: str, text: str) -> None:
        """Put something into a transcript."""
        self.said.append(TranscriptEntry(seq, agent, TextEvent(ts=0, seq=seq, text=text)))

    async def runs(self) -> tuple[RunSummary, ...]:
        rows = [row for row in await self.store.events() if row.kind == "run_started"]
        states = [await self.state(row.stream.rpartition("/")[2]) for row in rows]
        return tuple(
            RunSummary(
                run_id=state.run_id,
                flow=state.flow,
                request=state.request,
                status=state.status,
                started_ms=row.at_ms,
                waits_for=state.waits_for,
            )
            for state, row in zip(states, rows, strict=True)
        )[::-1]

    async def state(self, run_id: str) -> RunState:
        self.asked.set()
        if self.failure is not None:
            raise self.failure
        recorded = await self._recorded(run_id, 0)
        if not recorded:
            raise NotFound(f"There is no run {run_id}. See: agentcanvas runs")
        return fold(recorded)

    async def window(self, run_id: str, *, last: int = 500, before: int | None = None) -> Window:
        await self.state(run_id)
        stream = f"{FLOW}/{run_id}"
        return await self.store.read(lambda look: window_in(look, stream, last, before))

    async def order(self, run_id: str) -> RunOrder:
        state = await self.state(run_id)
        return RunOrder(flow=state.flow, flow_text="", request=state.request)

    async def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[e.Recorded]:
        state = await self.state(run_id)
        while True:
            for entry in await self._recorded(run_id, after):
                after = entry.seq
                yield entry
            state = await self.state(run_id)
            if not follow or (state.seq <= after and state.status not in GOES_ON):
                return
            await self.store.wait_beyond(after)

    async def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        while True:
            state, seen = await self.state(run_id), self.store.head
            for entry in [entry for entry in self.said if entry.seq > after]:
                after = entry.seq
                if agent in (None, entry.agent):
                    yield entry
            if not follow or state.status not in GOES_ON:
                return
            await self.store.wait_beyond(seen)

    async def proposal(
        self, run_id: str, task_id: str, attempt: int | None = None
    ) -> ShownProposal:
        await self.state(run_id)
        self.calls.append(("proposal", run_id, task_id, attempt))
        return SHOWN

    async def patch(self, run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        await self.state(run_id)
        self.calls.append(("patch", run_id, task_id, attempt))
        return PATCH

    async def file(
        self, run_id: str, task_id: str, path: str, side: Side, attempt: int | None = None
    ) -> bytes:
        await self.state(run_id)
        self.calls.append(("file", run_id, task_id, path, side, attempt))
        if path not in FILES:
            raise NotFound(f"The proposal has no file {path}.")
        return FILES[path]

    async def stop_work(
        self, run_id: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        self.calls.append(("stop_work", run_id, agent, task_id))
        return ("t1",)

    async def tell(self, run_id: str, agent: str, text: str) -> None:
        self.calls.append(("tell", run_id, agent, text))

    async def start(self, order: RunOrder) -> str:
        self.calls.append(("start", order))
        run_id = f"run_{len(self.calls)}"
        await self.write(run_id, started(order.request))
        return run_id

    async def resume(self, run_id: str) -> None:
        await self.state(run_id)
        self.calls.append(("resume", run_id))

    async def retry(self, run_id: str) -> str:
        await self.state(run_id)
        self.calls.append(("retry", run_id))
        return f"{run_id}_again"

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        state = await self.state(run_id)
        if state.status not in GOES_ON:
            raise IllegalTransition(f"{run_id} is {state.status}; only a running one is stopped.")
        self.calls.append(("stop", run_id, reason))

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        await self.state(run_id)
        self.calls.append(("undo", run_id, task_id))
        return (UndoneTask(task_id or "t1", ("x.py",)), UndoneTask("t0", problem="It was edited."))

    async def asks(self, run_id: str | None = None) -> tuple[PersonAsk, ...]:
        return tuple(ask for ask in self.open_asks if run_id in (None, ask.run_id))

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        if ask_id not in {ask.ask_id for ask in self.open_asks}:
            raise NotFound(f"Nothing waits for an answer under {ask_id}.")
        self.calls.append(("answer", ask_id, answer))

    async def _recorded(self, run_id: str, after: int) -> list[e.Recorded]:
        rows = await self.store.events(after=after, stream=f"{FLOW}/{run_id}")
        return [e.from_row(row) for row in rows if row.kind in e.KINDS]
