"""``agentcanvas undo``: take back what a run landed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agentcanvas.cli.live.clean import clean
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.terminal import Terminal, console_here, is_interactive
from agentcanvas.cli.live.words import files, quoted, short
from agentcanvas.cli.offices import at_office, matching, misused, pick
from agentcanvas.errors import ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.runs.office import Office, UndoneTask
from agentcanvas.runs.state import RunState, TaskState, TaskStatus

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def undo(
    run: Annotated[
        str | None,
        typer.Argument(
            help="The run, or a part of its id; the newest that landed something if not given."
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Argument(help="One task of it; all that landed if not given.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Take back what a run landed in your files, the latest change first.

    Your own edits are kept: a change that they stand on is refused by name, and nothing of it is
    taken back. Exit code 1 when something was refused.
    """

    async def work(office: Office) -> int:
        run_id, task_id = await _meant(office, run, task)
        state = await office.state(run_id)
        landed = _landed(state, task_id)
        print(f"This takes back what {quoted(run_id)} landed, the latest first:")
        for each in reversed(landed):
            print(f"  {short(each.task_id)}  {files(each.files)}")
        if not yes and not await _confirmed([word for word in (run, task) if word]):
            print("Nothing was taken back.")
            return ExitCode.DONE
        return _say(await office.undo(run_id, task_id))

    at_office(work)


async def _meant(office: Office, run: str | None, task: str | None) -> tuple[str, str | None]:
    """One word may be a run, or a task of the newest one that landed something."""
    found = await office.runs()
    newest = pick([each for each in found if each.applied] or found, None)
    if run is None:
        return newest.run_id, task
    is_task = task is None and not matching(found, run)
    if is_task and run in (await office.state(newest.run_id)).tasks:
        return newest.run_id, run
    return pick(found, run).run_id, task


def _landed(state: RunState, task_id: str | None) -> list[TaskState]:
    applied = [task for task in state.tasks.values() if task.status is TaskStatus.APPLIED]
    if task_id is None:
        if not applied:
            raise ValidationError(f"{state.run_id} has nothing in your files to take back.")
        return applied
    chosen = [task for task in applied if task.task_id == task_id]
    if not chosen:
        advice = did_you_mean(task_id, [task.task_id for task in applied], "nothing else landed")
        raise ValidationError(f"{task_id} has nothing in your files to take back; {advice}")
    return chosen


async def _confirmed(typed: Sequence[str]) -> bool:
    if not is_interactive():
        words = " ".join(["agentcanvas undo", *map(quoted, typed), "--yes"])
        raise misused(f"Say that you mean it: {words}")
    terminal = Terminal(console_here())
    terminal.forget_what_was_typed()
    answer = await terminal.line("Take this back? (y/N)")
    return answer is not None and answer.lower() in ("y", "yes")


def _say(undone: tuple[UndoneTask, ...]) -> int:
    for each in undone:
        if not each.problem:
            print(f"✓ {short(each.task_id)} taken back: {files(each.files)}")
    refused = [each for each in undone if each.problem]
    for each in refused:
        print(f"✗ {short(each.task_id)} was not: {clean(each.problem)}", file=sys.stderr)
    if not undone:
        print("There was nothing to take back.")
    return ExitCode.ERROR if refused else ExitCode.DONE
