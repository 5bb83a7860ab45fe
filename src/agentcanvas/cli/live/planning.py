"""A plan as a person sees it and as they edit it: a table, and a text that is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.live.clean import one_line
from agentcanvas.flows import emit
from agentcanvas.flows.document import read_document
from agentcanvas.protocol.plan import Plan, problems

_HEADER = """\
# The plan, in YAML or JSON. Save and leave the editor to go on; what is wrong is said.
# A task has: task_id, agent, description; and may have: depends_on, scope, acceptance_criteria.
"""


def plan_in(data: Any) -> Plan | None:
    """The plan that data holds; None when it holds none."""
    try:
        return msgspec.convert(data, Plan)
    except (msgspec.ValidationError, TypeError):
        return None


def plan_table(plan: Plan, name_of: Callable[[str], str]) -> Table:
    """Who does what, and what waits for what."""
    summary = "" if plan.summary is UNSET else one_line(plan.summary)
    table = Table(title=Text(summary) if summary else None, title_justify="left", expand=False)
    table.add_column("task", style="bold", overflow="fold")
    table.add_column("agent", overflow="fold")
    table.add_column("what is to be done", overflow="fold", ratio=1)
    table.add_column("after", overflow="fold")
    table.add_column("may change", overflow="fold")
    for task in plan.tasks:
        scope = "anything" if task.scope is UNSET else ", ".join(task.scope)
        after = ", ".join(other.task_id for other in task.depends_on)
        table.add_row(
            *(
                Text(one_line(cell, 400))
                for cell in (task.task_id, name_of(task.agent), task.description, after, scope)
            )
        )
    return table


def as_yaml(data: Any) -> str:
    """The text to edit."""
    plain = msgspec.to_builtins(data) if data is not UNSET else {}
    body = emit.lines(plain, 0) if isinstance(plain, dict) and plain else "tasks: []"
    return f"{_HEADER}{body}\n"


def edited(text: str, agents: Sequence[str]) -> tuple[Any, list[str]]:
    """The plan in an edited text, and everything that is wrong with it."""
    document = read_document(text)
    if document.problems:
        return None, [str(problem) for problem in document.problems]
    if not isinstance(document.data, dict):
        return None, ["The plan is a section with the key tasks"]
    try:
        plan = msgspec.convert(document.data, Plan)
    except msgspec.ValidationError as wrong:
        return None, [f"{wrong}"]
    return msgspec.to_builtins(plan), problems(plan, agents)
