"""The engine of a workspace: starts runs, ends them, goes on with them, and knows how they stand.

An ``Office`` in its own process (D1). Each run is one task; what it does is in ``carrying_out``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Self

import anyio
import anyio.abc
import msgspec
from msgspec import UNSET

from agentcanvas.errors import (
    AgentCanvasError,
    ApplyError,
    IllegalTransition,
    NotFound,
    RunDiverged,
    SandboxError,
    StoreBusy,
    StoreError,
    StoreFull,
    ValidationError,
)
from agentcanvas.hub.guard import is_agent
from agentcanvas.hub.person_inbox import PersonInbox
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs import history, housekeeping, shelf, transcripts, windows
from agentcanvas.runs.carrying_out import (
    SYSTEM,
    CarryingOut,
    Equipment,
    sound_flow,
)
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.runs.office import RunOrder, RunSummary, TranscriptEntry, UndoneTask, Window
from agentcanvas.runs.people import engine_of
from agentcanvas.runs.showing import REVIEW, Showing
from agentcanvas.runs.shown import ShownProposal, Side
from agentcanvas.runs.snapshots import WORTH_KEEPING, Snapshots
from agentcanvas.runs.state import RunState, RunStatus
from agentcanvas.runs.tail import Tail
from agentcanvas.sandbox.cleanup import Plan, Standing, end_strays
from agentcanvas.sandbox.paths import sanitised
from agentcanvas.sandbox.pick import Picked
from agentcanvas.sandbox.selection import find_repository

Confine = Callable[[bool], Awaitable[Picked]]
"""Finds the confinement to run with; True asks for none at all."""

_AGAIN_AFTER_S = 5.0
"""How long to wait for a store that could not keep something."""

_RESUMABLE = frozenset({RunStatus.INTERRUPTED, RunStatus.PARKED, RunStatus.STOPPED})


class _Running:
    """A run that this process carries out."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.over = anyio.Event()
        self.stop_reason = ""
        self.carrying: CarryingOut | None = None

    @property
    def is_parked(self) -> bool:
        return self.carrying is not None and self.carrying.is_parked


