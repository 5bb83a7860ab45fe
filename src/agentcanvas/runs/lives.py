"""The runs that this process carries out: each a task that can be stopped, and whose end is said.

What a run does is in ``execution``. Whatever goes wrong in one ends that one and no other; a
store that cannot keep anything for now, as on a full disk, interrupts it (D25).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from agentcanvas.errors import (
    AgentCanvasError,
    RunDiverged,
    SandboxError,
    StoreBusy,
    StoreError,
    StoreFull,
)
from agentcanvas.hub.alarm import happened_by
from agentcanvas.runs import events as e
from agentcanvas.runs import housekeeping
from agentcanvas.runs.equipment import Equipment
from agentcanvas.runs.execution import Execution
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.register import Register
from agentcanvas.runs.snapshots import WORTH_KEEPING
from agentcanvas.runs.state import RunStatus
from agentcanvas.sandbox.cleanup import Plan, Standing
from agentcanvas.sandbox.pick import Picked
from agentcanvas.sandbox.selection import find_repository
from agentcanvas.store import Store

_log = logging.getLogger(__name__)

_AGAIN_AFTER_S = 5.0
"""How long to wait for a store that could not keep something."""


CleanUp = Callable[[Plan], Coroutine[Any, Any, None]]


class _Life:
    """A run that is carried out."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.over = anyio.Event()
        self.is_ending = False
        self.stop_reason = ""
        self.execution: Execution | None = None


