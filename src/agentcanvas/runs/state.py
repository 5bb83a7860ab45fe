"""The state of a run: a fold over its events, and nothing that is not in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

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
    ANSWERED = "answered"
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
    fitness: str = ""
    """How its proposal stands while it waits: clean, merges, stale or conflicts."""
    standing: str = ""
    """The same in words, with the other proposals that it meets."""


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
    folding = Folding(state)
    for entry in recorded:
        folding.add(entry)
    return folding.state()


class Folding:
    """A state in the making: an event costs what it changes, however large the run has become."""

    def __init__(self, state: RunState | None = None) -> None:
        self._state = RunState() if state is None else state
        self._tasks = dict(self._state.tasks)
        self._landed = dict.fromkeys(self._state.landed)
        self._latest: dict[str, str | None] = {}
        self._seq = self._state.seq
        self._run_id = self._state.run_id

    def add(self, entry: e.Recorded) -> None:
        """Take in the next event."""
        self._seq = entry.seq
        self._run_id = entry.run_id
        change = self._CHANGES.get(type(entry.event))
        if change is not None:
            change(self, entry.event)

    def state(self) -> RunState:
        """The state as it is now."""
        return msgspec.structs.replace(
            self._state,
            seq=self._seq,
            run_id=self._run_id,
            tasks=dict(self._tasks),
            landed=tuple(self._landed),
        )

    # -- the run ----------------------------------------------------------------------------------

    def _started(self, event: e.RunStarted) -> None:
        start = event.payload
        names = {member.id: member.name for member in start.team}
        self._move(
            RunStatus.RUNNING,
            flow=start.flow,
            request=start.request,
            names=names,
            head=start.head,
        )

    def _parked(self, event: e.RunParked) -> None:
        waiting = event.payload
        self._move(RunStatus.PARKED, waits_for=f"{waiting.person}: {waiting.question}")

    def _interrupted(self, event: e.RunInterrupted) -> None:
        del event
        self._move(RunStatus.INTERRUPTED)

    def _resumed(self, event: e.RunResumed) -> None:
        del event
        self._move(RunStatus.RUNNING, waits_for="", reason="")

    def _ended(self, event: e.RunEnded) -> None:
        end = event.payload
        self._move(
            RunStatus.DONE if end.done else RunStatus.STOPPED,
            reason=end.reason,
            result=end.result,
            head=end.head or self._state.head,
            waits_for="",
        )

    def _move(self, target: RunStatus, **fields: object) -> None:
        status = self._state.status
        if target not in _MOVES[status]:
            legal = ", ".join(sorted(_MOVES[status])) or "nothing"
            raise ValidationError(
                f"A run that is {status} cannot become {target}; it can become {legal}"
            )
        self._state = msgspec.structs.replace(self._state, status=target, **fields)

    # -- its tasks --------------------------------------------------------------------------------

    def _dispatched(self, event: e.TaskDispatched) -> None:
        dispatch = event.payload
        earlier = self._tasks.get(dispatch.task_id)
        self._tasks[dispatch.task_id] = TaskState(
            dispatch.task_id,
            dispatch.worker_id,
            dispatch.instruction if earlier is None else earlier.instruction,
            attempts=1 if earlier is None else earlier.attempts + 1,
        )
        if earlier is None:
            self._latest[dispatch.worker_id] = dispatch.task_id
        elif earlier.worker != dispatch.worker_id:
            self._latest.clear()

    def _submitted(self, event: e.ProposalSubmitted) -> None:
        submission = event.payload
        self._set_task(
            submission.task_id,
            status=TaskStatus.IN_REVIEW,
            summary=submission.summary,
            fitness="",
            standing="",
        )

    def _rechecked(self, event: e.ProposalRechecked) -> None:
        now = event.payload
        said = "; ".join(filter(None, (now.reason, *now.meets)))
        self._set_task(now.task_id, fitness=now.fitness, standing=said)

    def _reviewed(self, event: e.ProposalReviewed) -> None:
        review = event.payload
        status = {
            Decision.APPLY: TaskStatus.IN_REVIEW,  # landed only when proposal_applied says so
            Decision.REVISE: TaskStatus.REVISING,
            Decision.REJECT: TaskStatus.REJECTED,
        }[review.decision]
        if review.applied_at is not None:
            status = TaskStatus.APPLIED
        self._set_task(
            review.task_id, status=status, reason=review.reason or "", fitness="", standing=""
        )

    def _failed(self, event: e.TaskFailed) -> None:
        failure = event.payload
        self._set_task(failure.task_id, status=TaskStatus.FAILED, reason=failure.reason)

    def _answered(self, event: e.TaskAnswered) -> None:
        answered = event.payload
        self._set_task(
            answered.task_id, status=TaskStatus.ANSWERED, summary=answered.summary, reason=""
        )

    def _announced(self, event: e.Announced) -> None:
        """An announcement names the worker, not the task: it is about the worker's latest one."""
        announced = event.payload
        latest = self._latest_of(announced.worker_id)
        if latest is not None and announced.touched_files:
            self._set_task(latest, files=announced.touched_files)

    def _applied(self, event: e.ProposalLanded) -> None:
        landed = event.payload
        self._landed.update(dict.fromkeys(landed.files))
        commit = landed.commit or self._state.commit
        self._state = msgspec.structs.replace(self._state, commit=commit)
        self._set_task(landed.task_id, status=TaskStatus.APPLIED, files=landed.files)

    def _undone(self, event: e.ProposalUndone) -> None:
        undone = event.payload
        for file in undone.files:
            self._landed.pop(file, None)
        self._set_task(undone.task_id, status=TaskStatus.UNDONE)

    def _set_task(self, task_id: str, **fields: object) -> None:
        task = self._tasks.get(task_id)
        if task is not None:
            self._tasks[task_id] = msgspec.structs.replace(task, **fields)

    def _latest_of(self, worker: str) -> str | None:
        if worker not in self._latest:
            tasks = reversed(self._tasks.values())
            found = (task.task_id for task in tasks if task.worker == worker)
            self._latest[worker] = next(found, None)
        return self._latest[worker]

    _CHANGES: ClassVar[Mapping[type, Callable[[Folding, Any], None]]] = {
        e.RunStarted: _started,
        e.RunParked: _parked,
        e.RunInterrupted: _interrupted,
        e.RunResumed: _resumed,
        e.RunEnded: _ended,
        e.TaskDispatched: _dispatched,
        e.ProposalSubmitted: _submitted,
        e.ProposalRechecked: _rechecked,
        e.ProposalReviewed: _reviewed,
        e.TaskFailed: _failed,
        e.TaskAnswered: _answered,
        e.Announced: _announced,
        e.ProposalLanded: _applied,
        e.ProposalUndone: _undone,
    }
    """What each kind of event changes; others change nothing."""
