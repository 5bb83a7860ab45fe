"""What recovery decided, on record: an event in the stream of the session it concerns."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from agentcanvas.errors import StoreError
from agentcanvas.hub.events import EventKind, encode, stream_of
from agentcanvas.hub.redaction import Redactor
from agentcanvas.protocol.values import Word
from agentcanvas.store import Store


class Choice(Word):
    """What was decided about a request."""

    RETRIED = "retried"
    GAVE_UP = "gave_up"
    FELL_BACK = "fell_back"
    FOLLOWED_SUGGESTION = "followed_suggestion"
    SPLIT = "split"
    GAVE_SCOPE = "gave_scope"
    CIRCUIT_OPENED = "circuit_opened"
    CIRCUIT_HALF_OPENED = "circuit_half_opened"
    CIRCUIT_CLOSED = "circuit_closed"
    REFUSED_BY_CIRCUIT = "refused_by_circuit"
    RECALLED = "recalled"
    LOGGED = "logged"
    TOLD = "told"
    SHOWN = "shown"


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them; ``code`` is that of the error behind it, never its text."""

    choice: Choice
    message_id: str
    recipient: str
    session: str = "default"
    code: str = ""
    attempt: int = 0
    pause_ms: int = 0
    next_recipient: str = ""


class Journal(Protocol):
    """Where decisions are noted."""

    async def note(self, decision: Decision) -> None:
        """Put a decision on record."""
        ...


class ListJournal:
    """Notes them in memory: for tests, and for those who have no store."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []

    async def note(self, decision: Decision) -> None:
        """Put a decision on record."""
        self.decisions.append(decision)

    @property
    def choices(self) -> list[Choice]:
        """What was decided, in order."""
        return [decision.choice for decision in self.decisions]


class StoreJournal:
    """Notes them in the store, for the live feed and for later."""

    def __init__(self, store: Store, redactor: Redactor | None = None) -> None:
        self._store = store
        self._redactor = redactor or Redactor()

    async def note(self, decision: Decision) -> None:
        """Put a decision on record; a full disk must not keep anybody from recovering."""
        with suppress(StoreError):
            line = self._redactor.quietly(encode(decision))
            await self._store.append(stream_of(decision.session), EventKind.RECOVERY, line)
