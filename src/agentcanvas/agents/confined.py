"""Running programs of a turn: where they run, what they get, how their end reads.

Shared by the runtimes that start processes. The process itself, and that nothing of it is left, is
the matter of ``agentcanvas.sandbox``.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
from msgspec import Struct

from agentcanvas.agents.private import place_private
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Image, Outcome, Turn
from agentcanvas.clock import Clock
from agentcanvas.errors import ExecutionError, SandboxError
from agentcanvas.protocol.records import ErrorEvent, FailureClass
from agentcanvas.protocol.secret_values import is_hidden
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.process import Cause, Ending, Limits, Line, start_confined
from agentcanvas.sandbox.trees import passing_folder

NOT_FOUND = 127
_KILLED_BY = 128
_PRIVATE = frozenset({"HOME", "TMPDIR", "PWD", "SHELL", "GIT_CEILING_DIRECTORIES"})

Hear = Callable[[Line], None]


def tag_of(view: View) -> str:
    """The mark of all processes of an agent in a run; ``end_leftovers`` finds them by it (D18).

    The private HOME belongs to one agent in one run of one workspace; ids alone could be the same
    in another workspace of this machine.
    """
    return str(view.home)


@asynccontextmanager
async def place_of(turn: Turn) -> AsyncIterator[View]:
    """Where the turn runs; one without files gets an empty place that is gone afterwards."""
    if turn.place is not None:
        gone = [p for p in (turn.place.tree, turn.place.home, turn.place.tmp) if not p.is_dir()]
        if gone:
            raise SandboxError(
                f"{gone[0]} is gone, where {turn.agent_id} was to work; prepare its sandbox again"
            )
        yield turn.out.through(turn.place)
        return
    with passing_folder("agentcanvas-") as folder:
        yield turn.out.through(_empty_place(folder))


def _empty_place(folder: Path) -> View:
    root = folder.resolve()
    for part in ("workspace", "tree", "home", "tmp"):
        (root / part).mkdir()
    return View(root / "workspace", root / "tree", root / "home", root / "tmp")


async def run_heard(
    confinement: Confinement,
    clock: Clock,
    view: View,
    command: Command,
    *,
    limits: Limits,
    hear: Hear,
    emit: Emit,
) -> Ending:
    """Run a command to its end, each line heard as it comes; cancelling it leaves nothing.

    The clock is held: a process takes real time, and a virtual clock must not run ahead of it.
    """
    tagged = replace(command, tag=tag_of(view))
    clock.hold()
    try:
        async with start_confined(confinement, view, tagged, limits) as process:
            try:
                async for line in process:
                    hear(line)
                return await process.wait()
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    left = await process.stop()
                if left:
                    emit(
                        ErrorEvent(
                            error_class=FailureClass.CRASH, message=survived(left), **UNSTAMPED
                        )
                    )
                raise
    finally:
        clock.release()


class Telling:
    """Passes lines on one by one; a flood in blocks, so that it does not become a flood of events.

    ``close`` passes on what still waits.
    """

    _ONE_BY_ONE = 2_000
    _BLOCK = 65_536

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told = 0
        self._waiting: list[str] = []
        self._size = 0

    def line(self, text: str) -> None:
        """Take one line."""
        if self._told < self._ONE_BY_ONE:
            self._told += 1
            self._tell(text)
            return
        self._waiting.append(text)
        self._size += len(text) + 1
        if self._size >= self._BLOCK:
            self.close()

    def close(self) -> None:
        """Pass on what waits."""
        if self._waiting:
            self._tell("\n".join(self._waiting))
            self._waiting, self._size = [], 0


def survived(count: int) -> str:
    """The sentence for processes that could not be ended."""
    return f"{count} of its processes could not be ended; end them by hand."


class End(Struct, frozen=True):
    """How a process ended, in the words of a turn; ``error`` is empty when it ended well."""

    outcome: Outcome
    error: str = ""
    error_class: FailureClass | None = None


def end_of(ending: Ending, what: str, limits: Limits, last_words: str = "") -> End:
    """Read an ending; ``last_words`` is the last line on stderr."""
    said = f": {last_words}" if last_words else ""
    if ending.cause is Cause.DEADLINE:
        sentence = f"{what} was not done after {limits.deadline_s:g} s and was stopped{said}"
        return End(Outcome.TIMEOUT, sentence, FailureClass.TIMEOUT)
    if ending.cause is Cause.SILENCE:
        sentence = f"{what} said nothing for {limits.silence_s:g} s and was stopped{said}"
        return End(Outcome.STALLED, sentence, FailureClass.STALLED)
    if ending.cause is Cause.STOPPED:
        return End(Outcome.CANCELLED, f"{what} was stopped{said}", FailureClass.CANCELLED)
    if ending.cause is not Cause.EXITED:  # it took more of the machine than it may
        return End(Outcome.FAILED, f"{what} was stopped: {ending.reason}", FailureClass.CRASH)
    if ending.exit_code == 0:
        return End(Outcome.OK)
    return End(Outcome.FAILED, f"{what} {_exit(ending.exit_code)}{said}", FailureClass.CRASH)


def _exit(code: int) -> str:
    number = -code if code < 0 else code - _KILLED_BY
    try:
        name = signal.Signals(number).name if number > 0 else ""
    except ValueError:
        name = ""
    return f"was ended by {name}" if name else f"ended with exit code {code}"


def program_problem(program: str, view: View, inside: Path) -> str:
    """Why a program cannot be started, with the next step; empty if it probably can."""
    if "/" not in program:
        found = shutil.which(program)
        return "" if found else f"There is no program '{program}' on the PATH; install it"
    path = Path(program)
    if path.is_absolute():
        # The workspace's own path shows the copy where mounts are possible (D9).
        own = path.is_relative_to(inside)
        path = view.tree / path.relative_to(inside) if own else path
    else:
        path = view.tree / path
    if not path.exists():
        return f"There is no program '{program}'; check its path"
    return "" if os.access(path, os.X_OK) else f"'{program}' is not executable; chmod +x it"


class Environment(Struct, frozen=True):
    """The variables an agent gets by name, and what must not show up in a record (D37)."""

    values: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def redacted(self, text: str) -> str:
        """The text with each value replaced by its name; ordinary words stay."""
        for name, value in self.values.items():
            if value in text and is_hidden(name, value):
                text = text.replace(value, f"[{name}]")
        return text


def turn_environment(
    turn: Turn, source: Mapping[str, str], confinement: Confinement, view: View
) -> Environment:
    """All that a turn's processes get by name; behind a door, the way to their models with it."""
    ways = turn.out.variables(confinement.places(view))
    named = named_environment(tuple(name for name in turn.env if name not in ways), source)
    return Environment({**named.values, **ways}, named.notes)


