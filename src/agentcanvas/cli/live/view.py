"""What is to be seen of a run: a fold over its events and transcripts, and nothing drawn.

Unlike the run's state it judges nothing: events in an order that cannot be still give a view, since
a window that fails shows less than one that is wrong for a moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct, structs

from agentcanvas.cli.live.said import lines_said
from agentcanvas.flows.reach import Reach, in_one_line
from agentcanvas.proposals.model import Decision, ProposalReview, TestsRun
from agentcanvas.protocol.records import ResultEvent, Usage
from agentcanvas.runs import events as e
from agentcanvas.runs.office import TranscriptEntry
from agentcanvas.runs.state import RunStatus, TaskStatus

LINES_KEPT = 3
"""How much of what an agent says stays in sight."""

ENDED = frozenset({RunStatus.DONE, RunStatus.STOPPED})
RESTING = frozenset({RunStatus.PARKED, RunStatus.INTERRUPTED})
REVIEW = "review:"
PLAN = "plan:"


class Verdict(Struct, frozen=True, rename="camel"):
    """What was decided about a task, by whom and why."""

    decision: Decision
    by: str
    reason: str = ""


class TaskView(Struct, frozen=True, kw_only=True, rename="camel"):
    """One task: who is at it, how far it is, and what speaks for it."""

    task_id: str
    worker: str
    instruction: str
    status: TaskStatus = TaskStatus.DISPATCHED
    attempts: int = 1
    since_ms: int = 0
    step: str = ""
    summary: str = ""
    changed: int = 0
    files: tuple[str, ...] = ()
    landed_at: int = 0
    evidence: str = ""
    evidence_status: str = ""
    red: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    fitness: str = ""
    tests: TestsRun | None = None
    verdicts: tuple[Verdict, ...] = ()
    reason: str = ""


class AgentView(Struct, frozen=True, kw_only=True, rename="camel"):
    """One member of the team; ``turn_id`` is empty while nobody has asked it."""

    agent_id: str
    name: str
    role: str = ""
    turn_id: str = ""
    task_id: str = ""
    since_ms: int = 0
    step: str = ""
    lines: tuple[str, ...] = ()
    reach: Reach = Reach()


class RunView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A run as it is shown; times are in ms since the epoch."""

    run_id: str = ""
    flow: str = ""
    request: str = ""
    status: RunStatus = RunStatus.NEW
    agents: dict[str, AgentView] = {}
    tasks: dict[str, TaskView] = {}
    asks: dict[str, e.PersonAsked] = {}
    waits_for: str = ""
    reason: str = ""
    result: str = ""
    warnings: tuple[str, ...] = ()
    landed: tuple[str, ...] = ()
    commit: str | None = None
    head: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    cost_is_estimate: bool = False
    started_ms: int = 0
    rests_since_ms: int | None = None
    rested_ms: int = 0
    seq: int = 0

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def at_work(self) -> tuple[AgentView, ...]:
        return tuple(agent for agent in self.agents.values() if agent.turn_id)

    @property
    def given(self) -> str:
        """The network and variables of its members, where that is more than the usual."""
        return in_one_line({agent.agent_id: agent.reach for agent in self.agents.values()})

    @property
    def waiting(self) -> str:
        """Whom the run waits for, and for what; empty when for nobody."""
        if self.ended:
            return ""
        asked = [f"{ask.person}: {ask.question}" for ask in self.asks.values()]
        return "; ".join(asked) or self.waits_for

    def name_of(self, agent: str) -> str:
        """What people call an agent."""
        known = self.agents.get(agent)
        return (known.name if known else "") or agent.removeprefix("person:")

    def worked_ms(self, now_ms: int) -> int:
        """How long it has worked; waiting for a person does not count (D25)."""
        until = now_ms if self.rests_since_ms is None else self.rests_since_ms
        return max(0, until - self.started_ms - self.rested_ms)


def view_of(recorded: Iterable[e.Recorded], view: RunView | None = None) -> RunView:
    """The view after these events, from the start or from an earlier view."""
    current = RunView() if view is None else view
    for entry in recorded:
        current = after(current, entry)
    return current


def after(view: RunView, entry: e.Recorded) -> RunView:
    """The view after one more event."""
    seen = structs.replace(view, run_id=entry.run_id or view.run_id, seq=max(view.seq, entry.seq))
    seen = _spent(seen, entry.event.usage)
    return _after_turn(_after_task(_after_run(seen, entry), entry), entry)