class Lives:
    """All runs under way."""

    def __init__(
        self,
        equipment: Equipment,
        register: Register,
        lookout: Lookout,
        tasks: anyio.abc.TaskGroup,
        clean_up: CleanUp,
    ) -> None:
        """``clean_up`` carries out, beside whatever goes on, what the end of a run announced."""
        self._with = equipment
        self._clean_up = clean_up
        self._register = register
        self._lookout = lookout
        self._tasks = tasks
        self._lives: dict[str, _Life] = {}
        self._leaving = asyncio.Event()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._lives

    def execution(self, run_id: str) -> Execution | None:
        """What carries a run out, if anything does."""
        life = self._lives.get(run_id)
        return None if life is None else life.execution

    def waits_for(self, run_id: str) -> str:
        """For whom a run under way waits."""
        execution = self.execution(run_id)
        return "" if execution is None else execution.standing().sentence.removeprefix("waits for ")

    def is_busy(self, run_id: str) -> bool:
        """Whether a run goes on by itself, without anybody saying anything."""
        life = self._lives.get(run_id)
        if life is None or life.is_ending:
            return False
        return life.execution is None or not life.execution.is_parked

    # -- beginning and ending --------------------------------------------------------------------

    def begin(self, run_id: str, order: RunOrder, picked: Picked) -> None:
        """Carry a run out, from its start or from where it was."""
        assert run_id not in self._lives, "a run has one life at a time"
        life = self._lives[run_id] = _Life()
        self._tasks.start_soon(self._live, life, run_id, order, picked)

    async def stop(self, run_id: str, reason: str) -> None:
        """End a run; returns when nothing of it is left running."""
        life = self._lives.get(run_id)
        if life is not None:
            life.stop_reason = reason
            life.scope.cancel()
            await life.over.wait()

    async def leave(self) -> None:
        """Cut all of them off, to go on another time."""
        self._leaving.set()
        for life in self._lives.values():
            life.scope.cancel()
        for life in list(self._lives.values()):
            await life.over.wait()

    async def _live(self, life: _Life, run_id: str, order: RunOrder, picked: Picked) -> None:
        end: e.End | StoreError | None = None
        try:
            with life.scope:
                end = await self._to_the_end(life, run_id, order, picked)
        finally:
            # Before its end is written: whoever follows the run looks then, and nothing is
            # written later that would make them look again.
            life.is_ending = True
            with anyio.CancelScope(shield=True):
                await self._close(life, run_id, end)
                del self._lives[run_id]
                life.over.set()

    async def _to_the_end(
        self, life: _Life, run_id: str, order: RunOrder, picked: Picked
    ) -> e.End | StoreError:
        """Why a run has ended, or what the store cannot do for now, which only interrupts it."""
        try:
            stream = self._register.stream(run_id)
            life.execution = Execution(
                self._with, run_id, stream, order, picked, lookout=self._lookout
            )
            return await life.execution.run()
        except Exception as error:  # noqa: BLE001 - whatever it is ends this run, and says so
            first = _first(error)
            return first if isinstance(first, StoreFull | StoreBusy) else _end_of(first)

    # -- saying it -------------------------------------------------------------------------------

    async def _close(self, life: _Life, run_id: str, end: e.End | StoreError | None) -> None:
        if life.stop_reason:
            end = e.End(life.stop_reason, done=False)
        try:
            if isinstance(end, e.End):
                going = await self._tidied(self._register.logbook(run_id))
                await self.end(run_id, end)
                if going is not None:
                    self._tasks.start_soon(self._clean_up, going)
            else:
                await self._interrupt(run_id, end)
        except StoreError as problem:  # of this run, not of the others
            self._tasks.start_soon(self._interrupt_later, run_id, problem)

    async def end(self, run_id: str, end: e.End) -> None:
        """Say why a run ended, and take away what was asked of anybody and what came too late."""
        ended = e.RunEnded(
            actor="engine",
            provenance=e.Provenance.SYSTEM,
            payload=msgspec.structs.replace(end, head=await self._head()),
        )
        numbers = [number for number, _ in await mail_of(self._with.store, {run_id})]
        log = self._register.logbook(run_id)
        await log.transact(
            lambda unit: (
                [unit.take_over(number) for number in numbers],
                log.note(unit.transaction, ended),
            )
        )
        await self._register.account(run_id, keep_after=WORTH_KEEPING)

    async def _interrupt(self, run_id: str, why: StoreError | None) -> None:
        """Say that nobody carries a run out any more."""
        if (await self._register.state(run_id)).status is RunStatus.RUNNING:
            warned = [] if why is None else [e.Warned(f"It was interrupted: {why}")]
            await self._register.logbook(run_id).write(
                *(
                    e.WarningGiven(actor="engine", provenance=e.Provenance.SYSTEM, payload=w)
                    for w in warned
                ),
                e.RunInterrupted(actor="engine", provenance=e.Provenance.SYSTEM),
            )

    async def _interrupt_later(self, run_id: str, why: StoreError) -> None:
        """Say it as soon as the store can keep it again.

        Until we leave, or where it is damaged or closed: whoever opens it next finds the run cut
        off.
        """
        clock = self._with.clock
        if isinstance(why, StoreFull):
            # Not an event: there is no room to record one.
            _log.warning(
                "The disk is full, so %s is interrupted, and that cannot be recorded yet. Make "
                "room, for example: agentcanvas sandbox clean; then: agentcanvas resume %s",
                run_id,
                run_id,
            )
        while run_id not in self._lives:
            if await happened_by(self._leaving, clock, clock.monotonic() + _AGAIN_AFTER_S):
                return None
            try:
                return await self._interrupt(run_id, why)
            except (StoreFull, StoreBusy):
                continue
            except StoreError:
                return None
        return None

    async def _tidied(self, log: Logbook) -> Plan | None:
        """Give up what a run needs no more, and announce which old runs go (D15)."""
        workspace, state_of = self._with.workspace, self._register.state
        own = housekeeping.standing_of(await state_of(log.run_id), is_ending=True)
        try:
            if own is Standing.SETTLED:
                await housekeeping.retire(workspace, log.run_id)
            standings = {
                run_id: housekeeping.standing_of(await state_of(run_id))
                for run_id in self._register
            }
            going = await housekeeping.plan(workspace, {**standings, log.run_id: own})
        except (AgentCanvasError, OSError):
            return None  # a disk that cannot be read; that must not keep a run from ending
        if not going.going:
            return None
        await log.write(housekeeping.announcement(going))
        return going

    async def _head(self) -> str | None:
        try:
            repository = await anyio.to_thread.run_sync(find_repository, self._with.workspace)
        except SandboxError:
            return None  # it was broken meanwhile; that must not keep a run from ending
        return repository.head if repository else None


async def mail_of(store: Store, run_ids: Collection[str]) -> list[tuple[int, str]]:
    """Number and recipient of what waits for anybody in these runs."""
    rows = await store.read(
        lambda look: look.query(
            "SELECT seq, recipient, session FROM hub_letters INDEXED BY hub_letters_waiting "
            "WHERE state = 0"
        )
    )
    return [(number, recipient) for number, recipient, session in rows if session in run_ids]


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
