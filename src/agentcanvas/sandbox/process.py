"""A confined process: started, heard line by line, and ended so that nothing of it is left.

Whatever ends it - its own exit, a stop, a deadline, a silence - its whole tree goes with it, and a
scan afterwards counts who is still there: none. What the lines mean is left to their reader.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import ByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from agentcanvas.sandbox.confine import ON_LINUX, Command, Confinement, View
from agentcanvas.sandbox.floor import Floor
from agentcanvas.sandbox.limits import Breach, Cause, Limits
from agentcanvas.sandbox.output import Line, Output, Source
from agentcanvas.sandbox.process_tree import (
    Member,
    descendants,
    end_all,
    marked,
    member_of,
    namespace_of,
    send,
)
from agentcanvas.sandbox.start import Started, start
from agentcanvas.sandbox.watch import Watch

__all__ = [
    "Cause",
    "ConfinedProcess",
    "Ending",
    "Limits",
    "Line",
    "Source",
    "run_confined",
    "start_confined",
]

_LINES_WAITING = 256
_END_OF_PIPES_S = 2.0
_END_OF_ROOT_S = 5.0
_KILLED_BY = 128
_LOOKS_NEAR_THE_FLOOR = 10
_BY_THE_KERNEL = {
    _KILLED_BY + signal.SIGXCPU: Breach(Cause.CPU, "one process used up its processor time"),
    _KILLED_BY + signal.SIGXFSZ: Breach(Cause.FILE_SIZE, "it wrote a file larger than allowed"),
}


class Ending(msgspec.Struct, frozen=True):
    """How it ended. ``survivors`` counts processes still there afterwards; 0 is the promise.

    ``reason`` says by how much a limit was passed, when one was.
    """

    cause: Cause
    exit_code: int
    survivors: int
    dropped_bytes: int = 0
    reason: str = ""


@asynccontextmanager
async def start_confined(
    confinement: Confinement, view: View, command: Command, limits: Limits | None = None
) -> AsyncIterator[ConfinedProcess]:
    """Run a command; leaving the block, by whatever way, ends everything that it started."""
    limits = limits or Limits()
    tag = f"{command.tag or 'sandbox'}/{secrets.token_hex(8)}"
    # A start is not cancelled half-way: what has no owner yet would stay. It takes milliseconds.
    with anyio.CancelScope(shield=True):
        started = await start(confinement, view, replace(command, tag=tag), limits)
    process = ConfinedProcess(started, _written_to(view), tag=tag, limits=limits)
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.attend, command.stdin)
        try:
            yield process
        except Exception as error:  # noqa: BLE001 -- raised again below, outside the task group
            raised = error
        finally:
            with anyio.CancelScope(shield=True):
                await process.stop()
                await process.wait()
    if raised:
        raise raised


async def run_confined(
    confinement: Confinement, view: View, command: Command, limits: Limits | None = None
) -> tuple[Ending, tuple[Line, ...]]:
    """Run a command to its end and keep what it said."""
    async with start_confined(confinement, view, command, limits) as process:
        lines = tuple([line async for line in process])
        return await process.wait(), lines


def _written_to(view: View) -> tuple[Path, ...]:
    return (view.home, view.tmp, *((view.tree,) if view.writable else ()))


class ConfinedProcess:
    """A running command; iterate over it for its lines. Made by ``start_confined``."""

    def __init__(
        self, started: Started, folders: Sequence[Path], *, tag: str, limits: Limits
    ) -> None:
        self._process = started.process
        self._launch = started.launch
        self._root = started.root
        self._folders = folders
        self._root_member = member_of(self._root)
        self._namespace = namespace_of(self._root)
        self._tag = tag
        self._limits = limits
        self._floor = Floor(folders, limits)
        self._output = Output(limits.output_bytes)
        self._cause: Cause | None = None
        self._reason = ""
        self._told_to_end = anyio.Event()
        self._gone = anyio.Event()
        self._heard_out = anyio.Event()
        self._survivors = 0
        self._last_sign = anyio.current_time()
        self._delivering = 0
        self._lines_in: MemoryObjectSendStream[Line]
        self._lines_out: MemoryObjectReceiveStream[Line]
        self._lines_in, self._lines_out = anyio.create_memory_object_stream[Line](_LINES_WAITING)

    @property
    def pid(self) -> int:
        """The process from which everything inside descends, as the machine numbers it."""
        return self._root

    def __aiter__(self) -> AsyncIterator[Line]:
        """Give the lines of both sources in the order they were read, until all is over."""
        return self._lines_out.__aiter__()

    async def stop(self) -> int:
        """End it politely, then thoroughly; gives the number of processes still there, 0."""
        self._end(Cause.STOPPED)
        await self._gone.wait()
        return self._survivors

    async def wait(self) -> Ending:
        """Wait for its end; lines that nobody has read by now are dropped."""
        self._lines_out.close()
        await self._gone.wait()
        await self._heard_out.wait()
        code = self._process.returncode
        assert self._cause
        assert code is not None
        cause, reason = self._cause, self._reason
        if cause is Cause.EXITED and (breach := _BY_THE_KERNEL.get(code)):
            cause, reason = breach.cause, breach.sentence
        return Ending(cause, code, self._survivors, self._output.dropped, reason)

    def _end(self, cause: Cause, reason: str = "") -> None:
        if self._cause is None:
            self._cause, self._reason = cause, reason
        self._told_to_end.set()

    async def attend(self, stdin: str) -> None:
        """Feed it, hear it, and see to its end; ``start_confined`` does this in the background."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._feed, stdin)
            tasks.start_soon(self._listen)
            try:
                await self._first_cause()
            finally:
                with anyio.CancelScope(shield=True):
                    self._end(Cause.STOPPED)  # a cancelled attendant stops it, too
                    await self._end_everything()
                    await self._hear_out()
                    await self._deliver(self._output.held_back())
                    await self._close()
                tasks.cancel_scope.cancel()

    async def _first_cause(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._await_exit)
            tasks.start_soon(self._await_deadline)
            tasks.start_soon(self._await_silence)
            tasks.start_soon(self._await_breach)
            tasks.start_soon(self._await_floor)
            await self._told_to_end.wait()
            tasks.cancel_scope.cancel()

    async def _await_exit(self) -> None:
        code = await self._process.wait()
        # Whoever fills a disk between two looks fails by it, and the reason is not told by its end.
        breach = await anyio.to_thread.run_sync(self._floor.look) if code else None
        if breach:
            self._end(breach.cause, breach.sentence)
        self._end(Cause.EXITED)

    async def _await_deadline(self) -> None:
        if self._limits.deadline_s is not None:
            await anyio.sleep(self._limits.deadline_s)
            self._end(Cause.DEADLINE)

    async def _await_silence(self) -> None:
        if self._limits.silence_s is None:
            return
        heard = None
        while heard != self._last_sign:
            heard = self._last_sign
            await anyio.sleep_until(heard + self._limits.silence_s)
        self._end(Cause.SILENCE)

    async def _await_breach(self) -> None:
        if not ON_LINUX:
            return
        watch = Watch(self._root, self._folders, self._limits)
        while True:
            await anyio.sleep(self._limits.poll_s)
            # Nobody waits for a look at the disk when the process has ended meanwhile.
            breach = await anyio.to_thread.run_sync(watch.look, abandon_on_cancel=True)
            if breach:
                self._end(breach.cause, breach.sentence)

    async def _await_floor(self) -> None:
        """Look often when the disk is nearly full: much is written in half a second."""
        while True:
            often = _LOOKS_NEAR_THE_FLOOR if self._floor.is_near else 1
            await anyio.sleep(self._limits.poll_s / often)
            if self._floor.is_low:
                breach = await anyio.to_thread.run_sync(self._floor.look, abandon_on_cancel=True)
                if breach:
                    self._end(breach.cause, breach.sentence)

    async def _end_everything(self) -> None:
        """Ask all to end, then end the root, which takes all along; then look who is left."""
        try:
            greedy = self._cause is not None and self._cause.is_greed
            if self._process.returncode is None and not greedy:
                await self._ask_to_end()
            self._end_root()
            with anyio.move_on_after(_END_OF_ROOT_S):
                await self._process.wait()
            self._survivors = await end_all(self._left)
            await self._process.wait()
        finally:
            self._gone.set()

    def _end_root(self) -> None:
        if self._root_member and self._process.returncode is None:
            send([self._root_member], self._launch.end_with)
        if not self._launch.wires:  # nobody in there keeps the others together
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _ask_to_end(self) -> None:
        inside = await anyio.to_thread.run_sync(descendants, self._root)
        if inside:
            send(inside, signal.SIGTERM)
            with anyio.move_on_after(self._limits.grace_s):
                await self._process.wait()

    async def _close(self) -> None:
        self._lines_in.close()
        self._heard_out.set()
        await self._process.aclose()

    def _left(self) -> list[Member]:
        """Look for processes by every mark they have."""
        return marked(self._tag, self._namespace)

    async def _feed(self, text: str) -> None:
        assert self._process.stdin
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            if text:
                await self._process.stdin.send(text.encode("utf-8", "surrogateescape"))
            await self._process.stdin.aclose()

    async def _listen(self) -> None:
        assert self._process.stdout
        assert self._process.stderr
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, self._process.stdout, Source.STDOUT)
                tasks.start_soon(self._read, self._process.stderr, Source.STDERR)
        finally:
            self._heard_out.set()

    async def _hear_out(self) -> None:
        """Wait until the pipes are empty; one that somebody outside still holds is given up."""
        while not self._heard_out.is_set():
            with anyio.move_on_after(_END_OF_PIPES_S):
                await self._heard_out.wait()
            if not self._delivering:
                return

    async def _read(self, stream: ByteReceiveStream, source: Source) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                data = await stream.receive()
                self._last_sign = anyio.current_time()
                await self._deliver(self._output.feed(source, data))
        await self._deliver(self._output.finish(source))

    async def _deliver(self, lines: list[Line]) -> None:
        self._delivering += 1
        try:
            for line in lines:
                await self._lines_in.send(line)
        except anyio.BrokenResourceError:
            pass  # nobody listens any more
        finally:
            self._delivering -= 1
            self._last_sign = anyio.current_time()
