"""A run as a picture that changes: who is at what, what they say, and whom it waits for.

What has happened stays above as lines; the picture below is drawn anew a few times a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.live.clean import lines_of, one_line
from agentcanvas.cli.live.view import AgentView, RunView, TaskView
from agentcanvas.cli.live.words import (
    RUN_STYLES,
    duration,
    evidence_style,
    short,
    spent,
    task_mark,
    told,
)
from agentcanvas.clock import Clock
from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunStatus, TaskStatus

_NARROW = 70
_PER_SECOND = 4
_UNSEEN = (e.TurnProgressed, e.TurnStarted)
"""Events that the picture itself shows."""


def picture(view: RunView, now_ms: int, width: int) -> RenderableType:
    """The run as it stands."""
    if view.status is RunStatus.NEW:
        return Text("Starting …", style="dim")
    parts: list[RenderableType] = [_headline(view, now_ms)]
    if view.tasks:
        parts.append(_tasks(view, now_ms, width))
    loose = [agent for agent in view.at_work if agent.task_id not in view.tasks]
    parts += [_agent(agent, now_ms) for agent in loose]
    if view.waiting:
        parts.append(_one(f"Waiting for {one_line(view.waiting)}", "yellow"))
    return Group(*parts)


def _headline(view: RunView, now_ms: int) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(str(view.status), style=f"bold {RUN_STYLES[view.status]}")
    line.append(f"  {duration(view.worked_ms(now_ms))}")
    cost = spent(view.tokens, view.cost, estimated=view.cost_is_estimate)
    line.append(f"  {cost}" if cost else "", style="dim")
    line.append(f"  {one_line(view.request)}", style="bold")
    return line


def _tasks(view: RunView, now_ms: int, width: int) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=1)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(8, width // 5))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(8, width // 6))
    table.add_column(no_wrap=True, min_width=10)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for task in view.tasks.values():
        sign, word, style = task_mark(task, view)
        table.add_row(
            Text(sign, style=style),
            Text(short(task.task_id), style="bold"),
            Text(one_line(view.name_of(task.worker), 40)),
            Text(word, style=style),
            _standing(view, task, now_ms),
        )
        for line in _last_lines(view, task) if width >= _NARROW else ():
            table.add_row("", "", "", Text("│", style="dim", justify="right"), line)
    return table


def _standing(view: RunView, task: TaskView, now_ms: int) -> Text:
    """What is worth knowing about a task in its state."""
    text = Text(no_wrap=True, overflow="ellipsis")
    if task.status in (TaskStatus.DISPATCHED, TaskStatus.REVISING):
        if not view.ended and view.rests_since_ms is None:
            text.append(f"{duration(now_ms - task.since_ms)}  ", style="dim")
        if task.attempts > 1:
            text.append(f"attempt {task.attempts}  ", style="dim")
        text.append(one_line(task.step or task.reason or task.instruction))
    elif task.status in (TaskStatus.REJECTED, TaskStatus.FAILED):
        text.append(one_line(task.reason or task.instruction))
    elif task.evidence:
        text.append(one_line(task.evidence), style=evidence_style(task.evidence_status))
    else:
        text.append(one_line(task.summary or task.instruction))
    return text


def _last_lines(view: RunView, task: TaskView) -> list[Text]:
    agent = view.agents.get(task.worker)
    if agent is None or agent.task_id != task.task_id or not agent.turn_id:
        return []
    return [_one(line, "dim") for line in agent.lines if line.strip()]


def _agent(agent: AgentView, now_ms: int) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append("● ", style="cyan")
    line.append(one_line(agent.name, 40), style="bold")
    line.append(f"  {duration(now_ms - agent.since_ms)}  ", style="dim")
    last = agent.step or (agent.lines[-1] if agent.lines else "")
    line.append(one_line(last), style="dim")
    return line


def _one(text: str, style: str = "") -> Text:
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


class RichScreen:
    """Lines that stay, and the picture below them."""

    wants_transcripts = True

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._view = RunView()
        self._live: Live | None = None

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Draw the picture until the block is left."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def show(self, view: RunView, recorded: e.Recorded | None = None) -> None:
        """Take the view for the next drawing, and keep the event as a line."""
        self._view = view
        if recorded is None or isinstance(recorded.event, _UNSEEN):
            return
        sentence = told(recorded.event, view)
        if sentence:
            self._console.print(
                Text(f"{duration(recorded.ts - view.started_ms):>7}  {sentence}", style="dim")
            )

    def say(self, sentence: str) -> None:
        """Put it among the lines."""
        for line in lines_of(sentence):
            self._console.print(Text(line, style="bold"))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the picture away while something else uses the terminal."""
        drawn = self._live is not None
        self._end()
        try:
            yield
        finally:
            if drawn:
                self._begin()

    def _begin(self) -> None:
        # A new one each time: rich would draw over what was printed while it stood aside.
        self._live = Live(
            console=self._console,
            get_renderable=self._picture,
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _picture(self) -> RenderableType:
        return picture(self._view, self._clock.now_ms(), self._console.width)
