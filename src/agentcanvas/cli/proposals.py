"""``agentcanvas proposals``: what was proposed, as a list, as a diff, or as numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.diff import counted, on_console
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import console_here, listing
from agentcanvas.cli.live.view import REVIEW
from agentcanvas.cli.live.words import TASK_STYLES, TASK_WORDS, count, quoted, short
from agentcanvas.cli.offices import at_office, matching, misused, the_run
from agentcanvas.errors import NotFound, ProposalMalformed, ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.proposals.collisions import Collision, collisions
from agentcanvas.proposals.footprint import Footprint, Touch, footprint
from agentcanvas.proposals.secrets import SecretFinding, secrets_in
from agentcanvas.proposals.self_running import RunNote, self_running
from agentcanvas.runs.office import Office
from agentcanvas.runs.state import TaskState, TaskStatus

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

NONE_WAITS = "No proposal waits. See all of them with: agentcanvas proposals --all"
NONE = "Nothing was proposed yet."
_BAR = 40
_WIDE = 90
_MEDIUM = 60
_WAITING = frozenset({TaskStatus.IN_REVIEW, TaskStatus.REVISING})


class _Proposed(msgspec.Struct, frozen=True, rename="camel"):
    """One task's latest change."""

    run_id: str
    task: TaskState
    patch: bytes

    @property
    def name(self) -> str:
        return f"{self.run_id}/{self.task.task_id}"

    @property
    def scope(self) -> str:
        """Of the question to a person, if it is put to one."""
        return f"{REVIEW}{self.task.task_id}"

    def notes(self) -> tuple[SecretFinding | RunNote, ...]:
        """What to look at twice; a patch that cannot be read is refused elsewhere, with words."""
        try:
            return (*secrets_in(self.patch), *self_running(self.patch))
        except ProposalMalformed:
            return ()

    def footprint(self) -> Footprint:
        try:
            return footprint(self.patch)
        except ProposalMalformed:
            return Footprint()


class _Listed(msgspec.Struct, frozen=True, rename="camel"):
    """One line of ``--json``."""

    run_id: str
    task_id: str
    status: TaskStatus
    files: tuple[str, ...]
    notes: tuple[str, ...]
    collisions: tuple[Collision, ...]


@app.command()
def proposals(
    run: Annotated[
        str | None,
        typer.Argument(help="The run, or a part of its id; or a task of the newest run."),
    ] = None,
    task: Annotated[str | None, typer.Argument(help="One task of it.")] = None,
    *,
    stat: Annotated[
        bool, typer.Option("--stat", help="Files and numbers of lines instead of the diff.")
    ] = False,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", metavar="N", min=1, help="An earlier attempt at one task."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", "-a", help="Also those that are decided already.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per proposal.")
    ] = False,
) -> None:
    """List the proposals that wait; with a run or a task, show their changes.

    What looks like a secret and what runs by itself is pointed out, and so are proposals that
    change the same lines. Nothing is decided here: see `agentcanvas review`.
    """
    if as_json and stat:
        raise misused("Say --stat or --json, not both.")

    async def work(office: Office) -> int:
        run_id, task_id = await _meant(office, run, task)
        if attempt is not None and task_id is None:
            raise misused("--attempt is about one task: agentcanvas proposals RUN TASK --attempt 1")
        wanted = [
            each
            async for each in _proposed(office, run_id, task_id, attempt)
            if (task_id is None and (all_ or each.task.status in _WAITING))
            or each.task.task_id == task_id
        ]
        if task_id is not None and not wanted:
            raise NotFound(f"{task_id} has proposed nothing.")
        if as_json:
            _print_json(wanted)
        elif run is None and not stat:
            _print_list(wanted, empty=NONE if all_ else NONE_WAITS)
        else:
            asked = {(ask.run_id, ask.scope) for ask in await office.asks()}
            mine = {each.name for each in wanted if (each.run_id, each.scope) in asked}
            _print_changes(wanted, mine, stat=stat, empty=NONE if all_ else NONE_WAITS)
        return ExitCode.DONE

    at_office(work)


async def _meant(
    office: Office, run: str | None, task: str | None
) -> tuple[str | None, str | None]:
    """One word may be a run, or a task of the newest one."""
    if run is None:
        return None, None
    if task is None and not matching(await office.runs(), run):
        newest = await the_run(office)
        if run in (await office.state(newest.run_id)).tasks:
            return newest.run_id, run
    run_id = (await the_run(office, run)).run_id
    tasks = (await office.state(run_id)).tasks
    if task is not None and task not in tasks:
        advice = did_you_mean(task, tasks, "the run has no tasks")
        raise ValidationError(f"There is no task {task} in {run_id}; {advice}")
    return run_id, task