class Engine:
    """All runs of one workspace: ``async with Engine.open(equipment, confine) as engine``."""

    def __init__(self, equipment: Equipment, confine: Confine, tasks: anyio.abc.TaskGroup) -> None:
        """Prepare; ``open`` is the door."""
        self._with = equipment
        self._confine = confine
        self._tasks = tasks
        self._streams: dict[str, str] = {}
        self._running: dict[str, _Running] = {}
        self._inbox = PersonInbox(equipment.hub, equipment.broker, equipment.store, equipment.clock)
        self._tail = Tail(equipment.store, equipment.clock)
        self._snapshots = Snapshots(equipment.store)
        self._starting = anyio.Lock()
        self._lookout = Lookout(equipment.workspace, self._tell)
        self._showing = Showing(self._lookout, self._recorded, self.asks)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, equipment: Equipment, confine: Confine, *, resume: bool = False
    ) -> AsyncIterator[Self]:
        """Take up the runs there are; with ``resume`` those that were cut off go on (D25)."""
        raised: Exception | None = None
        async with anyio.create_task_group() as tasks:
            engine = cls(equipment, confine, tasks)
            await engine._take_stock(resume=resume)
            try:
                yield engine
            except Exception as error:  # noqa: BLE001 - raised again below, outside the task group
                raised = error
            finally:
                with anyio.CancelScope(shield=True):
                    await engine._leave()
        if raised is not None:
            raise raised

    # -- records ---------------------------------------------------------------------------------

    async def runs(self) -> tuple[RunSummary, ...]:
        """Every run, the newest first."""
        found = []
        for run_id in self._streams:
            account = await self._snapshots.account(self._stream(run_id))
            summary = history.summary(account)
            waits_for = summary.waits_for or self._waits_for(run_id)
            found.append(msgspec.structs.replace(summary, waits_for=waits_for))
        return tuple(reversed(found))

    def _waits_for(self, run_id: str) -> str:
        """For whom a run waits that this process carries out."""
        running = self._running.get(run_id)
        if running is None or running.carrying is None:
            return ""
        return running.carrying.standing().sentence.removeprefix("waits for ")

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        state = await self._snapshots.state(self._stream(run_id))
        waits_for = state.waits_for or self._waits_for(run_id)
        return msgspec.structs.replace(state, waits_for=waits_for)

    async def window(self, run_id: str, *, last: int = 500, before: int | None = None) -> Window:
        """How a run stands with the last of its events, or the last before a number."""
        stream = self._stream(run_id)
        found = await self._with.store.read(
            lambda look: windows.window_in(look, stream, last, before)
        )
        waits_for = found.state.waits_for or self._waits_for(run_id)
        return msgspec.structs.replace(
            found, state=msgspec.structs.replace(found.state, waits_for=waits_for)
        )

    async def order(self, run_id: str) -> RunOrder:
        """What a run was started with."""
        return await history.order_of(self._with.store, self._stream(run_id))

    async def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[e.Recorded]:
        """What happened, in order; with ``follow`` it goes on until the run ends or is parked."""
        stream = self._stream(run_id)
        status = (await self.state(run_id)).status if after else RunStatus.NEW
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

    async def _rests(self, run_id: str, status: RunStatus) -> bool:
        """Whether a run will do nothing more by itself."""
        if status is not RunStatus.PARKED:
            return status is not RunStatus.RUNNING
        return await self._is_quiet(run_id)

    async def _is_quiet(self, run_id: str) -> bool:
        """Whether nobody of a run says anything until a person does."""
        running = self._running.get(run_id)
        if running is None:
            return True
        return running.is_parked and not await self._is_answered(run_id)

    async def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        """What an agent, or every agent, said and did; followed as ``events`` are."""
        store, stream = self._with.store, self._stream(run_id)
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

    async def proposal(
        self, run_id: str, task_id: str, attempt: int | None = None
    ) -> ShownProposal:
        """All about a proposed change of a task, the latest if no attempt is named."""
        return await self._showing.proposal(run_id, task_id, attempt)

    async def patch(self, run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        """A proposed change of a task, the latest if no attempt is named."""
        return await self._showing.patch(run_id, task_id, attempt)

    async def file(
        self, run_id: str, task_id: str, path: str, side: Side, attempt: int | None = None
    ) -> bytes:
        """One file of a proposed change, as it was or as it would be."""
        return await self._showing.file(run_id, task_id, path, side, attempt)

    async def look_again(self) -> None:
        """See how the waiting proposals stand now; who edits files tells nobody."""
        await self._lookout.look_again()

    # -- control ---------------------------------------------------------------------------------

    async def start(self, order: RunOrder) -> str:
        """Begin a run; gives its id, and goes on by itself."""
        self._with.vet(sound_flow(order, self._with.repertoire), order)
        picked = await self._confine(order.unsafe)
        async with self._starting:
            run_id = self._new_id()
            stream = f"{sanitised(order.flow)}/{run_id}"
            log = Logbook(self._with.broker, run_id, stream, self._with.clock)
            await self._announce(order, log)
            self._streams[run_id] = stream
        self._carry_out(run_id, order, picked)
        return run_id

    async def resume(self, run_id: str) -> None:
        """Go on with a run that was interrupted, stopped or parked."""
        stream = self._stream(run_id)
        if run_id in self._running:
            return
        state = await self.state(run_id)
        if state.status not in _RESUMABLE:
            raise IllegalTransition(
                f"{run_id} is {state.status} and cannot go on; begin it again with: "
                f"agentcanvas retry {run_id}"
            )
        order = await history.order_of(self._with.store, stream)
        await self._refuse_changed_patterns(run_id, order)
        picked = await self._confine(order.unsafe)
        log = self._logbook(run_id)
        await log.write(e.RunResumed(actor="engine", provenance=SYSTEM))
        self._carry_out(run_id, order, picked)

    async def retry(self, run_id: str) -> str:
        """Begin the same again as a new run."""
        order = await history.order_of(self._with.store, self._stream(run_id))
        return await self.start(msgspec.structs.replace(order, parent_run_id=run_id))

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        """End a run and keep what is there; returns when nothing of it is left running."""
        running = self._running.get(run_id)
        if running is not None:
            running.stop_reason = reason
            running.scope.cancel()
            await running.over.wait()
            return
        state = await self.state(run_id)
        if state.status.is_over:
            raise IllegalTransition(f"{run_id} has ended already: {state.reason}")
        await self._end(self._logbook(run_id), e.End(reason, done=False))

    async def stop_work(
        self, run_id: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """End what an agent does now, or what is done for a task; the run goes on without it."""
        self._stream(run_id)
        running = self._running.get(run_id)
        if running is None or running.carrying is None:
            raise IllegalTransition(f"Nothing is under way in {run_id}.")
        return await running.carrying.stop_work("stopped by you", agent=agent, task_id=task_id)

    async def tell(self, run_id: str, agent: str, text: str) -> None:
        """Say something to an agent of a run that goes on; it hears it with its next turn."""
        state = await self.state(run_id)
        if state.status.is_over:
            raise IllegalTransition(
                f"{run_id} has ended: {state.reason}. Begin a run that goes on from there, with "
                "what you have to say as its request."
            )
        if agent not in state.names:
            known = ", ".join(sorted(state.names))
            raise NotFound(f"{run_id} has no agent {agent}; it has: {known}")
        if not text.strip():
            raise ValidationError("There is nothing to say: the text is empty.")
        told = e.Told(agent, text.strip())
        await self._logbook(run_id).write(
            e.WorkerTold(actor="person:you", provenance=e.Provenance.USER_INPUT, payload=told)
        )
        running = self._running.get(run_id)
        if running is not None and running.carrying is not None:
            running.carrying.note_told(told)

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        """Take back what a task landed, or all that a run landed, the latest first."""
        log = self._logbook(run_id)
        landed = _landed(await self._recorded(run_id), task_id)
        if not landed:
            what = f"The task {task_id} of {run_id}" if task_id else run_id
            raise ValidationError(f"{what} has nothing in the workspace that could be taken back.")
        ground = Ground(self._with.workspace, log, self._lookout)
        undone = []
        for each in reversed(landed):
            try:
                receipt = await ground.undo(each.transaction)
            except ApplyError as problem:
                undone.append(UndoneTask(each.task_id, problem=str(problem)))
                break  # what lies below it cannot be reached either
            files = tuple(file.path for file in receipt.changed_files)
            taken = e.Undone(each.task_id, files)
            await log.write(
                e.ProposalUndone(
                    actor="person:you", provenance=e.Provenance.USER_INPUT, payload=taken
                )
            )
            undone.append(UndoneTask(each.task_id, files))
        return tuple(undone)

    # -- people ----------------------------------------------------------------------------------

    async def asks(self, run_id: str | None = None) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        found = await self._inbox.asks(await self._inbox.persons())
        return tuple(ask for ask in found if run_id in (None, ask.run_id))

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them; the run goes on if it waited for nothing else."""
        for ask in await self.asks():
            if ask.ask_id == ask_id:
                await self._showing.refuse_impossible(ask, answer.content)
        run_id = await self._inbox.answer(await self._inbox.persons(), ask_id, answer)
        if run_id not in self._running and run_id in self._streams:
            state = await self.state(run_id)
            if state.status is RunStatus.PARKED:
                await self.resume(run_id)

    # -- the life of a run -----------------------------------------------------------------------

    def _carry_out(self, run_id: str, order: RunOrder, picked: Picked) -> None:
        self._running[run_id] = _Running()
        self._tasks.start_soon(self._life, run_id, order, picked)

    async def _life(self, run_id: str, order: RunOrder, picked: Picked) -> None:
        running = self._running[run_id]
        end: e.End | StoreError | None = None
        carrying = CarryingOut(
            self._with, run_id, self._streams[run_id], order, picked, lookout=self._lookout
        )
        running.carrying = carrying
        try:
            with running.scope:
                end = await self._to_the_end(carrying)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close(self._logbook(run_id), running, end)
                del self._running[run_id]
                running.over.set()

    async def _to_the_end(self, carrying: CarryingOut) -> e.End | StoreError:
        """Why a run has ended, or what the store cannot do for now, which only interrupts it."""
        try:
            return await carrying.run()
        except Exception as error:  # noqa: BLE001 - whatever it is ends this run, and says so
            first = _first(error)
            return first if isinstance(first, StoreFull | StoreBusy) else _end_of(first)

    async def _close(self, log: Logbook, running: _Running, end: e.End | StoreError | None) -> None:
        if running.stop_reason:
            end = e.End(running.stop_reason, done=False)
        try:
            if isinstance(end, e.End):
                going = await self._tidied(log)
                await self._end(log, end)
                if going is not None:
                    self._tasks.start_soon(self._clean_up, going)
            else:
                await self._interrupt(log, end)
        except StoreError as problem:  # of this run, not of the others
            self._tasks.start_soon(self._interrupt_later, log.run_id, problem)

    async def _interrupt(self, log: Logbook, why: StoreError | None) -> None:
        """Say that nobody carries a run out any more."""
        if (await self.state(log.run_id)).status is RunStatus.RUNNING:
            warned = [] if why is None else [e.Warned(f"It was interrupted: {why}")]
            await log.write(
                *(e.WarningGiven(actor="engine", provenance=SYSTEM, payload=w) for w in warned),
                e.RunInterrupted(actor="engine", provenance=SYSTEM),
            )

    async def _interrupt_later(self, run_id: str, why: StoreError) -> None:
        """Say it as soon as the store can keep it again."""
        while run_id not in self._running:
            await self._with.clock.sleep(_AGAIN_AFTER_S)
            with suppress(StoreError):
                await self._interrupt(self._logbook(run_id), why)
                return

    async def _tidied(self, log: Logbook) -> Plan | None:
        """Give up what a run needs no more, and announce which old runs go (D15)."""
        workspace = self._with.workspace
        state = await self.state(log.run_id)
        own = housekeeping.standing_of(state, is_ending=True)
        try:
            if own is Standing.SETTLED:
                await housekeeping.retire(workspace, log.run_id)
            standings = {
                run_id: housekeeping.standing_of(await self.state(run_id))
                for run_id in self._streams
            }
            going = await housekeeping.plan(workspace, {**standings, log.run_id: own})
        except (AgentCanvasError, OSError):
            return None  # a disk that cannot be read; that must not keep a run from ending
        if not going.going:
            return None
        await log.write(housekeeping.announcement(going))
        return going

    async def _clean_up(self, going: Plan) -> None:
        workspace, now_ms = self._with.workspace, self._with.clock.now_ms()
        await housekeeping.carry_out(workspace, going)
        with suppress(AgentCanvasError, OSError):  # they go another time
            idle = await housekeeping.idle_images(workspace, self, now_ms=now_ms)
            await housekeeping.drop_images(workspace, idle)

    async def _end(self, log: Logbook, end: e.End) -> None:
        """Say why it ended, and take away what was asked of anybody and what came too late."""
        ended = e.RunEnded(
            actor="engine",
            provenance=SYSTEM,
            payload=msgspec.structs.replace(end, head=await self._head()),
        )
        numbers = [number for number, _ in await self._mail_of({log.run_id})]
        fresh = self._logbook(log.run_id)
        await fresh.transact(
            lambda unit: (
                [unit.take_over(number) for number in numbers],
                fresh.note(unit.transaction, ended),
            )
        )
        await self._snapshots.account(log.stream, keep_after=WORTH_KEEPING)

    async def _head(self) -> str | None:
        try:
            repository = await anyio.to_thread.run_sync(find_repository, self._with.workspace)
        except SandboxError:
            return None  # it was broken meanwhile; that must not keep a run from ending
        return repository.head if repository else None

    async def _mail_of(self, run_ids: Collection[str]) -> list[tuple[int, str]]:
        """Number and recipient of what waits for anybody in these runs."""
        rows = await self._with.store.read(
            lambda look: look.query(
                "SELECT seq, recipient, session FROM hub_letters INDEXED BY hub_letters_waiting "
                "WHERE state = 0"
            )
        )
        return [(number, recipient) for number, recipient, session in rows if session in run_ids]

    async def _announce(self, order: RunOrder, log: Logbook) -> None:
        flow = sound_flow(order, self._with.repertoire)
        repository = await anyio.to_thread.run_sync(find_repository, self._with.workspace)
        team = tuple(e.Member(agent.id, agent.label, agent.role) for agent in flow.agents)
        start = e.Start(order.flow, order.request, team, repository.head if repository else None)
        started = e.RunStarted(
            actor=f"person:{order.person}",
            provenance=e.Provenance.USER_INPUT,
            parent_run_id=order.parent_run_id,
            payload=start,
        )
        body = msgspec.json.encode(order)
        mark = msgspec.json.encode({"patterns": self._with.repertoire.fingerprint(flow)})
        stream = log.stream
        await log.transact(
            lambda unit: (
                log.note(unit.transaction, started),
                unit.transaction.append(stream, history.ORDER, body),
                unit.transaction.append(stream, _PATTERNS, mark),
            )
        )

    async def _refuse_changed_patterns(self, run_id: str, order: RunOrder) -> None:
        repertoire = self._with.repertoire
        now = repertoire.fingerprint(sound_flow(order, repertoire))
        async for row in history.rows(self._with.store, self._stream(run_id)):
            if row.kind == _PATTERNS:
                then = msgspec.json.decode(row.body)["patterns"]
                if then != now:
                    raise RunDiverged(
                        f"{run_id} was begun with another version of its patterns or prompts and "
                        f"cannot go on with these; begin it again with: agentcanvas retry {run_id}"
                    )
                return

    # -- opening and closing ---------------------------------------------------------------------

    async def _take_stock(self, *, resume: bool) -> None:
        """Find the runs; those that nobody carries out any more are interrupted."""
        await end_strays(self._with.workspace)
        self._streams = await history.streams(self._with.store)
        await self._take_back_turns()
        await self._watch_what_waits()
        for run_id in list(self._streams):
            state = await self.state(run_id)
            if state.status is RunStatus.RUNNING:
                log = self._logbook(run_id)
                await log.write(e.RunInterrupted(actor="engine", provenance=SYSTEM))
            answered = state.status is RunStatus.PARKED and await self._is_answered(run_id)
            if answered or (resume and state.status in (RunStatus.RUNNING, RunStatus.INTERRUPTED)):
                try:
                    await self.resume(run_id)
                except AgentCanvasError as problem:  # of this run, not of the others
                    warned = e.Warned(f"It cannot go on: {problem}")
                    await self._logbook(run_id).write(
                        e.WarningGiven(actor="engine", provenance=SYSTEM, payload=warned)
                    )

    async def _watch_what_waits(self) -> None:
        """Reviews that wait from before; who carries out a run watches what it asks about."""
        for ask in await self.asks():
            if ask.proposal is UNSET or ask.run_id not in self._streams:
                continue
            task_id = ask.scope.removeprefix(REVIEW)
            with suppress(AgentCanvasError):  # a damaged folder; its review will say so
                kept = await shelf.take(self._with.workspace, ask.run_id, ask.proposal)
                told = [
                    entry.event.payload
                    for entry in await self._recorded(ask.run_id)
                    if isinstance(entry.event, e.ProposalRechecked)
                    and entry.event.payload.proposal_id == ask.proposal
                ]
                await self._lookout.watch(task_id, kept.ref, told=told[-1] if told else None)
        await self._lookout.look_again()

    async def _tell(self, run_id: str, event: e.RunEvent) -> None:
        await self._logbook(run_id).write(event)

    async def _take_back_turns(self) -> None:
        """Nobody is at work yet; what lies there for agents is sent anew when its run goes on.

        Until then another run with an agent of that name must not begin it.
        """
        mail = await self._mail_of(self._streams.keys())
        numbers = [number for number, recipient in mail if is_agent(recipient)]
        if numbers:
            await self._with.broker.transact(
                lambda unit: [unit.take_over(number) for number in numbers]
            )

    async def _is_answered(self, run_id: str) -> bool:
        """Whether a person's answer lies there that the run has not taken up yet."""
        waiting = await self._with.broker.waiting(engine_of(run_id))
        return any(envelope.sender.id.startswith("person:") for _, envelope in waiting)

    async def _leave(self) -> None:
        for running in list(self._running.values()):
            running.scope.cancel()
        for running in list(self._running.values()):
            await running.over.wait()

    # -- finding things --------------------------------------------------------------------------

    def _logbook(self, run_id: str) -> Logbook:
        return Logbook(self._with.broker, run_id, self._stream(run_id), self._with.clock)

    def _stream(self, run_id: str) -> str:
        try:
            return self._streams[run_id]
        except KeyError:
            raise NotFound(f"There is no run {run_id} here; see: agentcanvas runs") from None

    async def _recorded(self, run_id: str) -> list[e.Recorded]:
        return await history.recorded(self._with.store, self._stream(run_id))

    async def _agents(self, run_id: str) -> list[str]:
        first = (await self._recorded(run_id))[0].event
        return (
            [member.id for member in first.payload.team] if isinstance(first, e.RunStarted) else []
        )

    def _new_id(self) -> str:
        moment = datetime.fromtimestamp(self._with.clock.now_ms() / 1000, UTC)
        name = moment.strftime("run_%Y%m%d_%H%M%S")
        count, found = 1, name
        while found in self._streams:
            count += 1
            found = f"{name}_{count}"
        return found


_PATTERNS = "patterns"


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


def _landed(entries: list[e.Recorded], task_id: str | None) -> list[e.Landed]:
    """What is in the workspace still, in the order it came."""
    found: list[e.Landed] = []
    for entry in entries:
        match entry.event:
            case e.ProposalLanded(payload=landed):
                found.append(landed)
            case e.ProposalUndone(payload=undone):
                found = [each for each in found if each.task_id != undone.task_id]
            case _:
                pass
    return [each for each in found if task_id in (None, each.task_id)]


def _end_of(error: BaseException) -> e.End:
    if isinstance(error, RunDiverged):
        return e.End(f"diverged: {error}", done=False)
    if isinstance(error, AgentCanvasError):
        return e.End(f"error: {error}", done=False)
    return e.End(f"error: {type(error).__name__}: {error}", done=False)


def _first(error: BaseException) -> BaseException:
    """One reason is enough; the others are its consequences."""
    while isinstance(error, BaseExceptionGroup):
        others = [each for each in error.exceptions if not isinstance(each, asyncio.CancelledError)]
        error = (others or list(error.exceptions))[0]
    return error
