"""Following one run in the foreground until it rests: showing, answering, and Ctrl-C.

Ctrl-C once stops the run and keeps what is there, twice ends at once; a run that only waits for the
person is left waiting.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import Any, Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from agentcanvas.cli.live.answering import Answering, Reply
from agentcanvas.cli.live.ending import STOPPED_BY_PERSON
from agentcanvas.cli.live.screen import Screen
from agentcanvas.cli.live.view import RESTING, RunView, after, heard
from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs.office import Office
from agentcanvas.runs.state import RunStatus

T = TypeVar("T")

_LOOK_AGAIN_S: Final = 0.1
_LOOKS: Final = 100
"""How often to look whether an answered run goes on; ten seconds in all."""


class ExitCode(IntEnum):
    """What the command line says about a run when it ends."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    WAITING = 3
    NOT_REACHED = 4
    INTERRUPTED = 130


class Following:
    """One run, one screen, and perhaps a person who answers."""

    def __init__(
        self,
        office: Office,
        run_id: str,
        screen: Screen,
        clock: Clock,
        answering: Answering | None = None,
    ) -> None:
        self._office = office
        self._run_id = run_id
        self._screen = screen
        self._clock = clock
        self._answering = answering
        self._left: set[str] = set()
        self._sent: set[str] = set()
        self._taken_up = True
        self._question: anyio.CancelScope | None = None
        self._stopping = False
        self._stopped = anyio.Event()
        self._hearing: anyio.CancelScope | None = None
        self._happened = anyio.Event()
        self._leaving = False
        self.view = RunView(run_id=run_id)

    async def catch_up(self) -> RunView:
        """Take in what happened before, without showing it."""
        async for recorded in self._office.events(self._run_id, follow=False):
            self.view = after(self.view, recorded)
        return self.view

    async def answer(self, ask: PersonAsk, content: Any) -> None:
        """Answer without asking anybody, on behalf of the person."""
        await self._office.answer(ask.ask_id, PersonAnswer(content, person=ask.person))
        self._sent.add(ask.ask_id)

    def expect(self) -> None:
        """Say that the run was told to go on, so that it is worth listening."""
        self._taken_up = False

    async def until_it_rests(self, first: PersonAsk | None = None) -> ExitCode:
        """Show and answer until the run has ended or waits; ``first`` is asked before all else."""
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._heed_interrupts, tasks)
                if self._screen.wants_transcripts:
                    tasks.start_soon(self._listen)
                if first is None or await self._attend(first) is Reply.ANSWERED:
                    await self._follow()
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise first_of(several) from None
        return self._exit_code()

    def _exit_code(self) -> ExitCode:
        if self._leaving or self._stopping:
            return ExitCode.INTERRUPTED
        return {
            RunStatus.DONE: ExitCode.DONE,
            RunStatus.STOPPED: ExitCode.NOT_REACHED,
            RunStatus.INTERRUPTED: ExitCode.ERROR,
        }.get(self.view.status, ExitCode.WAITING)

    # --------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        looks = _LOOKS
        while looks:
            before = self.view.seq
            with anyio.CancelScope() as self._hearing:
                async with closing(self._office.events(self._run_id, after=before)) as events:
                    async for recorded in events:
                        self._see(recorded)
                        if isinstance(recorded.event, e.AskedPerson):
                            await self._attend_to(recorded.event.payload.ask_id)
            if self._stopping:
                await self._see_the_end()
            if self._is_over():
                return
            if await self._attend_rest() and not self._will_go_on():
                return
            looks = looks - 1 if self.view.seq == before else _LOOKS
            if self.view.seq == before:
                await self._clock.sleep(_LOOK_AGAIN_S)

    async def _see_the_end(self) -> None:
        """Take in what stopping brings about, also when the run was about to rest anyway."""
        await self._stopped.wait()
        async for recorded in self._office.events(self._run_id, after=self.view.seq, follow=False):
            self._see(recorded)

    def _will_go_on(self) -> bool:
        """Whether an answer of ours is on its way, or was heard but not acted upon yet."""
        return bool(self._sent) or not self._taken_up

    def _is_over(self) -> bool:
        at_rest = self.view.ended or self.view.status is RunStatus.INTERRUPTED
        return self._stopping or self._leaving or (at_rest and not self._will_go_on())

    def _see(self, recorded: e.Recorded) -> None:
        self.view = after(self.view, recorded)
        self._happened.set()
        self._happened = anyio.Event()
        match recorded.event:
            case e.AnsweredByPerson(payload=answered):
                self._sent.discard(answered.ask_id)
                self._taken_up = False
            case e.AskedPerson() | e.RunParked():
                pass
            case e.RunEnded():
                self._sent.clear()
                self._taken_up = True
            case _:
                self._taken_up = True
        self._screen.show(self.view, recorded)

    async def _listen(self) -> None:
        """Show what is said, and again whenever a run goes on that had rested."""
        last = 0
        while True:
            seen = self.view.seq
            said = self._office.transcript(self._run_id, after=last, follow=True)
            async with closing(said) as entries:
                async for entry in entries:
                    last = entry.seq
                    self.view = heard(self.view, entry)
                    self._screen.show(self.view)
            while self.view.seq == seen:
                await self._happened.wait()

    # Questions ----------------------------------------------------------------------------------

    async def _attend_rest(self) -> bool:
        """Put every question that is still open; whether any was there."""
        waiting = await self._office.asks(self._run_id)
        for ask in waiting if self._answering is not None else ():
            if ask.ask_id not in self._left and not self._is_over():
                await self._attend(ask)
        return bool(waiting)

    async def _attend_to(self, ask_id: str) -> None:
        if self._answering is None:
            return
        for ask in await self._office.asks(self._run_id):
            if ask.ask_id == ask_id:
                await self._attend(ask)

    async def _attend(self, ask: PersonAsk) -> Reply:
        assert self._answering is not None
        reply = Reply.LEFT
        with self._screen.aside(), anyio.CancelScope() as self._question:
            reply = await self._answering.attend(ask, self.view)
        self._question = None
        (self._sent if reply is Reply.ANSWERED else self._left).add(ask.ask_id)
        return reply

    # Ctrl-C -------------------------------------------------------------------------------------

    async def _heed_interrupts(
        self,
        tasks: TaskGroup,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self._answering is not None and self._answering.terminal.is_away:
                    continue  # the pager or editor was meant
                if self._stopping or self._waits_only():
                    break
                self._begin_to_stop(tasks)
        if self._stopping:
            # Agents that will not go are given a few seconds; a third Ctrl-C does not wait.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._leaving = True
        tasks.cancel_scope.cancel()

    def _begin_to_stop(self, tasks: TaskGroup) -> None:
        self._stopping = True
        self._screen.say("Stopping; what is there is kept. Press Ctrl-C again to end at once.")
        if self._question is not None:
            self._question.cancel()
        tasks.start_soon(self._stop)

    def _waits_only(self) -> bool:
        asking = self._question is not None and not self.view.at_work
        return asking or self.view.status in RESTING

    async def _stop(self) -> None:
        try:
            await self._office.stop(self._run_id, reason=STOPPED_BY_PERSON)
        except AgentCanvasError as error:
            # It may have ended by itself meanwhile; the events say how.
            self._screen.say(str(error))
        finally:
            self._stopped.set()
            # Where the disk has no room for it there is no event that would tell of the end.
            if self._hearing is not None:
                self._hearing.cancel()


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Leave a stream behind in good order, wherever the reading of it ends."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def first_of(raised: BaseException) -> BaseException:
    """One reason is enough for a person; the others are its consequences."""
    found = raised
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
