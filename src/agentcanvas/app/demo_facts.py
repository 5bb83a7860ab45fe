"""What a run of the demo must have shown: told by its events, its folder, its tests and its page.

Nothing is believed that somebody only said: a fact holds by the record of the engine, or because it
was looked at.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread
import httpx
from msgspec import Struct

from agentcanvas.app.demo import TESTS, git
from agentcanvas.app.remote import RemoteOffice
from agentcanvas.app.server import ServerInfo
from agentcanvas.errors import AgentCanvasError
from agentcanvas.proposals.checks import EvidenceStatus
from agentcanvas.proposals.counts import count_tests
from agentcanvas.proposals.model import Decision
from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunStatus, fold

_PLANNER: Final = "manager"
_REVIEWER: Final = "reviewer"
_CODERS: Final = ("coder_a", "coder_b")
_TESTS_TAKE_S: Final = 60.0
_OK: Final = 200


class Fact(Struct, frozen=True):
    """Something that should be true; ``problem`` says what is instead."""

    sentence: str
    problem: str = ""

    @property
    def holds(self) -> bool:
        return not self.problem


async def facts_of(recorded: Sequence[e.Recorded], root: Path, info: ServerInfo) -> list[Fact]:
    """Every fact, in the order in which they came about."""
    there = await anyio.to_thread.run_sync(_what_is_there, recorded, root)
    return [*what_happened(recorded), *there, await _what_the_page_shows(recorded, info)]


# The record ---------------------------------------------------------------------------------------


def what_happened(recorded: Sequence[e.Recorded]) -> list[Fact]:
    """What the events say."""
    story = _Story(recorded)
    return [
        story.worked_at_once(),
        story.sent_back_once(),
        story.rejected_once(),
        story.planned_again(),
        story.landed_by_verdict(),
        story.evidence(),
        story.reached_its_goal(),
    ]


class _Story:
    """The events of one run, by what they are about."""

    def __init__(self, recorded: Sequence[e.Recorded]) -> None:
        self._events = [entry.event for entry in recorded]
        self._state = fold(recorded)
        self._verdicts = {
            decision: [
                (at, event)
                for at, event in enumerate(self._events)
                if isinstance(event, e.ProposalReviewed) and event.payload.decision is decision
            ]
            for decision in Decision
        }
        self._landed = [x.payload for x in self._events if isinstance(x, e.ProposalLanded)]

    def worked_at_once(self) -> Fact:
        """Each of the first turns began before the other had ended."""
        sentence = "Both coders worked at the same time"
        spans = [self._first_turn(coder) for coder in _CODERS]
        if None in spans:
            return Fact(sentence, "one of them never finished a turn")
        (began, ended), (other_began, other_ended) = filter(None, spans)
        apart = ended < other_began or other_ended < began
        return Fact(sentence, "one began when the other had ended" if apart else "")

    def _first_turn(self, agent: str) -> tuple[int, int] | None:
        for began, event in enumerate(self._events):
            if isinstance(event, e.TurnStarted) and event.payload.to == agent:
                turn = event.payload.turn_id
                for ended, other in enumerate(self._events):
                    if isinstance(other, e.TurnEnded) and other.payload.turn_id == turn:
                        return began, ended
        return None

    def sent_back_once(self) -> Fact:
        """One revision, and what came of it landed."""
        sentence = "One proposal was sent back once, and then applied"
        tasks = self._tasks(Decision.REVISE)
        if len(tasks) != 1:
            return Fact(sentence, f"sent back: {_listed(tasks)}")
        return Fact(sentence, "" if tasks[0] in self._applied else f"{tasks[0]} was not applied")

    def rejected_once(self) -> Fact:
        """One rejection, and nothing of it landed."""
        sentence = "One proposal was rejected, and nothing of it landed"
        tasks = self._tasks(Decision.REJECT)
        if len(tasks) != 1:
            return Fact(sentence, f"rejected: {_listed(tasks)}")
        return Fact(sentence, f"{tasks[0]} landed" if tasks[0] in self._applied else "")

    def planned_again(self) -> Fact:
        """After the rejection the planner was asked, and gave a task that was not there before."""
        sentence = "The planner was asked again, and its new task was applied"
        if not self._verdicts[Decision.REJECT]:
            return Fact(sentence, "nothing was rejected")
        at, _ = self._verdicts[Decision.REJECT][0]
        before, after = self._events[:at], self._events[at:]
        if not any(isinstance(x, e.TurnStarted) and x.payload.role == _PLANNER for x in after):
            return Fact(sentence, "it was not asked")
        new = sorted(_dispatched(after) - _dispatched(before))
        if len(new) != 1 or new[0] not in self._applied:
            return Fact(sentence, f"new tasks: {_listed(new)}; applied: {_listed(self._applied)}")
        return Fact(sentence)

    def landed_by_verdict(self) -> Fact:
        """What landed was approved by the reviewer, and nobody else was asked."""
        sentence = "Two proposals landed, each because the reviewer said so"
        approved = self._tasks(Decision.APPLY)
        if len(self._applied) != len(_CODERS) or sorted(approved) != sorted(self._applied):
            said = f"approved: {_listed(approved)}; applied: {_listed(self._applied)}"
            return Fact(sentence, said)
        judges = {event.actor for found in self._verdicts.values() for _, event in found}
        return Fact(sentence, "" if judges == {_REVIEWER} else f"judged by {_listed(judges)}")

    def evidence(self) -> Fact:
        """The engine's own checks: red on the base, green on what was applied."""
        sentence = "The checks were red at first, and green for all that landed"
        checked = [x.payload for x in self._events if isinstance(x, e.ChecksRun)]
        if not checked or checked[0].status == EvidenceStatus.PASSED:
            return Fact(sentence, "they were never red")
        last = {each.task_id: each for each in checked}
        red = [last[task] for task in self._applied if last[task].status != EvidenceStatus.PASSED]
        return Fact(sentence, "; ".join(f"{each.task_id}: {each.sentence}" for each in red))

    def reached_its_goal(self) -> Fact:
        """The gate held; if not, what went wrong on the way is said."""
        sentence = "The run reached its goal"
        state = self._state
        if state.status is RunStatus.DONE and "tests_passed" in state.reason:
            return Fact(f"{sentence}: {state.reason}")
        turns = [x.payload for x in self._events if isinstance(x, e.TurnEnded)]
        failed = dict.fromkeys(turn.reason for turn in turns if not turn.ok)
        why = state.reason or f"it is {state.status} and waits for {state.waits_for or 'nobody'}"
        return Fact(sentence, "; ".join((why, *failed)))

    @property
    def _applied(self) -> list[str]:
        return [landed.task_id for landed in self._landed]

    def _tasks(self, decision: Decision) -> list[str]:
        return [event.payload.task_id for _, event in self._verdicts[decision]]


