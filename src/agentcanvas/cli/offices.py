"""How a command reaches whoever holds the workspace, and which run it means.

Every command works on an ``Office`` and nothing else: the engine in this process when the workspace
is free, its holder otherwise (D1).
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

import anyio
import typer

from agentcanvas.app.interpreter import environment, program
from agentcanvas.app.made_here import refuse_gifts
from agentcanvas.app.settings_here import LOOK, NOT_YET, own_file_holds
from agentcanvas.app.workspace import ensure_folder, store_path
from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.clean import lines_of
from agentcanvas.cli.live.following import ExitCode, first_of
from agentcanvas.cli.live.words import run_line
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentCanvasError, ResourceError, StoreFull, ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.runs.office import Office, RunSummary

NO_RUNS = 'No runs yet. Start one with: agentcanvas run "what is to be done"'

_LOOK_AGAIN_S: Final = 0.1
_LOOKS_FOR_SERVER: Final = 300

_THE_MACHINE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE}
)
"""What is wrong with the machine, not with us: said in a sentence wherever it comes up."""

Work = Callable[[Office], Awaitable[int]]


def tell_of_settings(root: Path) -> None:
    """Say it when the workspace's own settings do not hold; nobody would look for the reason."""
    if not own_file_holds(root, os.environ):
        complain(f"{NOT_YET}. Look, then: {LOOK}")


def open_office(
    root: Path, *, serve: bool = False, resume: bool = False
) -> AbstractAsyncContextManager[Office]:
    """The office of a workspace; with ``serve`` other commands can reach this one meanwhile."""
    # Imported when it is needed: the engine is most of the product, and --help needs none of it.
    from agentcanvas.app import office  # noqa: PLC0415  # for the reason above

    return office.open_office(root, serve=serve, resume=resume)


async def serve_apart(root: Path) -> None:
    """See to it that a process that outlives this command holds the workspace (D1)."""
    from agentcanvas.app.server import find_server  # noqa: PLC0415  # for the reason above

    if await find_server(root) is not None:
        return
    log = ensure_folder(root) / "logs" / "serve.log"
    child = _server_process(root, log)
    clock = SystemClock()
    for _ in range(_LOOKS_FOR_SERVER):
        if await find_server(root) is not None:
            return
        if child.poll() is not None:
            break
        await clock.sleep(_LOOK_AGAIN_S)
    raise ResourceError(f"No server could be started in the background; {log} says why.")


def _server_process(root: Path, log: Path) -> subprocess.Popen[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    words = ("serve", "--no-browser", "--idle-minutes", "10")
    # The link in it opens everything, so it is for its owner alone.
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:  # noqa: PTH123  # a descriptor has no Path
        return subprocess.Popen(  # noqa: S603  # our own program and words
            program("-c", "from agentcanvas.cli import main; main()", *words),
            cwd=root,
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def at_office(
    work: Work, *, serve: bool = False, without_room: Callable[[], Awaitable[int]] | None = None
) -> NoReturn:
    """Do something at the office of this workspace and end with its exit code.

    Looking leaves nothing behind: where nothing is on record, an empty office that is gone
    afterwards says so. ``without_room`` is done instead where a full disk lets nobody open it.
    """

    async def main() -> int:
        root = root_here()
        if store_path(root).exists():
            async with AsyncExitStack() as stack:
                try:
                    office = await stack.enter_async_context(open_office(root, serve=serve))
                except Exception as raised:
                    if without_room is None or not isinstance(first_of(raised), StoreFull):
                        raise
                else:
                    return await work(office)
            return await without_room()
        refuse_gifts(root)
        with TemporaryDirectory(prefix="agentcanvas-") as empty:
            async with open_office(Path(empty)) as office:
                return await work(office)

    finish(main)


def finish(main: Callable[[], Awaitable[int]]) -> NoReturn:
    """Run a command to its exit code; an error of ours is one sentence on standard error."""
    try:
        code = anyio.run(main)
    except BaseException as raised:  # noqa: BLE001  # what is not known here is raised again
        code = _code_for(first_of(raised))
    raise typer.Exit(int(code))


def _code_for(reason: BaseException) -> int:
    match reason:
        case AgentCanvasError():
            complain(str(reason))
            return ExitCode.ERROR
        case OSError(errno=number) if number in _THE_MACHINE:
            where = f"{reason.filename}: " if reason.filename else ""
            complain(f"{where}{reason.strerror}. Mend that, then try again: agentcanvas doctor")
            return ExitCode.ERROR
        case typer.Exit():
            return reason.exit_code
        case KeyboardInterrupt():
            print(file=sys.stderr)
            return ExitCode.INTERRUPTED
        case SystemExit():
            # How rich says that the reader of our output went away (`| head`).
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        case _:
            raise reason


def misused(sentence: str) -> typer.Exit:
    """Say what is wrong with how the command was given; raise what comes back."""
    complain(sentence)
    return typer.Exit(int(ExitCode.USAGE))


def complain(sentence: str) -> None:
    """One sentence on standard error; what agents wrote into it is made harmless."""
    first, *more = lines_of(sentence)
    print(f"agentcanvas: {first}", *more, sep="\n", file=sys.stderr)


async def the_run(office: Office, given: str | None = None) -> RunSummary:
    """The run that is meant: the newest if none is named, else by a part that only one has."""
    return pick(await office.runs(), given)


def pick(runs: Sequence[RunSummary], given: str | None) -> RunSummary:
    """The run with this id, beginning or ending."""
    if not runs:
        raise ValidationError(NO_RUNS)
    if given is None:
        return runs[0]
    for run in runs:
        if run.run_id == given:
            return run
    found = matching(runs, given)
    if len(found) == 1:
        return found[0]
    if found:
        listed = "\n".join(f"  {run_line(run)}" for run in found[:10])
        raise ValidationError(f"{given} may be any of these; write more of it:\n{listed}")
    advice = did_you_mean(given, [run.run_id for run in runs], "see: agentcanvas runs")
    raise ValidationError(f"There is no run {given}; {advice}")


def matching(runs: Sequence[RunSummary], given: str) -> list[RunSummary]:
    """Every run whose id begins or ends so."""
    return [
        run
        for run in runs
        if given and (run.run_id.startswith(given) or run.run_id.endswith(given))
    ]
