"""What the API takes and gives, beyond the values of ``runs`` themselves.

``head`` is the place in the feed up to which an answer is complete; it may hold later events as
well, so whoever goes on from there skips the numbers it has seen.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from agentcanvas.proposals.model import Wire
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.runs.events import Member
from agentcanvas.runs.office import RunSummary, TranscriptEntry, UndoneTask
from agentcanvas.runs.shown import Side
from agentcanvas.runs.state import RunState

Seq = Annotated[int, msgspec.Meta(ge=0)]


class ServerView(Wire, frozen=True):
    """Who answers here; ``head`` is where a follower of the feed may begin."""

    version: str
    pid: int
    root: str
    epoch: str
    head: str = ""


class RunsView(Wire, frozen=True):
    """All runs, the newest first."""

    head: str
    runs: tuple[RunSummary, ...]


class RunView(Wire, frozen=True):
    """How one run stands."""

    head: str
    state: RunState


class EventsView(Wire, frozen=True):
    """What happened in a run so far, each event as a line of its log."""

    head: str
    events: tuple[msgspec.Raw, ...]


class WindowView(Wire, frozen=True):
    """A run as a page opens it; the live feed goes on after ``head``."""

    head: str
    state: RunState
    summary: RunSummary
    team: tuple[Member, ...]
    events: tuple[msgspec.Raw, ...]
    earlier: bool


class TranscriptView(Wire, frozen=True):
    """What agents said and did so far."""

    head: str
    entries: tuple[TranscriptEntry, ...]


class AsksView(Wire, frozen=True):
    """What waits for a person."""

    head: str
    asks: tuple[PersonAsk, ...]


class StartedView(Wire, frozen=True):
    """A run that has begun."""

    run_id: str


class UndoneView(Wire, frozen=True):
    """What was taken back, task by task."""

    undone: tuple[UndoneTask, ...]


class RunPath(msgspec.Struct, frozen=True):
    """Names a run."""

    run_id: str


class TaskPath(msgspec.Struct, frozen=True):
    """Names a task of a run."""

    run_id: str
    task_id: str


class AttemptQuery(msgspec.Struct, frozen=True):
    """Which attempt at a task, counted from 1; the latest when not given."""

    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None


class FileQuery(msgspec.Struct, frozen=True):
    """Which file of a change, on which side of it."""

    path: str
    side: Side = Side.AFTER
    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AskPath(msgspec.Struct, frozen=True):
    """Names something that waits for a person."""

    ask_id: str


class BlobPath(msgspec.Struct, frozen=True):
    """Names a blob by the SHA-256 of its content, in lower case hexadecimal digits."""

    sha256: str


class FollowQuery(msgspec.Struct, frozen=True):
    """From where on, whose, and whether to stay; ``last_event_id`` is a place, and wins."""

    after: Seq = 0
    agent: str | None = None
    follow: bool = False
    last_event_id: str | None = None


class FeedQuery(msgspec.Struct, frozen=True):
    """Which run, and from where on: a page that was reloaded cannot set the header."""

    run: str | None = None
    last_event_id: str | None = None


class FeedHeaders(msgspec.Struct, frozen=True, rename={"last_event_id": "last-event-id"}):
    """What a browser sends when it comes back."""

    last_event_id: str | None = None


class WindowQuery(msgspec.Struct, frozen=True):
    """How many events, and before which number; the last ones when it is not given."""

    last: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 500
    before: Seq | None = None


class ReportQuery(msgspec.Struct, frozen=True):
    """In which form."""

    format: Literal["md", "json", "html"] = "md"


class AsksQuery(msgspec.Struct, frozen=True):
    """Of which run; all when not given."""

    run: str | None = None


class StopOrder(Wire, frozen=True):
    """Why a run is ended."""

    reason: str = "stopped by you"


class StopWorkOrder(Wire, frozen=True):
    """Whose work ends, or the work on what; all that is under way when neither is given."""

    agent: str | None = None
    task_id: str | None = None


class StoppedView(Wire, frozen=True):
    """The turns that were told to end."""

    turns: tuple[str, ...]


class TellOrder(Wire, frozen=True):
    """What a person says, and to whom."""

    agent: str
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]


class UndoOrder(Wire, frozen=True):
    """Which task is taken back; all when not given."""

    task_id: str | None = None