def named_environment(names: tuple[str, ...], source: Mapping[str, str]) -> Environment:
    """Pick the variables an agent may see; a note says which it did not get."""
    values = {name: source[name] for name in names if name in source and name not in _PRIVATE}
    notes = [
        f"{name} is the sandbox's own and is not passed on."
        if name in _PRIVATE
        else f"{name} is not set here and could not be passed on."
        for name in names
        if name not in values
    ]
    return Environment(values, tuple(notes))


def seen_at(path: Path, confinement: Confinement, view: View) -> Path | None:
    """Where a file of this machine is found inside; None if it is not in the view."""
    places = confinement.places(view)
    for outside, inside in (
        (view.tree, places.tree),
        (view.home, places.home),
        (view.tmp, places.tmp),
    ):
        if path.is_relative_to(outside):
            return inside / path.relative_to(outside)
    return None


def hand_in(images: tuple[Image, ...], confinement: Confinement, view: View) -> list[Path]:
    """Put images where the agent can open them (F5), and say where that is."""
    found: list[Path] = []
    for number, image in enumerate(images, start=1):
        if not image.path.is_file():
            raise ExecutionError(f"There is no image {image.path}; hand it in again")
        inside = seen_at(image.path, confinement, view)
        if inside is None:
            name = re.sub(r"[^\w.-]", "_", image.path.name, flags=re.ASCII)
            # Programs tell an image by its name, and a blob has none.
            suffix = "" if image.path.suffix else f".{image.media.rpartition('/')[2]}"
            copy = f"image-{number}-{name}{suffix}"
            with image.path.open("rb") as whole:
                place_private(view.tmp, copy, whole)
            inside = confinement.places(view).tmp / copy
        found.append(inside)
    return found