def _dispatched(events: Sequence[e.RunEvent]) -> set[str]:
    return {event.payload.task_id for event in events if isinstance(event, e.TaskDispatched)}


# The folder ---------------------------------------------------------------------------------------


def _what_is_there(recorded: Sequence[e.Recorded], root: Path) -> list[Fact]:
    return [_only_what_landed(recorded, root), _tests_pass(root)]


def _only_what_landed(recorded: Sequence[e.Recorded], root: Path) -> Fact:
    sentence = "In the folder only that has changed, and nothing was committed"
    state = fold(recorded)
    try:
        status = git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all")
        head = git(root, "rev-parse", "HEAD").strip()
    except AgentCanvasError as error:
        return Fact(sentence, str(error))
    changed = {entry[3:] for entry in status.split("\0") if entry}
    if changed != set(state.landed):
        odd = sorted(changed ^ set(state.landed))
        return Fact(sentence, f"landed or changed, but not both: {_listed(odd)}")
    started = recorded[0].event
    was = started.payload.head if isinstance(started, e.RunStarted) else None
    return Fact(sentence, "" if head == was else f"HEAD is {head}, and was {was}")


def _tests_pass(root: Path) -> Fact:
    """Run the tests as a person would, in the folder itself."""
    try:
        done = subprocess.run(  # noqa: S603  # a fixed command, on files that come with the product
            TESTS,
            cwd=root,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=False,
            timeout=_TESTS_TAKE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        return Fact("The tests pass there", str(wrong))
    said = done.stderr.decode("utf-8", "replace")
    counted = count_tests(said)
    if done.returncode or counted is None or not counted.passed:
        last = said.strip().splitlines()[-1:] or ["no word"]
        return Fact("The tests pass there", f"exit code {done.returncode}, {last[0]}")
    return Fact(f"All {counted.passed} tests pass there")


# The page -----------------------------------------------------------------------------------------


async def _what_the_page_shows(recorded: Sequence[e.Recorded], info: ServerInfo) -> Fact:
    """Open the link as a browser would, and compare what the page is told with the record."""
    sentence = "The page shows the same"
    state = fold(recorded)
    try:
        async with (
            httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser,
            RemoteOffice(info) as office,
        ):
            page = await browser.get(info.link)
            told = await office.state(state.run_id)
    except (httpx.HTTPError, AgentCanvasError) as error:
        return Fact(sentence, str(error) or type(error).__name__)
    if page.status_code != _OK or "html" not in page.headers.get("content-type", ""):
        return Fact(sentence, f"the link answers with {page.status_code}")
    same = (told.status, told.tasks, told.landed) == (state.status, state.tasks, state.landed)
    return Fact(sentence, "" if same else f"it tells of {told.status}, {told.reason}")


def _listed(names: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
