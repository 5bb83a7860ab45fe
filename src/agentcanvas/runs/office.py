"""What can be asked of whoever holds a workspace: the seam that commands and pages share (D1).

The ``Engine`` is an office in its own process; another process reaches the same one over HTTP. What
is asked is a small value, what happens is told by the events.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from agentcanvas.proposals.model import Wire
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.records import BlobRef, TranscriptEvent
from agentcanvas.runs.events import Member, Recorded
from agentcanvas.runs.shown import ShownProposal, Side
from agentcanvas.runs.state import RunState, RunStatus


class RunOrder(Wire, frozen=True, kw_only=True):
    """A run to be started.

    ``flow_text`` is the flow itself, checked again when it starts and kept with the run (D4);
    ``flow`` is only its name in logs. ``approve_plan`` puts the plan into the person's inbox before
    anything is carried out; ``plan_only`` ends the run when the plan is made. ``unsafe`` is the
    user's explicit wish to run without confinement. ``record`` and ``replay`` name a cassette: the
    agents' turns are kept on it, or are taken from it instead of the agents. ``images`` are kept
    in the workspace before, and handed to those who begin with the request (F5).
    """

    flow: str
    flow_text: str
    request: str
    person: str = "you"
    approve_plan: bool = False
    plan_only: bool = False
    unsafe: bool = False
    max_parallel: int = 5
    parent_run_id: str | None = None
    record: str = ""
    replay: str = ""
    images: tuple[BlobRef, ...] = ()


class RunSummary(Wire, frozen=True, kw_only=True):
    """One line of the list of runs; times in ms since the epoch."""

    run_id: str
    flow: str
    request: str
    team: tuple[str, ...] = ()
    """What its members are called."""
    status: RunStatus
    started_ms: int
    ended_ms: int | None = None
    reason: str = ""
    waits_for: str = ""
    applied: int = 0
    tasks: int = 0
    tokens: int = 0
    cost: float = 0.0
    is_estimate: bool = False
    """Whether some of the tokens and the cost are guessed, since an agent did not say them."""


class TranscriptEntry(msgspec.Struct, frozen=True):
    """One event of an agent's transcript, with its number in the store."""

    seq: int
    agent: str
    event: TranscriptEvent


class Window(msgspec.Struct, frozen=True):
    """A run as a page opens it: how it stands, and some of its events in order.

    ``state`` is of the event ``state.seq``; ``earlier`` says whether there are events before these.
    """

    state: RunState
    summary: RunSummary
    team: tuple[Member, ...]
    events: tuple[Recorded, ...]
    earlier: bool


class UndoneTask(Wire, frozen=True):
    """A task whose change was taken back, or the sentence why it could not be."""

    task_id: str
    files: tuple[str, ...] = ()
    problem: str = ""


class Records(Protocol):
    """Reading what happened and what happens."""

    async def runs(self) -> tuple[RunSummary, ...]:
        """Every run, the newest first."""
        ...

    async def state(self, run_id: str) -> RunState:
        """How a run stands."""
        ...

    async def window(self, run_id: str, *, last: int = 500, before: int | None = None) -> Window:
        """How a run stands with the last of its events, or the last before a number."""
        ...

    async def order(self, run_id: str) -> RunOrder:
        """What a run was started with."""
        ...

    def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[Recorded]:
        """What happened, in order; with ``follow`` it goes on until the run ends or is parked."""
        ...

    def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        """What an agent, or every agent, said and did."""
        ...

    async def proposal(
        self, run_id: str, task_id: str, attempt: int | None = None
    ) -> ShownProposal:
        """All about a proposed change of a task, the latest if no attempt is named."""
        ...

    async def patch(self, run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        """A proposed change of a task, the latest if no attempt is named."""
        ...

    async def file(
        self, run_id: str, task_id: str, path: str, side: Side, attempt: int | None = None
    ) -> bytes:
        """One file of a proposed change, as it was or as it would be."""
        ...


class Control(Protocol):
    """Starting and ending runs."""

    async def start(self, order: RunOrder) -> str:
        """Begin a run; gives its id, and goes on by itself."""
        ...

    async def resume(self, run_id: str) -> None:
        """Go on with a run that was interrupted, stopped or parked."""
        ...

    async def retry(self, run_id: str) -> str:
        """Begin the same again as a new run."""
        ...

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        """End a run and keep what is there; returns when nothing of it is left running."""
        ...

    async def stop_work(
        self, run_id: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """End what an agent does now, or what is done for a task; the run goes on without it.

        Gives the ids of the turns that were told to end.
        """
        ...

    async def tell(self, run_id: str, agent: str, text: str) -> None:
        """Say something to an agent of a run that goes on; it hears it with its next turn."""
        ...

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        """Take back what a task landed, or all that a run landed, the latest first."""
        ...


class Inbox(Protocol):
    """What waits for a person (D24)."""

    async def asks(self, run_id: str | None = None) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        ...

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them; the run goes on if it waited for nothing else."""
        ...


class Office(Records, Control, Inbox, Protocol):
    """All of it."""
