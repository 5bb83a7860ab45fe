"""An event in one sentence, and the small words that all views share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.planning import plan_in
from agentcanvas.cli.live.view import PLAN, REVIEW, RunView, TaskView
from agentcanvas.proposals.checks import EvidenceStatus
from agentcanvas.proposals.model import Decision
from agentcanvas.proposals.radar import Fitness
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunSummary
from agentcanvas.runs.state import RunStatus, TaskStatus
from agentcanvas.sandbox.disk import in_words

_FILES_NAMED = 4
# An edge is labelled so on the canvas, where there is little room.
_ROUNDS = re.compile(r" \((\d+)r\)$")
_THOUSAND = 1000
_SECOND_MS = 1000
_MINUTE_S = 60
_HOUR_S = 3600

TASK_WORDS = {
    TaskStatus.DISPATCHED: "working",
    TaskStatus.IN_REVIEW: "in review",
    TaskStatus.REVISING: "sent back",
    TaskStatus.APPLIED: "applied",
    TaskStatus.REJECTED: "rejected",
    TaskStatus.FAILED: "failed",
    TaskStatus.ANSWERED: "answered",
    TaskStatus.UNDONE: "taken back",
}
TASK_SIGNS = {
    TaskStatus.DISPATCHED: "●",
    TaskStatus.IN_REVIEW: "?",
    TaskStatus.REVISING: "↻",
    TaskStatus.APPLIED: "✓",
    TaskStatus.REJECTED: "✗",
    TaskStatus.FAILED: "✗",
    TaskStatus.ANSWERED: "✓",
    TaskStatus.UNDONE: "↩",
}
TASK_STYLES = {
    TaskStatus.DISPATCHED: "cyan",
    TaskStatus.IN_REVIEW: "yellow",
    TaskStatus.REVISING: "yellow",
    TaskStatus.APPLIED: "green",
    TaskStatus.REJECTED: "red",
    TaskStatus.FAILED: "red",
    TaskStatus.ANSWERED: "green",
    TaskStatus.UNDONE: "dim",
}
RUN_STYLES = {
    RunStatus.NEW: "dim",
    RunStatus.RUNNING: "cyan",
    RunStatus.PARKED: "yellow",
    RunStatus.INTERRUPTED: "yellow",
    RunStatus.DONE: "green",
    RunStatus.STOPPED: "red",
}
_EVIDENCE_STYLES = {str(EvidenceStatus.PASSED): "green", str(EvidenceStatus.FAILED): "red"}
_FITNESS = {
    str(Fitness.CLEAN): "fits your files as they are",
    str(Fitness.MERGES): "will be merged with your edits",
    str(Fitness.STALE): "was checked on other files than there are now",
    str(Fitness.CONFLICTS): "conflicts with your files",
}
_VERDICTS = {
    Decision.APPLY: "approved",
    Decision.REJECT: "rejected",
    Decision.REVISE: "sent back",
}


def told(event: e.RunEvent, view: RunView) -> str:
    """One clean sentence for an event, given the view after it; empty for what need not be said."""
    return _told_of_work(event, view) or _told_of_verdict(event, view) or _told_of_run(event, view)


def _told_of_work(event: e.RunEvent, view: RunView) -> str:
    match event:
        case e.TaskDispatched(payload=dispatch):
            task = view.tasks[dispatch.task_id]
            to = f"{short(dispatch.task_id)} → {one_line(view.name_of(dispatch.worker_id), 40)}"
            if task.attempts > 1:
                return f"{to} again (attempt {task.attempts})"
            return f"{to}: {one_line(dispatch.instruction)}"
        case e.ProposalSubmitted(actor=actor, payload=submitted):
            what = f"proposes a change of {count(submitted.changed_files, 'file')}"
            gist = f": {one_line(submitted.summary)}" if submitted.summary.strip() else ""
            return f"{short(submitted.task_id)} {one_line(view.name_of(actor), 40)} {what}{gist}"
        case e.ChecksRun(payload=checked):
            return f"{short(checked.task_id)} checks: {one_line(checked.sentence)}"
        case e.LimitReached(payload=limit):
            return _of_limit(view, limit)
        case e.TurnProgressed(actor=actor, payload=progress) if progress.step.strip():
            where = f"{short(progress.task_id)} " if progress.task_id else ""
            return f"{where}{one_line(view.name_of(actor), 40)}: {one_line(progress.step)}"
        case _:
            return ""


def _told_of_verdict(event: e.RunEvent, view: RunView) -> str:
    match event:
        case e.ProposalReviewed(actor=actor, payload=review):
            why = f": {one_line(review.reason)}" if review.reason else ""
            by = one_line(view.name_of(actor), 40)
            return f"{short(review.task_id)} {_VERDICTS[review.decision]} by {by}{why}"
        case e.TaskFailed(payload=failure):
            return f"{short(failure.task_id)} failed: {one_line(failure.reason)}"
        case e.TaskAnswered(payload=answered):
            return f"{short(answered.task_id)} answered: {one_line(answered.summary)}"
        case e.ProposalLanded(payload=landed):
            commit = f" (commit {one_line(landed.commit, 12)})" if landed.commit else ""
            return f"{short(landed.task_id)} applied: {files(landed.files)}{commit}"
        case e.PartChosen(payload=part):
            named = files([choice.path for choice in part.chosen])
            return f"{short(part.task_id)} only a part is wanted: {named}"
        case e.ProposalRechecked(payload=now):
            why = f": {one_line(now.reason, 200)}" if now.reason else ""
            met = "".join(f"; {one_line(text, 200)}" for text in now.meets)
            return f"{short(now.task_id)} {_FITNESS[now.fitness]}{why}{met}"
        case e.ProposalUndone(payload=undone):
            return f"{short(undone.task_id)} taken back: {files(undone.files)}"
        case _:
            return ""


def _told_of_run(event: e.RunEvent, view: RunView) -> str:
    match event:
        case e.RunStarted(payload=start):
            return f"Run {short(view.run_id)} ({one_line(start.flow, 40)}): {_request(start)}"
        case e.InteractionStarted(interaction_id=name, payload=configured):
            label = one_line(configured.label, 60)
            if rounds := _ROUNDS.search(label):
                label = f"{label[: rounds.start()]}, at most {count(int(rounds[1]), 'round')}"
            return f"{one_line(name or '', 40)} begins: {label}"
        case e.InteractionEnded(interaction_id=name, payload=end):
            return f"{one_line(name or '', 40)} ended: {one_line(end.reason)}"
        case e.TurnStarted(payload=begun) if not begun.task_id:
            return f"{one_line(view.name_of(begun.to), 40)} is asked: {one_line(begun.text, 100)}"
        case e.TurnEnded(actor=actor, payload=done):
            return _told_of_answer(one_line(view.name_of(actor), 40), done)
        case _:
            return _told_of_notice(event, view) or _told_of_disk(event) or _told_of_life(event)


def _told_of_notice(event: e.RunEvent, view: RunView) -> str:
    match event:
        case e.AskedPerson(payload=asked):
            question = "Accept the plan?" if asked.scope.startswith(PLAN) else asked.question
            return f"Waiting for {one_line(asked.person, 40)}: {one_line(question)}"
        case e.GenerationTaken(payload=base) if set(base.files) - set(view.landed):
            return f"The workspace has changed: {files(base.files)}"
        case e.Noted(payload=note):
            return f"Note: {one_line(note.entry)}"
        case e.MessagePassed(actor=actor, payload=said):
            return f"{one_line(actor, 40)} to {one_line(said.to, 40)}: {one_line(said.text)}"
        case e.Drew(payload=draw):
            return f"Drew {one_line(draw.choice, 40)}: {one_line(draw.why)}"
        case e.WorkerTold(payload=told):
            return f"You say to {one_line(view.name_of(told.agent), 40)}: {one_line(told.text)}"
        case e.WarningGiven(payload=warned):
            return f"Warning: {one_line(warned.sentence, 400)}"
        case _:
            return _told_among_members(event, view)


def _told_among_members(event: e.RunEvent, view: RunView) -> str:
    who = one_line(view.name_of(event.actor), 40)
    match event:
        case e.MemberAsked(payload=asked):
            return f"{who} asks {one_line(view.name_of(asked.to), 40)}: {one_line(asked.text, 100)}"
        case e.MemberAnswered(payload=reply):
            whom = one_line(view.name_of(reply.to), 40)
            return f"{who} answers {whom}: {one_line(reply.text, 100)}"
        case e.TeamPosted(payload=posted):
            return f"{who} on the board, {one_line(posted.topic, 40)}: {one_line(posted.text)}"
        case _:
            return ""


def _told_of_disk(event: e.RunEvent) -> str:
    match event:
        case e.CleaningUp(payload=going):
            mostly = ", ".join(
                f"{one_line(folder.path, 80)} {in_words(folder.bytes)}" for folder in going.largest
            )
            what = f"Cleans up {count(len(going.runs), 'old run')}: frees {in_words(going.frees)}"
            return f"{what}{f' (mostly {mostly})' if mostly else ''}; proposals stay"
        case e.SetupDone(payload=setup):
            notes = "".join(f" {one_line(note, 200)}" for note in setup.notes)
            return (
                f"Set up with: {one_line(setup.command)} (its words: {one_line(setup.log)}){notes}"
            )
        case _:
            return ""


def _of_limit(view: RunView, limit: e.Limit) -> str:
    who = one_line(view.name_of(limit.agent), 40)
    reason = one_line(limit.reason, 200)
    if limit.to:
        return f"{one_line(view.name_of(limit.to), 40)} goes on for {who}: {reason}"
    moment = datetime.fromtimestamp((limit.until_ms or 0) / 1000).astimezone()
    return f"{who} has reached a limit ({reason}); it goes on after {moment:%Y-%m-%d %H:%M}"


def _told_of_life(event: e.RunEvent) -> str:
    match event:
        case e.RunInterrupted():
            return "Interrupted: the process that ran it is gone"
        case e.RunParked():
            return "Parked until there is an answer"
        case e.RunResumed():
            return "Resumed"
        # How a run ended is said below its lines (``ending``), with what can be done next.
        case _:
            return ""


def _told_of_answer(who: str, done: e.TurnDone) -> str:
    if not done.ok:
        why = f": {one_line(done.reason)}" if done.reason else ""
        return f"{who} failed{why}"
    # What a worker says at its task is in its proposal.
    return "" if done.task_id or not done.text.strip() else f"{who}: {_gist(done.text)}"


def _gist(text: str) -> str:
    """An answer in one line; of a plan its summary, since its tasks follow by themselves."""
    try:
        said = msgspec.json.decode(text)
    except msgspec.DecodeError:
        said = None
    match said:
        case {"summary": str(summary), "tasks": [*tasks]} if summary.strip():
            return f"{one_line(summary)} ({count(len(tasks), 'task')})"
        case _:
            return one_line(text)


def _request(start: e.Start) -> str:
    return one_line(start.request) or "no request of its own"


_OPEN = frozenset({TaskStatus.DISPATCHED, TaskStatus.IN_REVIEW, TaskStatus.REVISING})


def task_mark(task: TaskView, view: RunView) -> tuple[str, str, str]:
    """Sign, word and style of a task; what was open when its run ended stays undone."""
    if view.ended and task.status in _OPEN:
        return "-", "not done", "dim"
    return TASK_SIGNS[task.status], TASK_WORDS[task.status], TASK_STYLES[task.status]


def evidence_style(status: str) -> str:
    """Green, red, or yellow for what proves neither."""
    return _EVIDENCE_STYLES.get(status, "yellow")


def count(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def files(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(one_line(name, 80) for name in names[:_FILES_NAMED])
    more = len(names) - _FILES_NAMED
    return f"{shown} and {more} more" if more > 0 else shown or "no file"


def short(name: str) -> str:
    """An id, fit for a line."""
    return one_line(name, 48)


def duration(ms: int) -> str:
    """``0:07``, ``12:30`` or ``2:05:00``."""
    seconds = max(0, ms) // _SECOND_MS
    minutes = seconds % _HOUR_S // _MINUTE_S
    if seconds >= _HOUR_S:
        return f"{seconds // _HOUR_S}:{minutes:02}:{seconds % _MINUTE_S:02}"
    return f"{minutes}:{seconds % _MINUTE_S:02}"


def spent(tokens: int, cost: float, *, estimated: bool = False) -> str:
    """Tokens and money, as far as they are known; some of it may be an estimate."""
    about = "about " if estimated else ""
    parts = []
    if tokens:
        thousands = f"{tokens / _THOUSAND:.1f}k tokens"
        parts.append(about + (thousands if tokens >= _THOUSAND else count(tokens, "token")))
    if cost:
        # A cent is the least that is worth a number.
        parts.append(f"{about}${cost:.2f}" if cost >= 0.01 else "under $0.01")  # noqa: PLR2004
    return ", ".join(parts)


def task_of(ask: PersonAsk) -> str:
    """What an ask is about, as a person names it on the command line."""
    return "plan" if ask.scope.startswith(PLAN) else ask.scope.partition(":")[2] or ask.ask_id


def headline(ask: PersonAsk) -> str:
    """What is asked, in one line."""
    if ask.scope.startswith(PLAN) and (plan := plan_in(ask.default)) is not None:
        tasks = [f"{each.task_id} ({each.agent})" for each in plan.tasks]
        return one_line(f"Accept the plan? {count(len(tasks), 'task')}: {files(tasks)}")
    first = next((line for line in ask.text.splitlines() if line.strip(" #")), "")
    return one_line(first.strip(" #"), 120)


class Bars(Struct, frozen=True, kw_only=True):
    """What keeps a change from landing for the asking: it conflicts, or needs a reason."""

    conflicts: bool = False
    red: bool = False


NO_BARS = Bars()


def review_command(ask: PersonAsk) -> str:
    """The command about an ask, without what is decided."""
    return f"agentcanvas review {quoted(ask.run_id)} {quoted(task_of(ask))}"


def commands_for(ask: PersonAsk, bars: Bars = NO_BARS) -> list[tuple[str, str]]:
    """What can be answered to an ask, each with its command."""
    review = review_command(ask)
    if ask.scope.startswith(REVIEW):
        apply = ("apply it", f"{review} --apply")
        if bars.red or ask.problem:
            apply = ("apply it all the same", f'{review} --apply --reason "…"')
        return [
            *([] if bars.conflicts else [apply]),
            ("send it back", f'{review} --revise "…"'),
            ("reject it", f'{review} --reject "…"'),
        ]
    if ask.scope.startswith(PLAN):
        return [("accept it", f"{review} --apply"), ("cancel", f'{review} --reject "…"')]
    return [("answer", f'{review} --answer "…"')]


def listed_commands(ask: PersonAsk, bars: Bars = NO_BARS) -> list[str]:
    """The same as lines."""
    offered = commands_for(ask, bars)
    width = max(len(meaning) for meaning, _ in offered) + 1
    return [f"  {meaning + ':':<{width}}  {command}" for meaning, command in offered]


def quoted(word: str) -> str:
    """A word as a shell takes it; ids from agents may hold anything."""
    safe = one_line(word)
    plain = all(each.isalnum() or each in "-_.:/@+" for each in safe)
    return safe if plain and safe else "'" + safe.replace("'", "'\\''") + "'"


def run_line(run: RunSummary) -> str:
    """How a run is named where there are several."""
    return f"{short(run.run_id)}  {run.status}  {one_line(run.request, 60)}"
