"""The state of a run: a fold over its events, and nothing that is not in them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from agentcanvas.errors import ValidationError
from agentcanvas.proposals.model import Decision
from agentcanvas.runs import events as e


class RunStatus(StrEnum):
    """Where a run stands."""

    NEW = "new"
    RUNNING = "running"
    PARKED = "parked"
    INTERRUPTED = "interrupted"
    DONE = "done"
    STOPPED = "stopped"

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self in (RunStatus.DONE, RunStatus.STOPPED)


_MOVES = {
    RunStatus.NEW: frozenset({RunStatus.RUNNING}),
    RunStatus.RUNNING: frozenset(
        {RunStatus.PARKED, RunStatus.INTERRUPTED, RunStatus.DONE, RunStatus.STOPPED}
    ),
    RunStatus.PARKED: frozenset({RunStatus.RUNNING, RunStatus.STOPPED}),
    RunStatus.INTERRUPTED: frozenset({RunStatus.RUNNING, RunStatus.STOPPED}),
    RunStatus.DONE: frozenset[RunStatus](),
    RunStatus.STOPPED: frozenset({RunStatus.RUNNING}),  # by ``resume``
}


class TaskStatus(StrEnum):
    """Where a task stands; the board's columns."""

    DISPATCHED = "dispatched"
    IN_REVIEW = "in_review"
    REVISING = "revising"
    APPLIED = "applied"
    REJECTED = "rejected"
    FAILED = "failed"
    UNDONE = "undone"


class TaskState(msgspec.Struct, frozen=True):
    """One task as its events tell it."""

    task_id: str
    worker: str
    instruction: str
    status: TaskStatus = TaskStatus.DISPATCHED
    attempts: int = 1
    summary: str = ""
    files: tuple[str, ...] = ()
    reason: str = ""


class RunState(msgspec.Struct, frozen=True):
    """A run as its events tell it."""

    run_id: str = ""
    status: RunStatus = RunStatus.NEW
    flow: str = ""
    request: str = ""
    names: dict[str, str] = {}
    tasks: dict[str, TaskState] = {}
    waits_for: str = ""
    reason: str = ""
    result: str = ""
    landed: tuple[str, ...] = ()
    commit: str | None = None
    head: str | None = None
    seq: int = 0

    def name_of(self, agent: str) -> str:
        """What people call an agent or person; without a name its id, capitalised."""
        plain = agent.removeprefix("person:")
        return self.names.get(agent) or plain[:1].upper() + plain[1:]


def fold(recorded: Iterable[e.Recorded], state: RunState | None = None) -> RunState:
    """The state after these events, from the start or from an earlier state."""
    current = RunState() if state is None else state
    for entry in recorded:
        current = _after(current, entry)
    return current


def _after(state: RunState, entry: e.Recorded) -> RunState:
    change = msgspec.structs.replace
    state = change(state, seq=entry.seq, run_id=entry.run_id)
    match entry.event:
        case e.RunStarted(payload=start):
            names = {member.id: member.name for member in start.team}
            return change(
                _moved(state, RunStatus.RUNNING),
                flow=start.flow,
                request=start.request,
                names=names,
                head=start.head,
            )
        case e.RunParked(payload=waiting):
            said = f"{waiting.person}: {waiting.question}"
            return change(_moved(state, RunStatus.PARKED), waits_for=said)
        case e.RunInterrupted():
            return _moved(state, RunStatus.INTERRUPTED)
        case e.RunResumed():
            return change(_moved(state, RunStatus.RUNNING), waits_for="", reason="")
        case e.RunEnded(payload=end):
            ended = _moved(state, RunStatus.DONE if end.done else RunStatus.STOPPED)
            head = end.head or state.head
            return change(ended, reason=end.reason, result=end.result, head=head, waits_for="")
        case e.ProposalLanded(payload=landed):
            files = tuple(dict.fromkeys((*state.landed, *landed.files)))
            state = change(state, landed=files, commit=landed.commit or state.commit)
            return _with_task(state, landed.task_id, status=TaskStatus.APPLIED, files=landed.files)
        case e.ProposalUndone(payload=undone):
            left = tuple(file for file in state.landed if file not in undone.files)
            return _with_task(change(state, landed=left), undone.task_id, status=TaskStatus.UNDONE)
        case _:
            return _after_collaboration(state, entry.event)


def _after_collaboration(state: RunState, event: e.RunEvent) -> RunState:
    match event:
        case e.TaskDispatched(payload=dispatch):
            return _dispatched(state, dispatch)
        case e.ProposalSubmitted(payload=submission):
            return _with_task(
                state,
                submission.task_id,
                status=TaskStatus.IN_REVIEW,
                summary=submission.summary,
            )
        case e.ProposalReviewed(payload=review):
            status = {
                Decision.APPLY: TaskStatus.IN_REVIEW,  # landed only when proposal_applied says so
                Decision.REVISE: TaskStatus.REVISING,
                Decision.REJECT: TaskStatus.REJECTED,
            }[review.decision]
            if review.applied_at is not None:
                status = TaskStatus.APPLIED
            return _with_task(state, review.task_id, status=status, reason=review.reason or "")
        case e.TaskFailed(payload=failure):
            return _with_task(
                state, failure.task_id, status=TaskStatus.FAILED, reason=failure.reason
            )
        case e.Announced(payload=announced):
            return _touched(state, announced.worker_id, announced.touched_files)
        case _:
            return state


def _dispatched(state: RunState, dispatch: e.Dispatch) -> RunState:
    earlier = state.tasks.get(dispatch.task_id)
    task = TaskState(
        dispatch.task_id,
        dispatch.worker_id,
        dispatch.instruction if earlier is None else earlier.instruction,
        attempts=1 if earlier is None else earlier.attempts + 1,
    )
    return msgspec.structs.replace(state, tasks={**state.tasks, dispatch.task_id: task})


def _touched(state: RunState, worker: str, files: tuple[str, ...]) -> RunState:
    """An announcement names the worker, not the task: it is about the worker's latest one."""
    latest = [task for task in state.tasks.values() if task.worker == worker]
    return _with_task(state, latest[-1].task_id, files=files) if latest and files else state


def _with_task(state: RunState, task_id: str, **fields: object) -> RunState:
    task = state.tasks.get(task_id)
    if task is None:
        return state
    changed = msgspec.structs.replace(task, **fields)
    return msgspec.structs.replace(state, tasks={**state.tasks, task_id: changed})


def _moved(state: RunState, target: RunStatus) -> RunState:
    if target not in _MOVES[state.status]:
        legal = ", ".join(sorted(_MOVES[state.status])) or "nothing"
        raise ValidationError(
            f"A run that is {state.status} cannot become {target}; it can become {legal}"
        )
    return msgspec.structs.replace(state, status=target)
