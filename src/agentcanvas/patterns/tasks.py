"""The tasks of a plan on their way: handed to those who do them, and what has come of each.

What is done about a task that did not end well is the pattern's decision.
"""

from __future__ import annotations

from msgspec import UNSET

from agentcanvas.pattern import Answer, Ask, Fate, Stage, Work
from agentcanvas.patterns.wording import listed
from agentcanvas.protocol.plan import Plan, PlannedTask
from agentcanvas.protocol.records import FailureClass

_TOO_BIG = frozenset({FailureClass.TURN_LIMIT, FailureClass.TIMEOUT, FailureClass.STALLED})
"""What a turn fails of when its task is too big for it (H4)."""

Done = tuple[PlannedTask, Answer[None]]


class Tasks:
    """All tasks of one round; what it came to before is the result until there is a report."""

    def __init__(self, role: str, before: str = "") -> None:
        self._role = role
        self._before = before
        self._reports: list[str] = []
        self.missing: list[Done] = []
        """Those that are to be done and are not."""

    @property
    def reports(self) -> str:
        """What everybody says of its tasks, whatever became of them."""
        return "\n".join(self._reports)

    async def carry_out(self, stage: Stage, plan: Plan) -> None:
        """Have them done, as far as they do not wait for each other at once."""
        planned = {task.task_id: task for task in plan.tasks}
        await stage.hand_over([_ask(task, self._role) for task in plan.tasks])
        while answers := await stage.collect():
            for ask, answer in answers:
                assert ask.work is not None
                task = planned[ask.work.task_id]
                self._reports.append(_report(task, answer))
                if not answer.done:
                    self.missing.append((task, answer))
            stage.keep(self._before or self.reports)

    @property
    def too_big(self) -> str:
        """The tasks that were too big for one turn, as whoever divides them reads it."""
        big = [task for task, answer in self.missing if answer.failure in _TOO_BIG]
        return listed(f"{task.task_id}: {task.description}" for task in big)

    def let_go_of_too_big(self) -> None:
        """Their parts are done in their place, with what waited for them."""
        self.missing = [
            (task, answer)
            for task, answer in self.missing
            if answer.failure not in _TOO_BIG and answer.fate is not Fate.SKIPPED
        ]

    def why_unfinished(self) -> str:
        """What became of the first that is missing."""
        task, answer = self.missing[0]
        why = f": {answer.reason}" if answer.reason else ""
        return f"{answer.fate}: {task.task_id}{why}"


def _ask(task: PlannedTask, role: str) -> Ask:
    work = Work(
        task.task_id,
        after=task.depends_on,
        scope=None if task.scope is UNSET else task.scope,
        acceptance_criteria=task.acceptance_criteria,
        testing_required=task.testing_required,
    )
    return Ask(task.agent, task.description, work, role=role)


def _report(task: PlannedTask, answer: Answer[None]) -> str:
    why = f": {answer.reason}" if answer.reason else ""
    return f"- {task.task_id} by {answer.agent}: {answer.fate}{why}\n  {answer.text}"