def heard(view: RunView, entry: TranscriptEntry) -> RunView:
    """The view after an agent has said or done something."""
    said = lines_said(entry.event)
    agent = view.agents.get(entry.agent)
    if not said or agent is None:
        return view
    if isinstance(entry.event, ResultEvent) and agent.lines[-len(said) :] == tuple(said):
        return view  # the last words once more
    lines = (*agent.lines, *said)[-LINES_KEPT:]
    return _with_agent(view, agent.agent_id, lines=lines)


# What concerns the run as a whole -----------------------------------------------------------------


def _after_run(view: RunView, entry: e.Recorded) -> RunView:
    match entry.event:
        case e.RunStarted(payload=start):
            team = {
                member.id: AgentView(
                    agent_id=member.id,
                    name=member.name,
                    role=member.role,
                    reach=Reach(member.network, member.variables),
                )
                for member in start.team
            }
            return structs.replace(
                view,
                flow=start.flow,
                request=start.request,
                agents={**view.agents, **team},
                head=start.head,
                started_ms=entry.ts,
                status=RunStatus.RUNNING,
            )
        case e.RunParked(payload=waiting):
            said = f"{waiting.person}: {waiting.question}"
            return _rests(structs.replace(view, waits_for=said), RunStatus.PARKED, entry.ts)
        case e.RunInterrupted():
            return _rests(_nobody_at_work(view), RunStatus.INTERRUPTED, entry.ts)
        case e.RunResumed():
            return _goes_on(view, entry.ts)
        case e.RunEnded(payload=end):
            ended = _rests(
                _nobody_at_work(view),
                RunStatus.DONE if end.done else RunStatus.STOPPED,
                entry.ts,
            )
            return structs.replace(
                ended,
                reason=end.reason,
                result=end.result,
                head=end.head or view.head,
                waits_for="",
                asks={},
            )
        case _:
            return _after_word(view, entry.event)


def _after_word(view: RunView, event: e.RunEvent) -> RunView:
    match event:
        case e.AskedPerson(payload=asked):
            return structs.replace(view, asks={**view.asks, asked.ask_id: asked})
        case e.AnsweredByPerson(payload=answered):
            left = {key: ask for key, ask in view.asks.items() if key != answered.ask_id}
            return structs.replace(view, asks=left)
        case e.WarningGiven(payload=warned):
            return structs.replace(view, warnings=(*view.warnings, warned.sentence))
        case _:
            return view


def _rests(view: RunView, status: RunStatus, ts: int) -> RunView:
    since = ts if view.rests_since_ms is None else view.rests_since_ms
    return structs.replace(view, status=status, rests_since_ms=since)


def _goes_on(view: RunView, ts: int) -> RunView:
    rested = 0 if view.rests_since_ms is None else max(0, ts - view.rests_since_ms)
    return structs.replace(
        view,
        status=RunStatus.RUNNING,
        rests_since_ms=None,
        rested_ms=view.rested_ms + rested,
        waits_for="",
    )


def _nobody_at_work(view: RunView) -> RunView:
    idle = {
        key: structs.replace(agent, turn_id="", task_id="", step="")
        for key, agent in view.agents.items()
    }
    return structs.replace(view, agents=idle)


def _spent(view: RunView, usage: Usage | None) -> RunView:
    if usage is None:
        return view
    return structs.replace(
        view,
        input_tokens=view.input_tokens + (usage.input_tokens or 0),
        output_tokens=view.output_tokens + (usage.output_tokens or 0),
        cost=view.cost + (0.0 if usage.cost is UNSET else usage.cost),
        cost_is_estimate=view.cost_is_estimate or usage.estimated is True,
    )


# What concerns one task ---------------------------------------------------------------------------


def _after_task(view: RunView, entry: e.Recorded) -> RunView:
    match entry.event:
        case e.TaskDispatched(payload=dispatch):
            return _dispatched(view, dispatch, entry.ts)
        case e.ProposalSubmitted(payload=submitted):
            return _with_task(
                view,
                submitted.task_id,
                status=TaskStatus.IN_REVIEW,
                summary=submitted.summary,
                changed=submitted.changed_files,
                fitness="",
                step="",
            )
        case e.ChecksRun(payload=checked):
            return _with_task(
                view,
                checked.task_id,
                evidence=checked.sentence,
                evidence_status=checked.status,
                red=checked.red,
                worse=checked.worse,
                tests=checked.tests,
            )
        case e.ProposalReviewed(payload=review):
            return _reviewed(view, review, view.name_of(entry.event.actor))
        case e.TaskFailed(payload=failure):
            return _with_task(
                view, failure.task_id, status=TaskStatus.FAILED, reason=failure.reason, step=""
            )
        case e.TaskAnswered(payload=answered):
            return _with_task(view, answered.task_id, status=TaskStatus.ANSWERED, step="")
        case e.ProposalRechecked() | e.ProposalLanded() | e.ProposalUndone():
            return _in_the_files(view, entry.event, entry.seq)
        case _:
            return view


