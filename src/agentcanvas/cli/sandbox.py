"""``agentcanvas sandbox``: make one by hand, see what was changed in it, and clean up."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agentcanvas.app.made_here import refuse_gifts
from agentcanvas.app.planning import images_going, standings, standings_alone
from agentcanvas.app.workspace import FOLDER, ensure_folder
from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.diff import on_console
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.terminal import console_here
from agentcanvas.cli.live.words import short
from agentcanvas.cli.offices import at_office, finish, misused
from agentcanvas.clock import SystemClock
from agentcanvas.errors import SandboxError, StoreError, ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.runs.housekeeping import drop_images
from agentcanvas.runs.office import Office
from agentcanvas.sandbox.cleanup import (
    NOTHING,
    USUAL,
    Keep,
    Plan,
    Standing,
    clean_up,
    plan_cleanup,
)
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.disk import FolderUse, disk_use, in_words, runs_on_disk
from agentcanvas.sandbox.generation import (
    Generation,
    edits_since,
    generation_numbers,
    load_generation,
    take_generation,
)
from agentcanvas.sandbox.paths import SandboxPaths, checked_run_id, owner_of, run_folder, shown
from agentcanvas.sandbox.prepare import is_in_use, open_sandbox, prepare_sandbox
from agentcanvas.sandbox.private_git import make_private_git, object_folders
from agentcanvas.sandbox.provision import provide

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make a sandbox by hand, see what changed in it, and clean up.",
)


Run = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="The run it belongs to.", show_default=False),
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="Whose it is.", show_default=False)
]


@app.command()
def make(
    run: Run = None,
    agent: Agent = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="GLOB", help="Take only these files.", show_default=False),
    ] = None,
    bring: Annotated[
        list[str] | None,
        typer.Option(
            "--bring", metavar="GLOB", help="Take ignored files along.", show_default=False
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help='Print only the work folder, as for cd "$(…)".'),
    ] = False,
) -> None:
    """Make a sandbox of the workspace as it is, and print where it is.

    Work in it as you like: your files stay as they are. `agentcanvas sandbox diff` gives the patch.
    """
    root = root_here()

    async def work() -> int:
        run_id = checked_run_id(run) if run else _new_run_id(root)
        ensure_folder(root)
        base = await _base(root, run_id, only, bring)
        sandbox = await prepare_sandbox(base, agent or "you")
        provided = await provide(base, sandbox.work_dir, Unconfined())
        await make_private_git(base, sandbox.work_dir, object_folders(base))
        paths = sandbox.paths
        notes = [one_line(note) for note in (*base.notes, *provided.notes)]
        if quiet:
            print(paths.work_dir)
            print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)
            return ExitCode.DONE
        print(f"{len(base.seen)} files as they are now, {base.name} of {run_id}")
        for name, folder in (
            ("input", paths.input_dir),
            ("work", paths.work_dir),
            ("proposal", paths.proposal_dir),
        ):
            print(f"  {name:<9} {folder}")
        for note in notes:
            print(f"  {note}")
        print("What you change in work, as a patch: agentcanvas sandbox diff")
        return ExitCode.DONE

    finish(work)


def _new_run_id(root: Path) -> str:
    """An id that no run of the engine has, so that nobody else claims the folders."""
    moment = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    name = moment.strftime("run_%Y%m%d_%H%M%S_hand")
    taken = {*runs_on_disk(root)}
    return next(found for count in range(10_000) if (found := f"{name}{count or ''}") not in taken)


async def _base(
    root: Path, run_id: str, only: Sequence[str] | None, bring: Sequence[str] | None
) -> Generation:
    """The run's latest generation if it is still true, else a new one."""
    numbers = generation_numbers(root, run_id)
    latest = await load_generation(root, run_id, numbers[-1]) if numbers else None
    if latest and only is None and bring is None and not await edits_since(latest):
        return latest
    return await take_generation(root, run_id, previous=latest, only=only, bring=bring)


