"""The engine of a workspace: starts runs, ends them, goes on with them, and knows how they stand.

An ``Office`` in its own process (D1). Which runs there are is in ``register``, what is known of
them in ``reading``, those under way in ``lives``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
from msgspec import UNSET

from agentcanvas.errors import (
    AgentCanvasError,
    IllegalTransition,
    NotFound,
    RunDiverged,
    ValidationError,
)
from agentcanvas.flows.reach import reach_of
from agentcanvas.flows.team import Agent
from agentcanvas.hub.guard import is_agent
from agentcanvas.hub.person_inbox import PersonInbox
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs import history, housekeeping, shelf
from agentcanvas.runs.equipment import Equipment, sound_flow
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.lives import Lives, mail_of
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.runs.office import RunOrder, RunSummary, TranscriptEntry, UndoneTask, Window
from agentcanvas.runs.people import engine_of
from agentcanvas.runs.reading import Reading
from agentcanvas.runs.register import Register
from agentcanvas.runs.showing import REVIEW, Showing
from agentcanvas.runs.shown import ShownProposal, Side
from agentcanvas.runs.state import RunState, RunStatus
from agentcanvas.runs.undoing import landed_by, take_back
from agentcanvas.sandbox.cleanup import Plan, end_strays
from agentcanvas.sandbox.paths import sanitised
from agentcanvas.sandbox.pick import Picked
from agentcanvas.sandbox.selection import find_repository

Confine = Callable[[bool], Awaitable[Picked]]
"""Finds the confinement to run with; True asks for none at all."""

_PATTERNS = "patterns"
_RESUMABLE = frozenset({RunStatus.INTERRUPTED, RunStatus.PARKED, RunStatus.STOPPED})


class Engine:
    """All runs of one workspace: ``async with Engine.open(equipment, confine) as engine``."""

    def __init__(self, equipment: Equipment, confine: Confine, tasks: anyio.abc.TaskGroup) -> None:
        """Prepare; ``open`` is the door."""
        store, broker, clock = equipment.store, equipment.broker, equipment.clock
        self._with = equipment
        self._confine = confine
        self._inbox = PersonInbox(equipment.hub, broker, store, clock)
        self._register = Register(store, broker, clock)
        self._lookout = Lookout(equipment.workspace, self._tell)
        self._showing = Showing(self._lookout, self._register.recorded, self.asks)
        self._lives = Lives(equipment, self._register, self._lookout, tasks, self._clean_up)
        self._reading = Reading(self._register, self._lives, self._is_answered, clock)
        self._beginning = anyio.Lock()

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
                    await engine._lives.leave()
        if raised is not None:
            raise raised

    # -- records ---------------------------------------------------------------------------------

    async def runs(self) -> tuple[RunSummary, ...]:
        """Every run, the newest first."""
        return await self._reading.runs()

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        return await self._reading.state(run_id)

    async def window(self, run_id: str, *, last: int = 500, before: int | None = None) -> Window:
        """How a run stands with the last of its events, or the last before a number."""
        return await self._reading.window(run_id, last=last, before=before)

    async def order(self, run_id: str) -> RunOrder:
        """What a run was started with."""
        return await history.order_of(self._with.store, self._register.stream(run_id))

    def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[e.Recorded]:
        """What happened, in order; with ``follow`` it goes on until the run ends or is parked."""
        return self._reading.events(run_id, after=after, follow=follow)

    def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        """What an agent, or every agent, said and did; followed as ``events`` are."""
        return self._reading.transcript(run_id, agent, after=after, follow=follow)

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
        async with self._beginning:
            run_id = self._register.new_id()
            stream = f"{sanitised(order.flow)}/{run_id}"
            await self._announce(order, self._register.logbook(run_id, stream))
            self._register.enter(run_id, stream)
        self._lives.begin(run_id, order, picked)
        return run_id

    async def resume(self, run_id: str) -> None:
        """Go on with a run that was interrupted, stopped or parked."""
        async with self._beginning:  # or two who ask at once would give it two lives
            if run_id in self._lives:
                return
            status = (await self.state(run_id)).status
            if status not in _RESUMABLE:
                raise IllegalTransition(
                    f"{run_id} is {status} and cannot go on; begin it again with: "
                    f"agentcanvas retry {run_id}"
                )
            order = await self.order(run_id)
            await self._refuse_changed_patterns(run_id, order)
            picked = await self._confine(order.unsafe)
            log = self._register.logbook(run_id)
            await log.write(e.RunResumed(actor="engine", provenance=e.Provenance.SYSTEM))
            self._lives.begin(run_id, order, picked)

    async def retry(self, run_id: str) -> str:
        """Begin the same again as a new run."""
        order = await self.order(run_id)
        return await self.start(msgspec.structs.replace(order, parent_run_id=run_id))

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        """End a run and keep what is there; returns when nothing of it is left running."""
        async with self._beginning:  # one that is about to go on is stopped when it does
            if run_id not in self._lives:
                state = await self.state(run_id)
                if state.status.is_over:
                    raise IllegalTransition(f"{run_id} has ended already: {state.reason}")
                await self._lives.end(run_id, e.End(reason, done=False))
                return
        await self._lives.stop(run_id, reason)

    async def stop_work(
        self, run_id: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """End what an agent does now, or what is done for a task; the run goes on without it."""
        self._register.stream(run_id)
        execution = self._lives.execution(run_id)
        if execution is None:
            raise IllegalTransition(f"Nothing is under way in {run_id}.")
        return await execution.stop_work("stopped by you", agent=agent, task_id=task_id)

    async def tell(self, run_id: str, agent: str, text: str) -> None:
        """Say something to an agent of a run that goes on; it hears it with its next turn."""
        state = await self.state(run_id)
        if state.status.is_over:
            raise IllegalTransition(
                f"{run_id} has ended: {state.reason}. Say it to a new run, which starts from your "
                'files as they are now: agentcanvas run "…"'
            )
        if agent not in state.names:
            known = ", ".join(sorted(state.names))
            raise NotFound(f"{run_id} has no agent {agent}; it has: {known}")
        if not text.strip():
            raise ValidationError("There is nothing to say: the text is empty.")
        log, told = self._register.logbook(run_id), e.Told(agent, text.strip())
        event = e.WorkerTold(actor="person:you", provenance=e.Provenance.USER_INPUT, payload=told)
        (number,) = await log.transact(lambda unit: log.note(unit.transaction, event))
        execution = self._lives.execution(run_id)
        if execution is not None:
            execution.note_told(told, number)

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        """Take back what a task landed, or all that a run landed, the latest first."""
        landed = landed_by(await self._register.recorded(run_id), task_id)
        if not landed:
            what = f"The task {task_id} of {run_id}" if task_id else run_id
            raise ValidationError(f"{what} has nothing in the workspace that could be taken back.")
        log = self._register.logbook(run_id)
        return await take_back(landed, Ground(self._with.workspace, log, self._lookout), log)

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
                if ask.run_id in self._register and ask.run_id not in self._lives:
                    await self._refuse_changed_patterns(ask.run_id, await self.order(ask.run_id))
        run_id = await self._inbox.answer(await self._inbox.persons(), ask_id, answer)
        if run_id not in self._lives and run_id in self._register:
            state = await self.state(run_id)
            if state.status is RunStatus.PARKED:
                await self.resume(run_id)

    # -- beginning -------------------------------------------------------------------------------

    async def _announce(self, order: RunOrder, log: Logbook) -> None:
        flow = sound_flow(order, self._with.repertoire)
        repository = await anyio.to_thread.run_sync(find_repository, self._with.workspace)
        team = tuple(map(_member, flow.agents))
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
        async for row in history.rows(self._with.store, self._register.stream(run_id)):
            if row.kind == _PATTERNS:
                then = msgspec.json.decode(row.body)["patterns"]
                if then != now:
                    raise RunDiverged(
                        f"{run_id} was begun with another version of its patterns or prompts and "
                        f"cannot go on with these; begin it again with: agentcanvas retry {run_id}"
                    )
                return

    # -- opening -----------------------------------------------------------------------------------

    async def _take_stock(self, *, resume: bool) -> None:
        """Find the runs; those that nobody carries out any more are interrupted."""
        await end_strays(self._with.workspace)
        await self._register.load()
        await self._take_back_turns()
        await self._watch_what_waits()
        for run_id in self._register:
            state = await self.state(run_id)
            if state.status is RunStatus.RUNNING:
                log = self._register.logbook(run_id)
                await log.write(e.RunInterrupted(actor="engine", provenance=e.Provenance.SYSTEM))
            answered = state.status is RunStatus.PARKED and await self._is_answered(run_id)
            if answered or (resume and state.status in (RunStatus.RUNNING, RunStatus.INTERRUPTED)):
                try:
                    await self.resume(run_id)
                except AgentCanvasError as problem:  # of this run, not of the others
                    await self._warn(run_id, f"It cannot go on: {problem}")

    async def _warn(self, run_id: str, sentence: str) -> None:
        """Say it in a run's log, unless that is what was said there last."""
        warning = e.WarningGiven(
            actor="engine", provenance=e.Provenance.SYSTEM, payload=e.Warned(sentence)
        )
        if (await self._register.recorded(run_id))[-1].event != warning:
            await self._register.logbook(run_id).write(warning)

    async def _watch_what_waits(self) -> None:
        """Reviews that wait from before; who carries out a run watches what it asks about."""
        for ask in await self.asks():
            if ask.proposal is UNSET or ask.run_id not in self._register:
                continue
            task_id = ask.scope.removeprefix(REVIEW)
            with suppress(AgentCanvasError):  # a damaged folder; its review will say so
                kept = await shelf.take(self._with.workspace, ask.run_id, ask.proposal)
                told = [
                    entry.event.payload
                    for entry in await self._register.recorded(ask.run_id)
                    if isinstance(entry.event, e.ProposalRechecked)
                    and entry.event.payload.proposal_id == ask.proposal
                ]
                await self._lookout.watch(task_id, kept.ref, told=told[-1] if told else None)
        await self._lookout.look_again()

    async def _clean_up(self, going: Plan) -> None:
        """Carry out what the end of a run announced, and drop the images that nobody needs now."""
        workspace, now_ms = self._with.workspace, self._with.clock.now_ms()
        await housekeeping.carry_out(workspace, going)
        with suppress(AgentCanvasError, OSError):  # they go another time
            idle = await housekeeping.idle_images(workspace, self, now_ms=now_ms)
            await housekeeping.drop_images(workspace, idle)

    async def _tell(self, run_id: str, event: e.RunEvent) -> None:
        await self._register.logbook(run_id).write(event)

    async def _take_back_turns(self) -> None:
        """Nobody is at work yet; what lies there for agents is sent anew when its run goes on.

        Until then another run with an agent of that name must not begin it.
        """
        mail = await mail_of(self._with.store, tuple(self._register))
        numbers = [number for number, recipient in mail if is_agent(recipient)]
        if numbers:
            await self._with.broker.transact(
                lambda unit: [unit.take_over(number) for number in numbers]
            )

    async def _is_answered(self, run_id: str) -> bool:
        """Whether a person's answer lies there that the run has not taken up yet."""
        waiting = await self._with.broker.waiting(engine_of(run_id))
        return any(envelope.sender.id.startswith("person:") for _, envelope in waiting)


def _member(agent: Agent) -> e.Member:
    reach = reach_of(agent.runtime)
    return e.Member(agent.id, agent.label, agent.role, reach.network, reach.variables)
