"""What keeps mail and passes it on, as the hub sees it.

A broker takes *posts*: messages whose sender, session and recipients are settled. Checking these is
left to ``guard``, ``session`` and ``router``; speaking to it over a connection to ``client``.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from enum import Enum
from hashlib import blake2b
from typing import Protocol, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.store import Transaction
from agentcanvas.store.events import NewEvent

T = TypeVar("T")

_WORD_BYTES = 8


def fingerprint(content: bytes) -> int:
    """Return 64 bits of a hash, as a number SQLite can hold."""
    return int.from_bytes(blake2b(content, digest_size=_WORD_BYTES).digest(), "big", signed=True)


class Copy(Struct, frozen=True):
    """A message for one recipient; ``content`` is its event, ready-made."""

    recipient: str
    envelope: Envelope
    content: bytes


class Post(Struct, frozen=True, kw_only=True):
    """A message that may be delivered: by whom, in which session, and to whom.

    ``key`` and ``digest`` are fingerprints of the id and of the message as it was sent. A broadcast
    has as many copies as there are recipients, and ``broadcast`` is its own event. ``spelled`` is
    the envelope in the dialect of its origin, where that is known, and ``came_ms`` is when the hub
    got it.
    """

    envelope: Envelope
    session: str
    key: int
    digest: int
    band: int
    copies: tuple[Copy, ...]
    broadcast: bytes | None = None
    on_behalf_of: OnBehalfOf | UnsetType = UNSET
    breaches: tuple[str, ...] = ()
    spelled: bytes = b""
    came_ms: int | None = None

    @property
    def sender(self) -> str:
        """Who sent it, on the wire."""
        return self.envelope.sender.id


class Receipt(Struct, frozen=True):
    """The message is on disk; ``repeated`` says that it was so before (M5).

    ``numbers`` are those of its copies' events; a message that is not kept has none. One that is
    ``held`` waits for a person's consent and is delivered only then (C5).
    """

    id: str
    session: str
    numbers: tuple[int, ...] = ()
    repeated: bool = False
    held: bool = False


class Parcel(Struct, frozen=True):
    """A message on its way to its recipient.

    ``number`` is what it is acknowledged by. ``redelivered`` warns that the recipient may have seen
    it before (D28); ``tries`` counts those that failed. ``spelled`` is the envelope in the dialect
    of its origin, where that is at hand.
    """

    number: int
    session: str
    envelope: Envelope
    redelivered: bool = False
    tries: int = 0
    on_behalf_of: OnBehalfOf | UnsetType = UNSET
    spelled: bytes = b""


class Settlement(Enum):
    """What a recipient says about parcels in its hands."""

    TAKEN = "taken"
    """Taken over: it will not come again (D28)."""

    FAILED = "failed"
    """Could not be taken over: one try is used up, and it comes again after a pause."""

    HELD = "held"
    """Not looked at yet: wait as long again."""


class DeadLetter(Struct, frozen=True):
    """A message that could not be delivered; it is kept until somebody resends or deletes it."""

    number: int
    session: str
    recipient: str
    envelope: Envelope
    reason: str
    tries: int
    at_ms: int


class Inbox(Protocol):
    """One recipient's, or one instance's, view of its mail."""

    async def take(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        ...

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news, once it is on disk."""
        ...

    def take_over(self, numbers: Sequence[int]) -> Future[int]:
        """Settle parcels as taken without waiting, so that it shares a commit with what follows."""
        ...

    async def close(self) -> None:
        """Let go; what was taken and not settled comes again, flagged, and without a try lost."""
        ...


class BrokerStatistics(Struct, frozen=True):
    """What a broker has done since it was opened, and how it stands."""

    posted: int = 0
    repeated: int = 0
    refused: int = 0
    delivered: int = 0
    redelivered: int = 0
    taken: int = 0
    dead: int = 0
    inboxes: int = 0
    in_flight: int = 0


Outcome: TypeAlias = Receipt | AgentCanvasError


class DeadLetterOffice(Protocol):
    """What could not be delivered, and what may be done about it."""

    async def dead_letters(self, *, after: int = 0, limit: int = 100) -> Sequence[DeadLetter]:
        """List what could not be delivered, oldest first."""
        ...

    async def resend(self, number: int) -> None:
        """Put a dead letter back into its inbox, as if it had come now."""
        ...

    async def delete(self, number: int) -> None:
        """Give a dead letter up for good; its id is still remembered (M5)."""
        ...


class ReadingRoom(Protocol):
    """Mail for those who come and ask instead of staying connected (D36)."""

    async def since(
        self,
        agent: str,
        *,
        after: int = 0,
        later_than_ms: int | None = None,
        limit: int = 100,
        only_waiting: bool = False,
    ) -> Sequence[Parcel]:
        """Read what came for an agent after a number or a time, taken over or not; takes nothing.

        The number of the last parcel is the cursor of the next call.
        """
        ...

    async def numbers_of(self, agent: str, message_ids: Sequence[str]) -> Sequence[int]:
        """Find an agent's waiting letters by the ids of their messages, for each the oldest."""
        ...

    async def acknowledge(self, agent: str, numbers: Sequence[int]) -> int:
        """Take over an agent's letters without a connection; return for how many that was news."""
        ...


class Broker(DeadLetterOffice, ReadingRoom, Protocol):
    """Durable mail between agents."""

    async def post(self, posts: Sequence[Post]) -> Sequence[Outcome]:
        """Keep messages; return, once they are on disk, a receipt or a refusal for each."""
        ...

    async def connect(self, agent: str, *, instance: str = "", window: int = 64) -> Inbox:
        """Connect a recipient; up to ``window`` parcels may be in its hands at once.

        A second connection of the same instance ends the first (D36); others share the mail.
        """
        ...

    def statistics(self) -> BrokerStatistics:
        """Tell what has been done, and how it stands."""
        ...


class Unit(Protocol):
    """One transaction of the store, and the mail in it."""

    @property
    def transaction(self) -> Transaction:
        """Where to write whatever belongs together with the mail."""
        ...

    def put(self, post: Post) -> Receipt:
        """Keep a message, or raise why not."""
        ...

    def take_over(self, number: int) -> bool:
        """Acknowledge a parcel; tell whether that was news."""
        ...

    def withdraw(self, session: str, sender: str, message_id: str) -> bool:
        """Take back a message that nobody has taken over; tell whether it was still there."""
        ...


class Record(Struct, frozen=True, kw_only=True):
    """Events that stand together, with the mail that belongs to them: all of it is kept, or none.

    What a function could do too, but told beforehand, so that those of many callers are written by
    a handful of statements.
    """

    events: tuple[NewEvent, ...] = ()
    post: Post | None = None
    taken: tuple[int, ...] = ()


class Transacting(Protocol):
    """A broker whose mail is in the store, so that mail and records can be one (D2, D3)."""

    async def transact(self, work: Callable[[Unit], T]) -> T:
        """Run ``work`` in the writer's thread, all or nothing; return its result."""
        ...

    def submit(self, work: Callable[[Unit], T]) -> Future[T]:
        """Queue the same without waiting; what is queued is written in this order."""
        ...

    def record(self, record: Record, *, patient: bool = False) -> Future[None]:
        """Queue events and mail in the same order, for less.

        What is ``patient`` waits a moment for others to share a commit with.
        """
        ...

    async def waiting(self, agent: str) -> Sequence[tuple[int, Envelope]]:
        """Read what waits for an agent, each with its number, without taking any of it."""
        ...