@app.command()
def diff(
    run: Run = None,
    agent: Agent = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only name the changed files.")] = False,
) -> None:
    """Print the changes made in a sandbox as a patch; by default of the newest one.

    A terminal gets it in colours, and control characters written out; a file or a pipe gets the
    patch itself, for `git apply`.
    """
    root = root_here()

    async def work() -> int:
        refuse_gifts(root)
        run_id, agent_id = _meant(root, run, agent)
        sandbox = await open_sandbox(root, run_id, agent_id)
        if is_in_use(sandbox.paths.root):
            raise SandboxError(
                f"Processes of {one_line(agent_id)} still run in it, so that its files may change "
                f"while they are read; wait for them, or end them: agentcanvas stop {run_id}"
            )
        patch = await make_patch(sandbox)
        for note in patch.notes:
            print(one_line(note), file=sys.stderr)
        if stat:
            for change in patch.changes:
                print(f"{change.status:<9} {one_line(shown(change.path))}")
        elif sys.stdout.isatty():  # a terminal would obey what an agent has written
            console = console_here()
            console.print(on_console(console, patch.text), end="")
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(patch.text)
        if not patch.changes:
            print("Nothing was changed.", file=sys.stderr)
        return ExitCode.DONE

    finish(work)


def _meant(root: Path, run: str | None, agent: str | None) -> tuple[str, str]:
    """The sandbox that is meant: the one that was made last among those that fit."""
    runs = _runs_meant(root, run)
    found: list[tuple[int, str, str]] = []
    for run_id in runs:
        folder = run_folder(root, run_id)
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            owner, record = owner_of(entry), SandboxPaths(entry).record
            if owner is not None and record.exists() and agent in {None, owner}:
                found.append((record.stat().st_mtime_ns, run_id, owner))
    if not found:
        named = (f" of {one_line(agent)}" if agent else "") + (
            f" in {one_line(run)}" if run else ""
        )
        raise ValidationError(
            f"There is no sandbox{named}; make one with: agentcanvas sandbox make"
        )
    return max(found)[1:]


def _runs_meant(root: Path, given: str | None) -> list[str]:
    """All that are there, or the one whose id begins or ends as it was given."""
    there = runs_on_disk(root)
    if given is None:
        return there
    if given in there:
        return [given]
    found = [run for run in there if given and (run.startswith(given) or run.endswith(given))]
    if len(found) > 1:
        listed = "\n".join(f"  {run}" for run in found[:10])
        raise ValidationError(f"{given} may be any of these; write more of it:\n{listed}")
    return found


@app.command("list")
def list_() -> None:
    """Show the disk space of the sandboxes, run by run, with the largest folders."""
    root = root_here()

    async def work() -> int:
        refuse_gifts(root)
        use = await disk_use(root)
        if not use.bytes:
            print("There are no sandboxes; make one with: agentcanvas sandbox make")
            return ExitCode.DONE
        for run in use.runs:
            print(f"{short(run.run_id)}  {in_words(run.bytes)}")
            _print_largest(run.largest)
        for size, what in (
            (use.pool, "the pool of trees for new sandboxes"),
            (use.trash, "what a clean-up has left to remove"),
        ):
            if size:
                print(f"{what}  {in_words(size)}")
        print(f"{in_words(use.bytes)} in all. Free some of it with: agentcanvas sandbox clean")
        return ExitCode.DONE

    finish(work)


def _print_largest(uses: Sequence[FolderUse]) -> None:
    for use in uses:
        print(f"    {one_line(use.path)}  {in_words(use.bytes)}")


