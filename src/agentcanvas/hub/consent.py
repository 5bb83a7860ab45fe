"""What a person has to agree to before it is delivered, and what a person has to see (H6, C5, H9).

A task that an agent assigns outside the approved plan, at or above the threshold or because it says
so itself, is held: a ``person.ask`` goes into the person's inbox (D24), and the hub reads the
answer from its own. Held messages are rows, so that they outlive the hub.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET, Struct

from agentcanvas.clock import Clock
from agentcanvas.errors import IdReused, NotApproved
from agentcanvas.hub import audit, router
from agentcanvas.hub.audit import EntryType
from agentcanvas.hub.broker import Post, Receipt
from agentcanvas.hub.delivery import band_of
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.notices import HUB
from agentcanvas.protocol.envelope import AgentRef, Envelope, from_json, to_json
from agentcanvas.protocol.kinds import Error, ErrorSeverity, Kind, TaskAssign, TaskResult
from agentcanvas.protocol.limits import Limits
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.priorities import PriorityWord, word_value
from agentcanvas.protocol.values import Word, freeze
from agentcanvas.store import Snapshot, Store, Transaction

PERSON_ASK = "person.ask"
_ASKS = UUID("0e5a7d3e-6a2b-5a7e-8a39-54f2b7c1d4aa")
_SHOWN_CHARS = 2_000
_answers = msgspec.json.Decoder(PersonAnswer)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["approve", "refuse"]},
        "reason": {"type": "string"},
    },
    "required": ["decision"],
}


class HeldState(Word):
    """What became of a message that needs consent."""

    HELD = "held"
    APPROVED = "approved"
    REFUSED = "refused"


class Held(Struct, frozen=True):
    """A row; ``ask`` is the id of the message that asks the person."""

    ask: str
    session: str
    sender: str
    id: str
    digest: int
    state: HeldState
    reason: str
    message: Envelope


class Consent:
    """Asks one person for the whole hub."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, *, person: str) -> None:
        self._store = store
        self._clock = clock
        self._threshold = band_of(word_value(PriorityWord(limits.acp.security.approval_threshold)))
        self._person = person
        self._plans: dict[str, frozenset[str]] = {}

    def approve_plan(self, session: str, tasks: Iterable[str]) -> None:
        """Say which tasks of a session are in a plan that a person has approved."""
        self._plans[session] = frozenset(tasks)

    def is_needed(self, principal: Principal, post: Post) -> bool:
        """Tell whether a person has to agree; never for answers, errors, status or broadcasts."""
        envelope = post.envelope
        if principal.kind is not PrincipalKind.AGENT or envelope.kind is not Kind.TASK_ASSIGN:
            return False
        task = envelope.task_id or envelope.id
        if task in self._plans.get(post.session, ()):
            return False
        if envelope.security is not UNSET and envelope.security.require_approval is True:
            return True
        return post.band >= self._threshold

    def concerns(self, principal: Principal, post: Post) -> bool:
        """Tell whether a person may have to agree to a message, or to see it."""
        body = post.envelope.body
        critical = isinstance(body, Error) and body.severity is ErrorSeverity.CRITICAL
        return critical or self.is_needed(principal, post)

    async def hold(self, post: Post) -> tuple[Receipt, Post | None]:
        """Keep a message back; return its receipt, and the question unless it was asked before.

        A repeat is told what became of the first: held, refused (raised), or approved and on its
        way, which the broker knows.
        """
        held = await self._store.transact(lambda transaction: _keep(transaction, post))
        if held.digest != post.digest:
            raise IdReused(
                f"{post.sender} used the id {post.envelope.id} before for another message; "
                "give each message its own id."
            )
        if held.state is HeldState.REFUSED:
            raise NotApproved(_refusal(held.reason))
        receipt = Receipt(post.envelope.id, post.session, held=held.state is HeldState.HELD)
        return receipt, self._question(held) if held.state is HeldState.HELD else None

    async def unasked(self) -> list[Post]:
        """Return the questions of all held messages, to be put again; the broker knows repeats."""
        return [self._question(held) for held in await self._store.read(_held)]

    async def decide(self, answer: Envelope) -> Held | None:
        """Note a person's answer; return the message it is about, if it is about one."""
        if answer.reply_to is UNSET or not answer.sender.id.startswith("person:"):
            return None
        reply_to = answer.reply_to
        approved, reason = _read(answer)
        state = HeldState.APPROVED if approved else HeldState.REFUSED
        return await self._store.transact(
            lambda transaction: _decide(transaction, reply_to, state, reason, answer.sender.id)
        )

    def shown(self, envelope: Envelope, session: str) -> Post | None:
        """Return what shows an error to the person (H9); the answer to it says that it was seen."""
        if not isinstance(envelope.body, Error):
            return None
        text = (
            f"{envelope.sender.id} reports a critical error: {envelope.body.error_message} "
            f"({envelope.body.error_code})"
        )
        return self._ask(f"error:{envelope.id}", session, envelope.sender.id, text, UNSET)

    def _question(self, held: Held) -> Post:
        asked = held.message
        body = asked.body
        assert isinstance(body, TaskAssign)
        to = asked.recipient.id if asked.recipient is not UNSET else "somebody"
        what = body.task_type or body.action or "a task"
        text = f"{held.sender} wants {to} to do {what}."
        if body.input is not UNSET:
            text += f"\n\n{bytes(body.input).decode(errors='replace')[:_SHOWN_CHARS]}"
        return self._ask(f"approval:{held.id}", held.session, held.sender, text, _SCHEMA)

    def _ask(self, scope: str, session: str, about: str, text: str, schema: Any) -> Post:
        id_ = _ask_id(session, about, scope)
        ask = PersonAsk(
            ask_id=id_,
            person=self._person,
            run_id=session,
            agent_id=about,
            scope=scope,
            text=text,
            instruction='Answer {"decision": "approve"} or {"decision": "refuse", "reason": "…"}.'
            if schema is not UNSET
            else "Answer anything once you have seen it.",
            schema=schema,
        )
        recipient = f"person:{self._person}"
        envelope = Envelope(
            id=id_,
            kind=Kind.TASK_ASSIGN,
            # Always the same text, so that asking again after a crash is a repeat.
            time="1970-01-01T00:00:00Z",
            sender=AgentRef(HUB),
            recipient=AgentRef(recipient),
            session=session,
            body=TaskAssign(task_id=f"ask/{id_}", task_type=PERSON_ASK, input=freeze(ask)),
        )
        return router.to_one(envelope, session, recipient)


