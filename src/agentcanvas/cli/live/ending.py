"""What is said when a run rests: what landed and where, what waits, and what can be done next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentcanvas.cli.live.clean import lines_of, one_line
from agentcanvas.cli.live.committing import commit_lines
from agentcanvas.cli.live.outcome import done_line
from agentcanvas.cli.live.view import RunView
from agentcanvas.cli.live.words import (
    NO_BARS,
    Bars,
    count,
    duration,
    headline,
    listed_commands,
    quoted,
    spent,
    task_of,
)
from agentcanvas.proposals.radar import Fitness
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.runs.state import RunStatus, TaskStatus

STOPPED_BY_PERSON = "stopped by you"
_FILES_LISTED = 20
_LINES_OF_RESULT = 40


def last_words(
    view: RunView,
    asks: Sequence[PersonAsk],
    root: Path,
    now_ms: int,
    *,
    here: Path | None = None,
    left: bool = False,
) -> list[str]:
    """Lines for a person; ``left`` when they went away before the run came to rest.

    ``here`` is where they stand, if that is not the workspace itself.
    """
    return [
        *_outcome(view, now_ms, left=left),
        *_result(view),
        *_landed(view, root, here or root),
        *_waiting(asks if not view.ended else (), view),
        *_next(view, left=left),
    ]


def _outcome(view: RunView, now_ms: int, *, left: bool) -> list[str]:
    reason = one_line(view.reason)
    took = duration(view.worked_ms(now_ms))
    cost = spent(view.tokens, view.cost, estimated=view.cost_is_estimate)
    effort = f"{took}, {cost}" if cost else took
    match view.status:
        case RunStatus.DONE:
            return [f"{done_line(view)} It took {effort}."]
        case RunStatus.STOPPED:
            if len(lines := lines_of(view.reason)) > 1:
                kept = f"Not done after {effort}. Everything so far is kept."
                return [kept, *map(one_line, lines[:_LINES_OF_RESULT])]
            return [f"Not done: {reason} (after {effort}). Everything so far is kept."]
        case RunStatus.INTERRUPTED:
            return ["Interrupted. Nothing that was decided is lost."]
        case RunStatus.PARKED:
            return [f"Parked after {effort}. It waits for you."]
        case _ if asks_only(view):
            return ["It waits for you."]
        case _:
            return ["Left in the middle. Nothing that was decided is lost."] if left else []


def asks_only(view: RunView) -> bool:
    """Whether nobody is at work and a person was asked."""
    return bool(view.asks) and not view.at_work


def _result(view: RunView) -> list[str]:
    """What was said in the end, where that is all there is."""
    if view.tasks or not view.result.strip():
        return []
    lines = lines_of(view.result)
    more = len(lines) - _LINES_OF_RESULT
    return ["", *lines[:_LINES_OF_RESULT], *([f"… {more} lines more"] if more > 0 else []), ""]


def _landed(view: RunView, root: Path, here: Path) -> list[str]:
    if not view.landed:
        done = view.status in (RunStatus.DONE, RunStatus.STOPPED)
        return ["None of your files was changed."] if done else []
    lines = [f"{count(len(view.landed), 'file')} changed in {root}:"]
    lines += [f"  {one_line(file)}" for file in view.landed[:_FILES_LISTED]]
    if len(view.landed) > _FILES_LISTED:
        lines.append(f"  … and {len(view.landed) - _FILES_LISTED} more")
    if view.commit:
        lines.append(f"They are committed as {one_line(view.commit, 12)}.")
    elif view.head is not None:
        commands = commit_lines(view.run_id, view.landed, root, here)
        lines += [f"{'' if number else 'Commit:':<9}{each}" for number, each in enumerate(commands)]
    lines.append(f"Undo:    agentcanvas undo {quoted(view.run_id)}")
    return lines


def _waiting(asks: Sequence[PersonAsk], view: RunView) -> list[str]:
    lines: list[str] = []
    for ask in asks:
        problem = [f"Asked again: {one_line(ask.problem, 400)}"] if ask.problem else []
        lines += ["", headline(ask), *problem, *listed_commands(ask, _bars(ask, view))]
    if asks:
        lines += ["", f"Look at it:  agentcanvas review {quoted(asks[0].run_id)}"]
    return lines


def _bars(ask: PersonAsk, view: RunView) -> Bars:
    task = view.tasks.get(task_of(ask))
    if task is None:
        return NO_BARS
    return Bars(conflicts=task.fitness == Fitness.CONFLICTS, red=bool(task.worse))


def _next(view: RunView, *, left: bool) -> list[str]:
    run = quoted(view.run_id)
    report = [f"Report:  agentcanvas report {run}"] if view.ended else []
    cut_off = view.status is RunStatus.INTERRUPTED or view.reason == STOPPED_BY_PERSON
    if cut_off or (left and not view.ended and not asks_only(view)):
        return [f"Resume:  agentcanvas resume {run}", *report]
    unhappy = any(task.status in _UNHAPPY for task in view.tasks.values())
    if view.status is RunStatus.STOPPED or (view.ended and unhappy):
        return [f"Retry:   agentcanvas retry {run}", *report]
    return report


_UNHAPPY = frozenset({TaskStatus.FAILED, TaskStatus.REJECTED})
