"""Is this a message, and does it keep the rules? Everything that is wrong, all at once (M2, M3).

``examine`` never raises on bad content: it reports. Strict mode holds the letter of the documents;
lenient mode takes what their own examples do and records each breach.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from msgspec import UNSET

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol import scan
from agentcanvas.protocol.dialect import DialectName, detect_value
from agentcanvas.protocol.dialects import DIALECTS
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.ids import is_uuid, is_uuid4
from agentcanvas.protocol.kinds import (
    Sealed,
)
from agentcanvas.protocol.reviews import (
    ReviewResult,
    Verdict,
)
from agentcanvas.protocol.session import SessionState, check_direction
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.timestamps import is_rfc3339

_PAYLOAD_TIMES = ("accepted_at", "completed_at", "deadline")


class Report(msgspec.Struct, frozen=True):
    """What ``examine`` found. ``envelope`` is there whenever the message could be understood."""

    strict: bool
    dialect: DialectName | None = None
    envelope: Envelope | None = None
    breaches: tuple[Breach, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the message may pass in the mode it was examined in."""
        if self.strict:
            return not self.breaches
        return self.envelope is not None and not any(breach.fatal for breach in self.breaches)


def examine(data: bytes, *, strict: bool = False, session: SessionState | None = None) -> Report:
    """Every breach of a message, against the letter, its own meaning and a session's state."""
    try:
        value = scan.parse(data)
    except ProtocolError as error:
        return Report(strict, breaches=(Breach(Rule.JSON, error.pointer, str(error)),))
    try:
        name = detect_value(value)
    except ProtocolError as error:
        return Report(strict, breaches=(Breach(Rule.DIALECT, "", str(error)),))
    dialect = DIALECTS[name]
    breaches = [*dialect.breaches(value), *_letter(name, value)]
    envelope = None
    if not any(breach.fatal for breach in breaches):
        try:
            reading = dialect.decode(data)
        except ProtocolError as error:
            if all(breach.sentence != str(error) for breach in breaches):
                breaches.append(Breach(Rule.SEALED, error.pointer, str(error)))
        else:
            envelope = reading.envelope
            noted = set(breaches)
            breaches += [found for found in reading.breaches if found not in noted]
            breaches += _meaning(envelope)
            if session is None:
                breaches += check_direction(envelope)
            else:
                envelope = session.understand(envelope)
                breaches += session.check(envelope)
    return Report(strict, name, envelope, tuple(breaches))


def _letter(name: DialectName, value: dict[str, Any]) -> list[Breach]:
    """Forms of text that a type cannot express."""
    found = []
    field = "id" if name is DialectName.ACP else "message_id"
    id_ = value.get(field)
    if isinstance(id_, str):
        problem = _id_problem(name, id_)
        if problem:
            found.append(Breach(Rule.ID_FORM, f"/{field}", problem))
    payload = value.get("payload")
    if isinstance(payload, dict):
        for time in _PAYLOAD_TIMES:
            text = payload.get(time)
            if isinstance(text, str) and not is_rfc3339(text):
                found.append(
                    Breach(
                        Rule.PAYLOAD_TIME,
                        f"/payload/{time}",
                        f"Invalid time {text[:40]!r}; write RFC 3339, for example "
                        "2026-01-28T10:00:00Z",
                    )
                )
    return found


def _id_problem(name: DialectName, id_: str) -> str | None:
    if name is DialectName.MAC and not is_uuid(id_):
        return f"{id_[:60]!r} is not a UUID; make one with uuid4()"
    if name is DialectName.SPEC022 and not is_uuid4(id_):
        return f"{id_[:60]!r} is not a UUID version 4; make one with uuid4()"
    return "id must not be empty" if not id_ else None


def _meaning(envelope: Envelope) -> list[Breach]:
    """What a message says that it should not say at once."""
    body = envelope.body
    if isinstance(body, Sealed):
        return _check_ciphertext(body)
    if not isinstance(body, ReviewResult):
        return []
    approved = body.verdict is Verdict.APPROVED
    if approved and body.required_changes is not UNSET and body.required_changes:
        return [
            Breach(
                Rule.VERDICT_PARTS,
                "/payload/required_changes",
                "required_changes go with changes_requested or rejected, not with approved",
            )
        ]
    if not approved and body.commendations is not UNSET and body.commendations:
        return [
            Breach(
                Rule.VERDICT_PARTS,
                "/payload/commendations",
                f"commendations go with approved, not with {body.verdict}",
            )
        ]
    return []


def _check_ciphertext(body: Sealed) -> list[Breach]:
    try:
        base64.b64decode(body.ciphertext, validate=True)
    except (binascii.Error, ValueError):
        return [Breach(Rule.CIPHERTEXT, "/payload", "The encrypted payload is not valid base64")]
    return []
