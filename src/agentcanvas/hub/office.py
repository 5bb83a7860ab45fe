"""What can be asked of whoever holds a hub: the seam that commands and routes share (D1).

A ``Keeper`` is such an office in its own process; another process reaches the same one over HTTP.
Agents do not come here: this is for the person whom the hub belongs to (D26).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Protocol

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from agentcanvas.hub.events import EventKind
from agentcanvas.hub.guard import PrincipalKind, Scope
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.values import Word

Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Told(Struct, frozen=True, rename="camel", omit_defaults=True):
    """camelCase outside, absent rather than null for what has a default."""


# -- tokens ----------------------------------------------------------------------------------------


class TokenOrder(Told, frozen=True, kw_only=True):
    """Whom a token is for: an agent, or a person or door by the prefix of its name."""

    name: str
    scopes: tuple[Scope, ...] = ()
    permissions: tuple[str, ...] = ()


class NewToken(Told, frozen=True):
    """A new token; ``text`` is told here and never again."""

    id: str
    name: str
    text: str

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r}, name={self.name!r})"


class TokenLine(Told, frozen=True, kw_only=True):
    """What is known of a token afterwards; times in ms since the epoch."""

    id: str
    name: str
    kind: PrincipalKind
    scopes: tuple[Scope, ...] = ()
    permissions: tuple[str, ...] = ()
    made_ms: int
    revoked_ms: int | None = None


class TokenDesk(Protocol):
    """Who may come in, and what the hub itself is known by."""

    async def new_token(self, order: TokenOrder) -> NewToken:
        """Make a token, and its owner known to the others."""
        ...

    async def tokens(self) -> tuple[TokenLine, ...]:
        """Every token that was ever made, the oldest first."""
        ...

    async def revoke(self, id_or_name: str) -> tuple[TokenLine, ...]:
        """Refuse a token, or all of one name's, from now on, and end their connections."""
        ...

    async def callback_key(self) -> str:
        """The public key by which those whom the hub calls know it."""
        ...


# -- agents ----------------------------------------------------------------------------------------


class AgentLine(Told, frozen=True, kw_only=True):
    """An agent as it stands; ``silent_s`` is how long ago it was last heard, if it ever was."""

    id: str
    state: str
    status: str | None = None
    load: float | None = None
    tasks_running: int | None = None
    tasks_queued: int | None = None
    waiting: int = 0
    """Messages in its inbox."""

    silent_s: float | None = None
    capabilities: tuple[str, ...] = ()


class Switchboard(Protocol):
    """Who is there, and a word with them."""

    async def agents(self, capabilities: Sequence[str] = ()) -> tuple[AgentLine, ...]:
        """Every agent that is known and can do all of this, by name."""
        ...

    async def send(self, message: bytes) -> Sent:
        """Hand in a message of any dialect, as the one it names as its sender."""
        ...

    async def assign(self, order: TaskOrder) -> Sent:
        """Give somebody a task."""
        ...


class TaskOrder(Told, frozen=True, kw_only=True):
    """A task for somebody, from a person."""

    to: str
    task_type: str
    input: Raw | UnsetType = UNSET
    person: str = "you"
    session: str = "default"
    priority: Annotated[int, Meta(ge=1, le=10)] | UnsetType = UNSET
    timeout_s: Seconds | UnsetType = UNSET
    callback_url: str | UnsetType = UNSET


class Sent(Told, frozen=True, kw_only=True):
    """A message that is safe; ``held`` waits for a person, ``thread`` is what to trace it by."""

    id: str
    session: str
    thread: str
    number: int = 0
    """Where it stands in the record."""

    repeated: bool = False
    held: bool = False


# -- the record ------------------------------------------------------------------------------------


class Fate(Word):
    """Where a message is."""

    WAITING = "waiting"
    TAKEN = "taken"
    DEAD = "dead"


class Standing(Told, frozen=True):
    """What became of a copy of a message."""

    fate: Fate
    tries: int = 0
    reason: str = ""


class Entry(Told, frozen=True, kw_only=True):
    """A line of the record: a message, or what happened to one or to an agent.

    ``body`` is what ``events`` says about this kind of event.
    """

    seq: int
    at_ms: int
    session: str
    event: EventKind
    body: Raw
    standing: Standing | None = None


class Choice(Struct, frozen=True, kw_only=True):
    """Which lines of the record are wanted; what is not said does not matter.

    ``kind`` is a kind of message or event, or the part of it before the dot.
    """

    agent: str | None = None
    kind: str | None = None
    session: str | None = None
    correlation: str | None = None


class Record(Protocol):
    """What was said, and what became of it."""

    async def latest(self, choice: Choice, most: int) -> tuple[Entry, ...]:
        """The newest lines that are wanted, in order."""
        ...

    def entries(self, choice: Choice, *, after: int) -> AsyncIterator[Entry]:
        """Each wanted line after a number, and then every one as it happens."""
        ...

    async def thread(self, name: str) -> tuple[Entry, ...]:
        """All messages of a conversation, by its correlation id or the id of one of them."""
        ...


# -- dead letters ----------------------------------------------------------------------------------


class DeadLine(Told, frozen=True, kw_only=True):
    """A message that could not be delivered; ``message`` is the message itself."""

    number: int
    session: str
    recipient: str
    reason: str
    tries: int
    at_ms: int
    message: Raw


class DeadLetters(Protocol):
    """What could not be delivered."""

    async def dead_letters(self, *, after: int = 0, limit: int = 100) -> tuple[DeadLine, ...]:
        """What there is, the oldest first."""
        ...

    async def dead_letter(self, number: int) -> DeadLine:
        """One of them."""
        ...

    async def resend(self, number: int) -> None:
        """Put it back into its inbox, as if it had come now."""
        ...

    async def delete(self, number: int) -> None:
        """Give it up for good."""
        ...


# -- consent ---------------------------------------------------------------------------------------


class Consents(Protocol):
    """What waits for a person: tasks that need consent, and errors to be seen (C5, H9)."""

    async def asks(self) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        ...

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them."""
        ...


class HubOffice(TokenDesk, Switchboard, Record, DeadLetters, Consents, Protocol):
    """All of it."""
