"""The seam to whatever answers: one ``Turn`` in, events on the way, one ``TurnResult`` out.

A runtime says what happens through ``emit`` and how it ended by its result. It does not date or
number events (``recorded`` does), and needs no watch over itself (``limited`` has one). Cancelling
the task that runs it is allowed at any moment and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypedDict

from msgspec import UNSET, Struct, UnsetType

from agentcanvas.agents.answers import AnswerForm, Breach, read_answer
from agentcanvas.agents.way_out import CLOSED, OpenWay
from agentcanvas.protocol.records import FailureClass, TranscriptEvent, Usage
from agentcanvas.sandbox.confine import View

Emit = Callable[[TranscriptEvent], None]
"""Takes an event at once and without waiting; called on the event loop only."""


class Stamp(TypedDict):
    """What ``recorded`` gives to an event."""

    ts: int
    seq: int


UNSTAMPED: Stamp = {"ts": 0, "seq": 0}
"""For events on their way to ``recorded``: ``TextEvent(text="…", **UNSTAMPED)``."""


class Image(Struct, frozen=True):
    """A picture an agent is handed (F5); a file in its place, or anywhere for one without files."""

    path: Path
    media: str
    alt: str = ""


class Turn(Struct, frozen=True, kw_only=True):
    """One request to one agent.

    ``number`` counts the turns of this role in its interaction and ``revision`` the reviews that
    sent the task back; ``attempt`` is above 1 when an earlier attempt was cut off (D18). All three
    are the engine's, so that they are the same after a resume.

    ``place`` is what its processes see: work/, or a read-only view of the workspace (D8), with its
    private HOME and TMPDIR; None for a turn without files. ``sessions`` is a folder that they do
    not see, for what a runtime keeps to go on with. ``env`` names the variables it gets.
    ``out`` is what they reach of the network, open for as long as the turn lasts.
    Both time limits are in seconds; None is no limit.
    """

    turn_id: str
    run_id: str
    agent_id: str
    prompt: str
    role: str = ""
    number: int = 1
    task_id: str = ""
    revision: int = 0
    attempt: int = 1
    form: AnswerForm | None = None
    images: tuple[Image, ...] = ()
    place: View | None = None
    sessions: Path | None = None
    env: tuple[str, ...] = ()
    out: OpenWay = CLOSED
    timeout_s: float | None = None
    silent_s: float | None = None
    session_id: str | None = None
    """A session of the agent's own to continue; only for a revision (D18)."""


class Outcome(StrEnum):
    """How a turn ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    CANCELLED = "cancelled"


class TurnResult(Struct, frozen=True, kw_only=True):
    """What came of a turn.

    A turn that ran but whose answer lacks the form asked for is ``OK`` with a ``breach``: the
    sentence to ask once more with. ``error`` is a sentence for whoever has to act, ``notes`` are
    others worth showing. ``left_over`` counts processes that could not be ended; 0 is the promise.
    """

    outcome: Outcome
    text: str = ""
    value: Any = UNSET
    breach: str = ""
    error_class: FailureClass | None = None
    error: str = ""
    usage: Usage = Usage()
    session_id: str | None = None
    exit_code: int | None = None
    left_over: int = 0
    retry_at_ms: int | None = None
    """When a rate limit ends, as far as the agent said so."""
    hand_to: str = ""
    """Who is to go on with the task, where the agent hands it over."""
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it ran to its end and the answer has the form asked for."""
        return self.outcome is Outcome.OK and not self.breach


class Runtime(Protocol):
    """Whatever answers when an agent is asked."""

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Answer one turn. Failing is a result; an exception is a defect of the runtime."""
        ...


def answered(
    turn: Turn,
    text: str,
    *,
    value: Any = UNSET,
    usage: Usage = Usage(),  # noqa: B008  # frozen, so that one is as good as another
    session_id: str | None = None,
    exit_code: int | None = None,
    left_over: int = 0,
    notes: tuple[str, ...] = (),
) -> TurnResult:
    """The result of a turn that ran to its end, its answer read in the form asked for.

    ``value`` is given where the agent answered with more than text; it is held to the form too.
    """
    breach, found = "", value
    if turn.form is not None:
        read = read_answer(text if isinstance(value, UnsetType) else value, turn.form)
        breach, found = (read.sentence, UNSET) if isinstance(read, Breach) else ("", read.value)
    return TurnResult(
        outcome=Outcome.OK,
        text=text,
        value=found,
        breach=breach,
        usage=usage,
        session_id=session_id,
        exit_code=exit_code,
        left_over=left_over,
        notes=notes,
    )


def failed(
    error: str,
    error_class: FailureClass = FailureClass.UNKNOWN,
    *,
    outcome: Outcome = Outcome.FAILED,
    text: str = "",
    usage: Usage = Usage(),  # noqa: B008  # frozen, so that one is as good as another
    session_id: str | None = None,
    exit_code: int | None = None,
    left_over: int = 0,
    notes: tuple[str, ...] = (),
) -> TurnResult:
    """The result of a turn that did not; ``text`` is what it had said by then."""
    return TurnResult(
        outcome=outcome,
        text=text,
        error=error,
        error_class=error_class,
        usage=usage,
        session_id=session_id,
        exit_code=exit_code,
        left_over=left_over,
        notes=notes,
    )
