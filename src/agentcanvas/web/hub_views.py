"""What the hub's API takes and gives, beyond the values of ``hub.office`` themselves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from agentcanvas.hub.office import AgentLine, Choice, DeadLine, Entry, TokenLine, Told
from agentcanvas.protocol.person import PersonAsk

Number = Annotated[int, Meta(ge=0, le=(1 << 62))]
Most = Annotated[int, Meta(ge=0, le=1_000)]


class TokensView(Told, frozen=True, omit_defaults=False):
    """Tokens, the oldest first."""

    tokens: tuple[TokenLine, ...]


class KeyView(Told, frozen=True, omit_defaults=False):
    """The public half of a key."""

    key: str


class AgentsView(Told, frozen=True, omit_defaults=False):
    """Agents, by name."""

    agents: tuple[AgentLine, ...]


class EntriesView(Told, frozen=True, omit_defaults=False):
    """Lines of the record, in order."""

    entries: tuple[Entry, ...]


class LettersView(Told, frozen=True, omit_defaults=False):
    """Dead letters, the oldest first."""

    letters: tuple[DeadLine, ...]


class HubAsksView(Told, frozen=True, omit_defaults=False):
    """What waits for a person, the oldest first."""

    asks: tuple[PersonAsk, ...]


class HubAskPath(Struct, frozen=True):
    """Something that waits for a person."""

    ask_id: str


class TokenPath(Struct, frozen=True):
    """A token by its id, or all of one name's."""

    token: str


class ThreadPath(Struct, frozen=True):
    """A conversation by its correlation id, or by the id of one of its messages."""

    name: str


class LetterPath(Struct, frozen=True):
    """A dead letter."""

    number: Number


class LettersQuery(Struct, frozen=True):
    """From where on, and how many."""

    after: Number = 0
    limit: Most = 100


class AgentsQuery(Struct, frozen=True):
    """What they have to be able to do, separated by commas."""

    capability: str = ""

    @property
    def wanted(self) -> tuple[str, ...]:
        """Each capability."""
        return tuple(each for each in self.capability.split(",") if each)


class RecordQuery(Struct, frozen=True):
    """Which lines; ``most`` of the newest, or all from a place on."""

    agent: str | None = None
    kind: str | None = None
    session: str | None = None
    correlation: str | None = None
    most: Most = 100
    after: Number = 0
    follow: bool = False
    last_event_id: str | None = None

    @property
    def choice(self) -> Choice:
        """What is wanted."""
        return Choice(
            agent=self.agent,
            kind=self.kind,
            session=self.session,
            correlation=self.correlation,
        )
