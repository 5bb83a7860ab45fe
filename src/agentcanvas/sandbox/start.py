"""Starting a confined process: the wires to the program that confines, and what comes over them.

By the time this is done, the limits are in force, the door is open, and it is known from which
process all others descend. Hearing and ending it is left to ``process``.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass

import anyio
from anyio.abc import Process

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import Command, Confinement, Door, Launch, View, Wires
from agentcanvas.sandbox.limits import Limits, impose
from agentcanvas.sandbox.process_tree import end_leftovers

_START_S = 30.0


@dataclass(frozen=True)
class Started:
    """A started program, with the process from which all others descend."""

    process: Process
    launch: Launch
    root: int


class _Wiring:
    """Both ends of every wire; ours stay open until the start is over, theirs until it begins."""

    def __init__(self) -> None:
        self._ours, self._theirs = ExitStack(), ExitStack()
        self.report, told_by = self._pipe(self._ours, self._theirs)
        waits_on, self.go = self._pipe(self._theirs, self._ours)
        reads_from, self.calls = self._pipe(self._theirs, self._theirs)
        self.door, hands_over = socket.socketpair()
        self._ours.enter_context(self.door)
        self._theirs.enter_context(hands_over)
        self.wires = Wires(told_by, waits_on, reads_from, hands_over.fileno())

    def _pipe(self, reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
        reading, writing = os.pipe()
        reader.callback(os.close, reading)
        writer.callback(os.close, writing)
        return reading, writing

    def keep_go_open(self) -> None:
        """Give them the writing end of ``go``, too: our death is not the word to go.

        Without the word the command never starts, and what has begun waits to be found by its tag.
        """
        both = os.open(f"/proc/self/fd/{self.wires.go}", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(both, self.wires.go, inheritable=False)
        os.close(both)

    def let_go_of_theirs(self) -> None:
        """Close what the started program has by now, so that its end is noticed."""
        self._theirs.close()

    def close(self) -> None:
        """Close everything."""
        self._theirs.close()
        self._ours.close()


async def start(confinement: Confinement, view: View, command: Command, limits: Limits) -> Started:
    """Start the program that confines."""
    with closing(_Wiring()) as wiring:
        launch = confinement.launch(view, command, wiring.wires)
        if launch.calls:  # smaller than what a pipe holds: nobody needs to read it yet
            os.write(wiring.calls, launch.calls)
        if launch.goes_at_the_end:
            wiring.keep_go_open()
        process = await _opened(launch)
        wiring.let_go_of_theirs()
        if not launch.wires:
            return Started(process, launch, process.pid)
        async with _ended_if_this_fails(process, command.tag):
            root = await _reported_root(process, wiring.report)
            impose(root, limits, counted_apart=launch.counted_apart)
            with suppress(BrokenPipeError):  # it has failed; its words and exit code tell
                os.write(wiring.go, b"!")
            if launch.hands_out_listener and view.door:
                await _admit(view.door, wiring.door)
    return Started(process, launch, root)


async def _opened(launch: Launch) -> Process:
    try:
        return await anyio.open_process(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            pass_fds=launch.wires,
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(f"'{launch.argv[0]}' could not be started: {error}") from error


@asynccontextmanager
async def _ended_if_this_fails(process: Process, tag: str) -> AsyncIterator[None]:
    try:
        with anyio.fail_after(_START_S):
            yield
    except (SandboxError, TimeoutError) as error:
        process.terminate()  # both kinds of starter take along what they have begun, if they can
        await process.aclose()
        await end_leftovers(tag)
        if isinstance(error, TimeoutError):
            raise SandboxError(f"The confinement did not start within {_START_S:g} s") from error
        raise


async def _reported_root(process: Process, reading: int) -> int:
    """Read what the program reports: its child, or nothing when it failed before it had one."""
    told = b""
    while not told.rstrip().endswith(b"}"):
        await anyio.wait_readable(reading)
        if not (part := os.read(reading, 4096)):
            break
        told += part
    with suppress(ValueError, KeyError):
        return int(json.loads(told)["child-pid"])
    return process.pid


async def _admit(door: Door, wire: socket.socket) -> None:
    """Take the listener that was made inside; a program that failed has made none."""
    await anyio.wait_readable(wire)
    _, descriptors, _, _ = socket.recv_fds(wire, 1, 1)
    for descriptor in descriptors:
        door.admit(socket.socket(fileno=descriptor))