def _ask_id(session: str, about: str, scope: str) -> str:
    return str(uuid5(_ASKS, "\n".join((session, about, scope))))


def _refusal(reason: str) -> str:
    return f"A person did not agree to this task: {reason or 'no reason was given'}."


def refusal_of(held: Held) -> NotApproved:
    """Say to the sender that a person did not agree."""
    return NotApproved(_refusal(held.reason))


def _read(answer: Envelope) -> tuple[bool, str]:
    """Read a person's answer; what cannot be read is no consent (D17)."""
    body = answer.body
    if not isinstance(body, TaskResult) or body.output is UNSET:
        return False, "the answer could not be read"
    try:
        content = _answers.decode(body.output).content
    except msgspec.MsgspecError:
        return False, "the answer could not be read"
    if isinstance(content, dict):
        decision, reason = content.get("decision"), str(content.get("reason") or "")
    else:
        decision, reason = content, ""
    return decision in ("approve", "apply", True), reason


_COLUMNS = "ask, session, sender, id, digest, state, reason, message"


def _row(row: tuple[Any, ...]) -> Held:
    ask, session, sender, id_, digest, state, reason, message = row
    envelope = from_json(bytes(message))
    return Held(ask, session, sender, id_, digest, HeldState(state), reason, envelope)


def _keep(transaction: Transaction, post: Post) -> Held:
    envelope = post.envelope
    found = transaction.one(
        f"SELECT {_COLUMNS} FROM hub_approvals "  # noqa: S608 - constants
        "WHERE session = ? AND sender = ? AND id = ?",
        (post.session, post.sender, envelope.id),
    )
    if found is not None:
        return _row(found)
    ask = _ask_id(post.session, post.sender, f"approval:{envelope.id}")
    held = Held(
        ask, post.session, post.sender, envelope.id, post.digest, HeldState.HELD, "", envelope
    )
    transaction.execute(
        f"INSERT INTO hub_approvals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (*msgspec.structs.astuple(held)[:5], held.state.value, "", to_json(envelope)),
    )
    _note(transaction, held, HUB)
    return held


def _decide(
    transaction: Transaction, ask: str, state: HeldState, reason: str, person: str
) -> Held | None:
    found = transaction.one(
        f"SELECT {_COLUMNS} FROM hub_approvals WHERE ask = ?",  # noqa: S608 - constants
        (ask,),
    )
    if found is None:
        return None
    held = _row(found)
    if held.state is not HeldState.HELD:
        return held  # decided before; what follows from it may still have to be done
    transaction.execute(
        "UPDATE hub_approvals SET state = ?, reason = ? WHERE ask = ?", (state.value, reason, ask)
    )
    held = msgspec.structs.replace(held, state=state, reason=reason)
    _note(transaction, held, person)
    return held


def _note(transaction: Transaction, held: Held, by: str) -> None:
    audit.note(
        transaction,
        EntryType.APPROVAL,
        subject=held.id,
        sender=by,
        recipient=held.sender,
        status=held.state,
        session=held.session,
    )


def _held(look: Snapshot) -> list[Held]:
    rows = look.query(
        f"SELECT {_COLUMNS} FROM hub_approvals WHERE state = 'held' ORDER BY ask"  # noqa: S608
    )
    return [_row(row) for row in rows]