@app.command()
def clean(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            help=f"Keep the newest N runs; {USUAL.runs} if not said.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Keep nothing that is settled.")
    ] = False,
    discard: Annotated[
        list[str] | None,
        typer.Option(
            "--discard",
            metavar="RUN",
            help="Remove what `sandbox make` made, and the work in it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Remove the sandboxes of old runs, after listing what goes and what that frees.

    The newest 10 runs stay, within 5 GB. Proposals always stay, and so does every run that goes on,
    waits, or has work that nobody has judged. With a run go the images it was started with.
    """
    if keep is not None and keep < 0:
        raise misused("--keep is a number of runs; it cannot be less than 0")
    if keep is not None and everything:
        raise misused("Say either --keep or --all")
    policy = NOTHING if everything else USUAL if keep is None else Keep(keep, USUAL.bytes)
    root = root_here()
    if not (root / FOLDER).is_dir():
        print("There is nothing to clean up.")
        return

    async def work(office: Office) -> int:
        stand = await standings(office, root)
        unwanted = _by_hand(discard or (), runs_on_disk(root), stand)
        settled = stand | dict.fromkeys(unwanted, Standing.SETTLED)
        plan = await plan_cleanup(root, settled, policy, discard=unwanted)
        images = await images_going(office, root, plan)
        _announce(plan, sum(images.values()), dry_run=dry_run)
        _tell_of_discarding(plan, stand)
        if not dry_run and plan.frees:
            await clean_up(root, plan)
        if not dry_run:
            await drop_images(root, images)
        return ExitCode.DONE

    without_room = partial(_clean_without_room, root, policy, discard or (), dry_run=dry_run)
    at_office(work, without_room=without_room)


async def _clean_without_room(
    root: Path, policy: Keep, discard: Sequence[str], *, dry_run: bool
) -> int:
    """Do the same on a disk that is so full that there is no office to ask."""
    stand, unknown = await _standings_alone(root)
    unwanted = _by_hand(discard, runs_on_disk(root), stand)
    settled = stand | dict.fromkeys(unwanted, Standing.SETTLED)
    plan = await plan_cleanup(root, settled, policy, discard=unwanted)
    # What makes a new sandbox quicker is the first thing that a full disk can do without.
    plan = msgspec.structs.replace(plan, pool=(await disk_use(root)).pool)
    print("The disk is full, so images of earlier runs are not looked at now.")
    if unknown:
        print(f"Every run stays, for which of them are settled cannot be read: {unknown}")
    _announce(plan, 0, dry_run=dry_run)
    if not dry_run and plan.frees:
        await clean_up(root, plan)
    if policy != NOTHING and not unknown:
        print("If that is not enough: agentcanvas sandbox clean --all")
    return ExitCode.DONE


async def _standings_alone(root: Path) -> tuple[dict[str, Standing], str]:
    """Where the runs stand by the record alone; why none can go if it cannot be read either."""
    try:
        return await standings_alone(root), ""
    except StoreError as wrong:
        return dict.fromkeys(runs_on_disk(root), Standing.OPEN), str(wrong)


def _by_hand(named: Sequence[str], there: Sequence[str], known: Collection[str]) -> frozenset[str]:
    """The runs to discard: a run of the engine is judged, not thrown away."""
    for run in named:
        if run in known:
            raise ValidationError(f"{run} was not made by hand; see: agentcanvas proposals {run}")
        if run not in there:
            advice = did_you_mean(
                run, set(there).difference(known), "see: agentcanvas sandbox list"
            )
            raise ValidationError(f"There is no sandbox in {one_line(run)}; {advice}")
    return frozenset(named)


def _tell_of_discarding(plan: Plan, known: Collection[str]) -> None:
    by_hand = [run.run_id for run in plan.staying if run.reason and run.run_id not in known]
    if by_hand:
        words = " ".join(f"--discard {run}" for run in by_hand)
        print(f"If that work is not wanted: agentcanvas sandbox clean {words}")


def _announce(plan: Plan, images: int, *, dry_run: bool) -> None:
    for run in plan.staying:
        why = f"  {one_line(run.reason)}" if run.reason else ""
        print(f"stays  {short(run.run_id)}  {in_words(run.bytes)}{why}")
    for gone in plan.going:
        print(f"goes   {short(gone.run_id)}  {in_words(gone.frees)}")
        _print_largest(gone.largest)
    if plan.pool:
        print(f"goes   the pool of trees for new sandboxes  {in_words(plan.pool)}")
    if plan.trash:
        print(f"goes   what an earlier clean-up left  {in_words(plan.trash)}")
    if images:
        print(f"goes   images that no run needs any more  {in_words(images)}")
    if not plan.frees + images:
        print("There is nothing to clean up.")
    else:
        would = "This would free" if dry_run else "This frees"
        print(f"{would} {in_words(plan.frees + images)}.")