async def _proposed(
    office: Office, run_id: str | None, task_id: str | None, attempt: int | None
) -> AsyncIterator[_Proposed]:
    """Each task that has a change, of one run or of all, the newest first."""
    runs = [run_id] if run_id else [run.run_id for run in await office.runs()]
    for each in runs:
        for task in (await office.state(each)).tasks.values():
            wanted = attempt if task.task_id == task_id else None
            try:
                patch = await office.patch(each, task.task_id, wanted)
            except NotFound:
                if wanted is not None:
                    raise
                continue
            yield _Proposed(each, task, patch)


def _meetings(found: Sequence[_Proposed]) -> tuple[Collision, ...]:
    """Where those that wait meet; a harmless meeting is not worth a line."""
    waiting = {each.name: each.footprint() for each in found if each.task.status in _WAITING}
    return tuple(each for each in collisions(waiting) if not each.kind.merges)


def _print_list(found: Sequence[_Proposed], *, empty: str) -> None:
    if not found:
        print(empty)
        return
    console = console_here()
    wide, medium = console.width >= _WIDE, console.width >= _MEDIUM
    table = listing()
    for title in ("run", "task"):  # whole in any window, since they are there to be pasted
        table.add_column(title, overflow="fold", min_width=len(title))
    for title in (*(("status",) if medium else ()), *(("change", "look at") if wide else ())):
        table.add_column(title, no_wrap=True)
    table.add_column("summary", no_wrap=True, overflow="ellipsis", ratio=1)
    for each in found:
        notes = each.notes()
        status = Text(TASK_WORDS[each.task.status], style=TASK_STYLES[each.task.status])
        looked_at = Text(count(len(notes), "note") if notes else "", style="yellow")
        table.add_row(
            Text(short(each.run_id), style="bold"),
            Text(short(each.task.task_id)),
            *((status,) if medium else ()),
            *((Text(counted(each.patch)), looked_at) if wide else ()),
            Text(one_line(each.task.summary)),
        )
    console.print(table)
    for met in _meetings(found):
        console.print(Text(f"! {one_line(met.sentence, 400)}", style="yellow"), soft_wrap=True)


def _print_changes(
    found: Sequence[_Proposed], mine: Collection[str], *, stat: bool, empty: str
) -> None:
    """The changes themselves; of ``mine`` it is said how to decide about them."""
    if not found:
        print(empty)
        return
    console = console_here()
    for each in found:
        title = Text(f"{short(each.run_id)} {short(each.task.task_id)}", style="bold")
        title.append(f"  {TASK_WORDS[each.task.status]}", style=TASK_STYLES[each.task.status])
        title.append(f"  {counted(each.patch)}", style="dim")
        console.print(title, soft_wrap=True)
        console.print(_stat(each) if stat else on_console(console, each.patch))
        for note in each.notes():
            console.print(Text(f"! {one_line(note.sentence, 400)}", style="yellow"), soft_wrap=True)
        if each.name in mine:
            console.print(
                f"Decide: agentcanvas review {quoted(each.run_id)} {quoted(each.task.task_id)}",
                soft_wrap=True,
            )
    for met in _meetings(found):
        console.print(Text(f"! {one_line(met.sentence, 400)}", style="yellow"), soft_wrap=True)


def _stat(proposed: _Proposed) -> Text:
    rows = [(path, *_lines(touch)) for path, touch in proposed.footprint().files.items()]
    most = max((added + removed for _, added, removed, _ in rows), default=0)
    scale = min(1.0, _BAR / most) if most else 1.0
    text = Text()
    for path, added, removed, what in rows:
        text.append(f" {one_line(path, 80)} | ")
        text.append(what if what == "binary" else f"{added + removed} ")
        text.append("+" * _drawn(added, scale), style="green")
        text.append("-" * _drawn(removed, scale), style="red")
        text.append(f" ({what})\n" if what and what != "binary" else "\n", style="dim")
    text.rstrip()
    return text


def _drawn(number: int, scale: float) -> int:
    """At least one sign for what is not nothing."""
    return max(1, round(number * scale)) if number else 0


def _lines(touch: Touch) -> tuple[int, int, str]:
    """Lines added and removed, and what else there is to say."""
    signs = [
        line[:1] for section in touch.sections for hunk in section.hunks for line in hunk.lines
    ]
    if touch.sections[0].binary:
        what = "binary"
    elif len(touch.sections) > 1:
        what = "changes its type"
    elif touch.created or touch.deleted:
        what = "new" if touch.created else "deleted"
    else:
        what = "mode" if touch.sections[0].changes_mode else ""
    return signs.count(b"+"), signs.count(b"-"), what


def _print_json(found: Sequence[_Proposed]) -> None:
    met = _meetings(found)
    for each in found:
        print(
            one_json(
                _Listed(
                    run_id=each.run_id,
                    task_id=each.task.task_id,
                    status=each.task.status,
                    files=tuple(each.footprint().files),
                    notes=tuple(note.sentence for note in each.notes()),
                    collisions=tuple(one for one in met if each.name in one.proposals),
                )
            )
        )
