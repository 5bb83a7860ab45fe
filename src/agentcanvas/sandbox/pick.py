"""Choosing a confinement: by really running something in it, the strongest first.

A back-end counts only when a process inside could write where it may and nowhere else. If none
does, nothing is run: the reasons are said, and going on without is the user's explicit choice.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from agentcanvas.errors import NoConfinement, SandboxError
from agentcanvas.sandbox.confine import ON_A_MAC, ON_LINUX, Command, Confinement, View
from agentcanvas.sandbox.confinements.bubblewrap import Bubblewrap
from agentcanvas.sandbox.confinements.landlock import Landlock
from agentcanvas.sandbox.confinements.launcher import landlock_abi
from agentcanvas.sandbox.confinements.seatbelt import PROGRAM as SANDBOX_EXEC
from agentcanvas.sandbox.confinements.seatbelt import Seatbelt
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.process import Limits, run_confined
from agentcanvas.sandbox.process_tree import end_leftovers, tags_below

_LEAST_LANDLOCK = 3

_TRIALS = "trial:"

# The first must arrive and the second must not, so that a sham confinement is found out. What the
# shell thinks of the second does not count: it may have written to a private folder of that name.
_TRIAL = 'echo out 2> /dev/null > "$OUTSIDE"; echo in > inside'


@dataclass(frozen=True)
class Picked:
    """The confinement to use, why each stronger one is not, and what the user should know."""

    confinement: Confinement
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def pick(*, only: str | None = None, unsafe: bool = False) -> Picked:
    """Find the strongest confinement that works here; ``only`` allows just one, by name.

    ``unsafe`` is the user's explicit choice to run without; whoever makes it has to record it.
    """
    if unsafe:
        return _with_warnings(Unconfined(), ())
    refused: list[str] = []
    for name, find in _CANDIDATES.items():
        if only in {None, name}:
            found = await find()
            if not isinstance(found, str):
                return _with_warnings(found, tuple(refused))
            refused.append(f"{name}: {found}")
    if not refused:
        refused.append(f"there is no confinement '{only}', only {', '.join(NAMES)}")
    raise NoConfinement(
        f"No confinement works on this machine: {'; '.join(refused)}. Install one, or choose "
        "--unsafe to run agents that can change any file of yours",
        reasons=refused,
    )


def _with_warnings(confinement: Confinement, refused: tuple[str, ...]) -> Picked:
    warnings = confinement.warnings
    if os.geteuid() == 0:
        warnings += ("Running as root: whatever escapes the sandbox owns the machine",)
    return Picked(confinement, refused, warnings)


async def _bubblewrap() -> Confinement | str:
    program = shutil.which("bwrap")
    if not program:
        return "not installed (apt install bubblewrap)"
    strict = Bubblewrap(program)
    reason = await _tried(strict)
    if reason is None:
        return strict
    lenient = Bubblewrap(program, nested_namespaces=True)
    return lenient if await _tried(lenient) is None else reason


async def _landlock() -> Confinement | str:
    if not ON_LINUX:
        return "Linux only"
    abi = landlock_abi()
    if abi < _LEAST_LANDLOCK:
        return f"the kernel has Landlock ABI {abi}, {_LEAST_LANDLOCK} is needed (Linux 6.2)"
    return await _tried(Landlock(abi)) or Landlock(abi)


async def _seatbelt() -> Confinement | str:
    if not ON_A_MAC or not SANDBOX_EXEC.exists():
        return "macOS only"
    return await _tried(Seatbelt()) or Seatbelt()


_CANDIDATES: dict[str, Callable[[], Awaitable[Confinement | str]]] = {
    "bubblewrap": _bubblewrap,
    "landlock": _landlock,
    "seatbelt": _seatbelt,
}

NAMES = tuple(_CANDIDATES)
"""The confinements there are, the strongest first."""


def _trial_view(name: Path) -> View:
    folder = name.resolve()
    for part in ("workspace", "tree", "home", "tmp"):
        (folder / part).mkdir()
    return View(folder / "workspace", folder / "tree", folder / "home", folder / "tmp")


async def _tried(confinement: Confinement) -> str | None:
    """Run the trial; gives the reason why it failed."""
    await _end_trials_without_host()
    with tempfile.TemporaryDirectory(prefix="agentcanvas-") as name, _held(Path(name)):
        view = _trial_view(Path(name))
        planted = view.workspace.parent / "planted"
        command = Command(
            ("/bin/sh", "-c", _TRIAL), env={"OUTSIDE": str(planted)}, tag=f"{_TRIALS}{view.home}"
        )
        try:
            ending, lines = await run_confined(confinement, view, command, Limits(deadline_s=10))
        except SandboxError as error:
            return str(error)
        if planted.exists():
            return "a process inside could write outside"
        wrote = (view.tree / "inside").exists()
    if ending.exit_code or not wrote:
        said = "; ".join(line.text for line in lines if line.text)
        return said or f"the trial ended with {ending.exit_code} ({ending.cause})"
    return None


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder for as long as this process lives, at most; BlockingIOError if another does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


async def _end_trials_without_host() -> None:
    """A host that is killed in the first moments of a trial leaves a starter behind.

    Nothing else would come upon it: a trial belongs to no workspace. Its folder stays, because the
    environment of a process is not to be believed in what to remove.
    """
    for tag in await anyio.to_thread.run_sync(tags_below, _TRIALS):
        home = tag.removeprefix(_TRIALS).rpartition("/")[0]
        with suppress(OSError), _held(Path(home).parent):
            await end_leftovers(f"{_TRIALS}{home}")
