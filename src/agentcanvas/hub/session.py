"""Conversations: who takes part, and along which edges they may speak (D23, D27).

Rows are the truth; memory mirrors them, because every message is checked against it. What was said
in a session is kept by ``duties`` as far as it matters, and by the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio
import msgspec
from msgspec import Struct

from agentcanvas.errors import PermissionDenied, ValidationError
from agentcanvas.hub.intake import DEFAULT_SESSION
from agentcanvas.store import Snapshot, Store, Transaction

Edge = tuple[str, str]

_NAME_CHARS = 200
_members = msgspec.json.Decoder(frozenset[str])
_edges = msgspec.json.Decoder(frozenset[Edge])


class Session(Struct, frozen=True):
    """A conversation.

    Without ``edges`` every member may address every other. The owner, usually the engine of a run,
    may address all and be addressed by all.
    """

    name: str
    owner: str | None = None
    members: frozenset[str] = frozenset()
    edges: frozenset[Edge] | None = None

    def has(self, agent: str) -> bool:
        """Tell whether an agent takes part."""
        return agent in self.members or agent == self.owner

    def has_edge(self, source: str, target: str) -> bool:
        """Tell whether one member may address another."""
        if self.edges is None or self.owner in (source, target):
            return True
        return (source, target) in self.edges


class Sessions:
    """All sessions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, Session] = {DEFAULT_SESSION: Session(DEFAULT_SESSION)}

    async def load(self) -> None:
        """Read what there is."""
        for session in await self._store.read(_load):
            self._sessions[session.name] = session

    def get(self, name: str) -> Session | None:
        """Return a session as it stands."""
        return self._sessions.get(name)

    def of(self, agent: str) -> list[Session]:
        """Return the sessions an agent takes part in."""
        return [session for session in self._sessions.values() if session.has(agent)]

    async def open(
        self,
        name: str,
        *,
        members: Iterable[str],
        edges: Iterable[Edge] | None = None,
        owner: str | None = None,
    ) -> Session:
        """Open a session, or set the members and edges of one that the same owner opened before."""
        if not name or len(name) > _NAME_CHARS or not name.isprintable():
            raise ValidationError(
                f"A session's name has 1 to {_NAME_CHARS} printable characters, not {name[:40]!r}."
            )
        before = self._sessions.get(name)
        if before is not None and before.owner != owner:
            raise PermissionDenied(f"The session {name} belongs to {before.owner or 'everybody'}.")
        installed = None if edges is None else frozenset(edges)
        opened = Session(name, owner, frozenset(members), installed)
        return await self._keep(opened, lambda _: opened)

    async def join(self, name: str, agent: str) -> Session:
        """Let an agent take part."""
        session = self._existing(name)
        if agent in session.members:
            return session
        return await self._keep(session, lambda now: _with_members(now, now.members | {agent}))

    async def leave(self, name: str, agent: str) -> Session:
        """Let an agent take part no longer; mail that waits for it stays."""
        session = self._existing(name)
        return await self._keep(session, lambda now: _with_members(now, now.members - {agent}))

    def _existing(self, name: str) -> Session:
        session = self._sessions.get(name)
        if session is None:
            raise ValidationError(f"There is no session {name}; open it first.")
        return session

    async def _keep(self, session: Session, change: Callable[[Session], Session]) -> Session:
        """Write what a session becomes; what it is now is only known to the writer.

        Hundreds may join at once, and none of them must undo what another has changed meanwhile.
        """

        def work(transaction: Transaction) -> Session:
            changed = change(_stored(transaction, session.name) or session)
            _write(transaction, changed)
            return changed

        with anyio.CancelScope(shield=True):  # memory must follow what is written, in that order
            changed = await self._store.transact(work)
            self._sessions[changed.name] = changed
        return changed


def _with_members(session: Session, members: frozenset[str]) -> Session:
    return msgspec.structs.replace(session, members=members)


def _write(transaction: Transaction, session: Session) -> None:
    edges = None if session.edges is None else msgspec.json.encode(sorted(session.edges))
    transaction.execute(
        "INSERT OR REPLACE INTO hub_sessions (session, owner, members, edges) VALUES (?, ?, ?, ?)",
        (
            session.name,
            session.owner,
            msgspec.json.encode(sorted(session.members)).decode(),
            None if edges is None else edges.decode(),
        ),
    )


_SELECT = "SELECT session, owner, members, edges FROM hub_sessions"


def _load(look: Snapshot) -> list[Session]:
    return [_read(*row) for row in look.query(_SELECT)]


def _stored(look: Snapshot, name: str) -> Session | None:
    row = look.one(f"{_SELECT} WHERE session = ?", (name,))
    return _read(*row) if row else None


def _read(name: str, owner: str | None, members: str, edges: str | None) -> Session:
    installed = None if edges is None else _edges.decode(edges)
    return Session(name, owner, _members.decode(members), installed)