def _in_the_files(
    view: RunView, event: e.ProposalRechecked | e.ProposalLanded | e.ProposalUndone, seq: int
) -> RunView:
    match event:
        case e.ProposalRechecked(payload=standing):
            return _with_task(view, standing.task_id, fitness=standing.fitness)
        case e.ProposalLanded(payload=landed):
            files = tuple(dict.fromkeys((*view.landed, *landed.files)))
            view = structs.replace(view, landed=files, commit=landed.commit or view.commit)
            return _with_task(
                view,
                landed.task_id,
                status=TaskStatus.APPLIED,
                files=landed.files,
                landed_at=seq,
                step="",
            )
        case e.ProposalUndone(payload=undone):
            left = tuple(file for file in view.landed if file not in undone.files)
            view = structs.replace(view, landed=left)
            return _with_task(view, undone.task_id, status=TaskStatus.UNDONE)


def _dispatched(view: RunView, dispatch: e.Dispatch, ts: int) -> RunView:
    earlier = view.tasks.get(dispatch.task_id)
    if earlier is not None:
        return _with_task(
            view,
            dispatch.task_id,
            status=TaskStatus.DISPATCHED,
            worker=dispatch.worker_id,
            attempts=earlier.attempts + 1,
            since_ms=ts,
            step="",
        )
    task = TaskView(
        task_id=dispatch.task_id,
        worker=dispatch.worker_id,
        instruction=dispatch.instruction,
        since_ms=ts,
    )
    return structs.replace(view, tasks={**view.tasks, dispatch.task_id: task})


_AFTER_VERDICT = {
    Decision.APPLY: TaskStatus.IN_REVIEW,  # landed only when proposal_applied says so
    Decision.REVISE: TaskStatus.REVISING,
    Decision.REJECT: TaskStatus.REJECTED,
}


def _reviewed(view: RunView, review: ProposalReview, by: str) -> RunView:
    task = view.tasks.get(review.task_id)
    if task is None:
        return view
    landed = review.applied_at is not None
    reason = review.reason or ""
    return _with_task(
        view,
        review.task_id,
        status=TaskStatus.APPLIED if landed else _AFTER_VERDICT[review.decision],
        verdicts=(*task.verdicts, Verdict(review.decision, by, reason)),
        reason=reason,
    )


def _with_task(view: RunView, task_id: str, **fields: Any) -> RunView:
    task = view.tasks.get(task_id)
    if task is None:
        return view
    return structs.replace(view, tasks={**view.tasks, task_id: structs.replace(task, **fields)})


# What concerns one agent --------------------------------------------------------------------------


def _after_turn(view: RunView, entry: e.Recorded) -> RunView:
    match entry.event:
        case e.TurnStarted(payload=begun):
            return _with_agent(
                view,
                begun.to,
                turn_id=begun.turn_id,
                task_id=begun.task_id,
                since_ms=entry.ts,
                step="",
                lines=(),
            )
        case e.TurnProgressed(payload=progress):
            agent = _at_turn(view, progress.turn_id)
            view = _with_task(view, progress.task_id, step=progress.step)
            return view if agent is None else _with_agent(view, agent.agent_id, step=progress.step)
        case e.TurnEnded(payload=done):
            agent = _at_turn(view, done.turn_id)
            if agent is None:
                return view
            return _with_agent(view, agent.agent_id, turn_id="", task_id="", step="")
        case _:
            return view


def _at_turn(view: RunView, turn_id: str) -> AgentView | None:
    return next((agent for agent in view.agents.values() if agent.turn_id == turn_id), None)


def _with_agent(view: RunView, agent_id: str, **fields: Any) -> RunView:
    agent = view.agents.get(agent_id) or AgentView(agent_id=agent_id, name=agent_id)
    return structs.replace(view, agents={**view.agents, agent_id: structs.replace(agent, **fields)})
