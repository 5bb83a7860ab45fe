"""What the engine and an agent's host say to each other about one turn, inside ordinary messages.

An ``Order`` is the ``input`` of a task.assign, a ``Report`` the ``output`` of its result. An agent
that knows neither still understands the task: the rest of the message says it in the words of its
dialect, and any text or JSON it answers with is read as a report.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from agentcanvas.protocol.kinds import Outcome, TaskAssign, TaskResult
from agentcanvas.protocol.packet import Rule, Skill
from agentcanvas.protocol.records import BlobRef, FailureClass, ProposalRef, Usage
from agentcanvas.protocol.values import Count, Maybe, Ordinal, Raw, Value, Word, as_text

MOST_PARTS = 16
"""So many parts of one answer are passed on before it is complete."""
PARTIAL = "partial"
"""The status of a task.progress whose current step is a part of the answer."""


class Access(Word):
    """What a turn may do with files (D8): nothing, read a generation, or work in its sandbox."""

    NONE = "none"
    READ = "read"
    WORK = "work"


class Order(Value, frozen=True, kw_only=True):
    """One turn: what is asked, in which part, and where.

    ``turn_id`` stays the same over attempts, ``task_id`` over revisions too. ``number`` counts the
    turns of this role in its interaction, ``revision`` the reviews that sent the task back,
    ``attempt`` the tries that were cut off (D18). ``patience`` is how many times its usual time the
    turn may take (C1). ``generation`` is the frozen base (D7), ``on`` names patches, relative to
    the workspace, that are in work/ when it begins (D6). ``answer_schema`` is the JSON Schema
    of a typed answer. ``session_id`` is a session of the agent's own to go on with.
    ``own_words``: what it says is the answer as it is, though it may change files. ``images`` are
    blobs of the hub to be looked at (F5). ``streamed``: what is said before the end is wanted as it
    comes, as a task.progress whose status is ``partial``.
    """

    message: str
    turn_id: str
    run_id: str
    task_id: str = ""
    role: str = ""
    number: Ordinal = 1
    revision: Count = 0
    attempt: Ordinal = 1
    patience: Ordinal = 1
    access: Access = Access.NONE
    own_words: bool = False
    streamed: bool = False
    generation: Maybe[Count] = UNSET
    on: tuple[str, ...] = ()
    session_id: str = ""
    answer_schema: Maybe[Raw] = UNSET
    rules: tuple[Rule, ...] = ()
    skills: tuple[Skill, ...] = ()
    images: tuple[BlobRef, ...] = ()


class Report(Value, frozen=True, kw_only=True):
    """What came of a turn; ``breach`` says why the answer lacks the form that was asked for.

    Of a turn that ran into a limit, ``retry_at_ms`` is when that ends, as far as it was told, and
    ``partial`` the patch, relative to the workspace, of what was changed by then. ``hand_to`` is
    who is to go on, where its agent hands the task over.
    """

    text: str = ""
    value: Maybe[Raw] = UNSET
    breach: str = ""
    proposal: Maybe[ProposalRef] = UNSET
    summary: str = ""
    usage: Maybe[Usage] = UNSET
    session_id: str = ""
    failure: Maybe[FailureClass] = UNSET
    timed_out: bool = False
    retry_at_ms: Maybe[Count] = UNSET
    partial: str = ""
    hand_to: str = ""
    notes: tuple[str, ...] = ()


_orders = msgspec.json.Decoder(Order)
_reports = msgspec.json.Decoder(Report)


def order_in(assign: TaskAssign) -> Order | None:
    """The order in a task; None when it was sent by somebody who gives none."""
    if assign.input is UNSET:
        return None
    try:
        return _orders.decode(assign.input)
    except msgspec.MsgspecError:
        return None


def report_in(result: TaskResult) -> Report:
    """The report in a result, made up from its words where the agent gives none."""
    if result.output is not UNSET:
        try:
            return _reports.decode(result.output)
        except msgspec.MsgspecError:
            pass
    said = as_text(result.output) if result.output is not UNSET else ""
    text = said or result.summary or result.implementation_notes or ""
    return Report(
        text=text,
        value=result.output,
        summary=result.summary or "",
        timed_out=result.status is Outcome.TIMEOUT,
    )
