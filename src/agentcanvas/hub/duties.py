"""Which tasks and reviews are open, and who owes them to whom: rows, one for each assignment.

They serve two ends. Whether a message fits what was said before (M2) is judged by
``protocol.session``, which is given just the assignments that the message is about, not the whole
conversation. And when an agent is lost, the owners of its open tasks are told (D31).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from agentcanvas.errors import InvalidMessage, PermissionDenied
from agentcanvas.hub.broker import Post
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.reviews import (
    ReviewContext,
    ReviewCriteria,
    ReviewRequest,
    ReviewResult,
    ReviewScope,
)
from agentcanvas.protocol.session import SessionState
from agentcanvas.store import Snapshot, Transaction

TASK, REVIEW = "task", "review"

_ENDS = frozenset({Kind.TASK_COMPLETE, Kind.TASK_FAIL, Kind.TASK_REJECT})
CONCERNED = _ENDS | {Kind.TASK_ASSIGN, Kind.ACK, Kind.REVIEW_REQUEST, Kind.REVIEW_RESULT}
"""Kinds that open or end something, or whose meaning depends on it."""


class Duty(NamedTuple):
    """A row; ``message`` is the id of the message that assigned it.

    ``callback`` is the address to call when it has ended.
    """

    session: str
    kind: str
    name: str
    message: str
    owner: str
    assignee: str
    open: int
    callback: str | None = None


_COLUMNS = "d.session, d.kind, d.name, d.message, d.owner, d.assignee, d.open, d.callback"
_BY_NAME = (
    f"SELECT {_COLUMNS} FROM json_each(?) AS w CROSS JOIN hub_duties AS d "  # noqa: S608 - constants
    "ON d.session = json_extract(w.value, '$[0]') AND d.kind = json_extract(w.value, '$[1]') "
    "AND d.name = json_extract(w.value, '$[2]')"
)
_BY_MESSAGE = (
    f"SELECT {_COLUMNS} FROM json_each(?) AS w CROSS JOIN hub_duties AS d "  # noqa: S608 - constants
    "ON d.session = json_extract(w.value, '$[0]') AND d.message = json_extract(w.value, '$[1]')"
)


class Book:
    """The duties that a batch of messages is about."""

    def __init__(self, transaction: Transaction, posts: Iterable[Post]) -> None:
        self._states: dict[str, SessionState] = {}
        self._by_name: dict[tuple[str, str, str], Duty] = {}
        self._by_message: dict[tuple[str, str], Duty] = {}
        self._changed: dict[tuple[str, str, str], Duty] = {}
        self._calls: list[tuple[str, str, str, str]] = []
        concerned = [post for post in posts if post.envelope.kind in CONCERNED]
        if concerned:
            for duty in _look_up(transaction, concerned):
                self._recall(duty)

    def judge(self, post: Post) -> Envelope:
        """Return the message as it is meant (C6), or raise every rule it breaks."""
        envelope = post.envelope
        if envelope.kind not in CONCERNED:
            return envelope
        state = self._states.setdefault(post.session, SessionState())
        envelope = state.understand(envelope)
        found = [breach for breach in state.check(envelope) if breach.fatal]
        if found:
            raise InvalidMessage(found[0].sentence, breaches=[str(breach) for breach in found])
        duty = self._ended_by(post, envelope)
        if duty and duty.assignee not in ("", post.sender):
            raise PermissionDenied(
                f"{post.sender} cannot end the {duty.kind} {duty.name}; it was given to "
                f"{duty.assignee}."
            )
        return envelope

    def admit(self, post: Post, envelope: Envelope) -> None:
        """Take note of what a message that is kept assigns or ends."""
        if envelope.kind not in CONCERNED:
            return
        self._states[post.session].admit(envelope)
        duty = self._opened_by(post, envelope) or self._ended_by(post, envelope)
        if duty:
            if duty.callback and not duty.open:
                self._calls.append((duty.session, duty.message, envelope.id, duty.callback))
            self._note(duty)
            self._changed[duty.session, duty.kind, duty.name] = duty

    def write(self, transaction: Transaction) -> None:
        """Keep what has changed."""
        if self._changed:
            transaction.execute_many(
                "INSERT OR REPLACE INTO hub_duties VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                list(self._changed.values()),
            )
        for call in self._calls:
            transaction.execute(
                "INSERT OR IGNORE INTO hub_callbacks VALUES (?, ?, ?, ?, 'due', 0, ?)",
                (*call, transaction.at_ms),
            )

    def _opened_by(self, post: Post, envelope: Envelope) -> Duty | None:
        callback: str | None = None
        if envelope.kind is Kind.TASK_ASSIGN:
            kind, name = TASK, envelope.task_id or envelope.id
            callback = getattr(envelope.body, "callback_url", UNSET) or None
        elif isinstance(envelope.body, ReviewRequest):
            kind, name = REVIEW, envelope.body.review_id
        else:
            return None
        assignee = post.copies[0].recipient if len(post.copies) == 1 else ""
        return Duty(
            post.session, kind, name, envelope.id, envelope.sender.id, assignee, 1, callback
        )

    def _ended_by(self, post: Post, envelope: Envelope) -> Duty | None:
        duty = None
        if isinstance(envelope.body, ReviewResult):
            duty = self._by_name.get((post.session, REVIEW, envelope.body.review_id))
        elif envelope.kind in _ENDS:
            if envelope.task_id is not None:
                duty = self._by_name.get((post.session, TASK, envelope.task_id))
            elif envelope.reply_to is not UNSET:
                duty = self._by_message.get((post.session, envelope.reply_to))
        return duty._replace(open=0) if duty else None

    def _recall(self, duty: Duty) -> None:
        state = self._states.setdefault(duty.session, SessionState())
        if duty.open or duty.kind == TASK:  # an ended review may be asked for again, a task not
            state.admit(_assignment(duty))
        if duty.kind == TASK and not duty.open:
            state.admit(_ending(duty))
        self._note(duty)

    def _note(self, duty: Duty) -> None:
        self._by_name[duty.session, duty.kind, duty.name] = duty
        self._by_message[duty.session, duty.message] = duty


def open_duties(look: Snapshot, agent: str) -> list[Duty]:
    """Return what an agent owes."""
    return [
        Duty(*row)
        for row in look.query(
            f"SELECT {_COLUMNS} FROM hub_duties AS d "  # noqa: S608 - constants
            "WHERE d.assignee = ? AND d.open = 1 ORDER BY d.session, d.name",
            (agent,),
        )
    ]


def begun(look: Snapshot) -> list[str]:
    """Return the agents that were given something that is still open."""
    rows = look.query(
        "SELECT DISTINCT d.assignee FROM hub_duties AS d WHERE d.open = 1 AND NOT EXISTS ("
        "SELECT 1 FROM hub_letters AS l WHERE l.recipient = d.assignee AND l.state = 0 "
        "AND l.seen = 0 AND l.id = d.message AND l.session = d.session) ORDER BY d.assignee"
    )
    return [agent for (agent,) in rows]


def set_open(transaction: Transaction, session: str, message: str, *, is_open: bool) -> None:
    """End a duty whose assignment was not delivered, or begin it anew."""
    transaction.execute(
        "UPDATE hub_duties SET open = ? WHERE session = ? AND message = ?",
        (int(is_open), session, message),
    )


def _look_up(transaction: Transaction, posts: Sequence[Post]) -> set[Duty]:
    names, messages = [], []
    for post in posts:
        envelope = post.envelope
        review = getattr(envelope.body, "review_id", None)
        if review is not None:
            names.append((post.session, REVIEW, review))
        elif envelope.task_id is not None:
            names.append((post.session, TASK, envelope.task_id))
        elif envelope.kind is Kind.TASK_ASSIGN:
            names.append((post.session, TASK, envelope.id))
        elif envelope.reply_to is not UNSET:
            messages.append((post.session, envelope.reply_to))
    rows = []
    if names:
        rows += transaction.query(_BY_NAME, (msgspec.json.encode(names).decode(),))
    if messages:
        rows += transaction.query(_BY_MESSAGE, (msgspec.json.encode(messages).decode(),))
    return {Duty(*row) for row in rows}


_NO_REVIEW = ReviewRequest(
    review_id="",
    task_id="",
    scope=ReviewScope(files=(), focus_areas=()),
    criteria=ReviewCriteria(must_pass_tests=False, must_pass_type_check=False),
    context=ReviewContext(task_description="", acceptance_criteria=()),
)


def _assignment(duty: Duty) -> Envelope:
    """Say again what a row remembers, as far as it decides what may follow."""
    if duty.kind == REVIEW:
        return Envelope(
            id=duty.message,
            kind=Kind.REVIEW_REQUEST,
            time="",
            sender=AgentRef(duty.owner),
            body=msgspec.structs.replace(_NO_REVIEW, review_id=duty.name),
        )
    return Envelope(
        id=duty.message,
        kind=Kind.TASK_ASSIGN,
        time="",
        sender=AgentRef(duty.owner),
        body=TaskAssign(task_id=duty.name),
    )


def _ending(duty: Duty) -> Envelope:
    return Envelope(
        id=f"{duty.message}/end",
        kind=Kind.TASK_COMPLETE,
        time="",
        sender=AgentRef(duty.assignee),
        body=TaskResult(task_id=duty.name),
    )
