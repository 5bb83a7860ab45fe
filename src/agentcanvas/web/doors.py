"""What the doors for agents have in common: who comes in, what is let through, what is refused.

How bytes arrive is told by ``agent_socket`` and ``messages``; what becomes of a message is the
hub's matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, PermissionDenied, ResourceError
from agentcanvas.hub.blobs import Blobs
from agentcanvas.hub.doors import Admitted, SealDoor, admit
from agentcanvas.hub.frames import without_delivery
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.intake import DEFAULT_SESSION
from agentcanvas.hub.tokens import Tokens, signing_key, token_id
from agentcanvas.protocol.dialect import DialectName, Reading, detect
from agentcanvas.protocol.dialects import DIALECTS
from agentcanvas.protocol.wire_errors import to_body
from agentcanvas.web.latency import Latency

_BEARER = "bearer"


class Credentials(Struct, frozen=True):
    """What somebody shows at a door: the name it claims, and a token."""

    agent: str | None
    token: str | None

    @classmethod
    def of(cls, agent: str | None, token: str | None, authorization: str) -> Credentials:
        """Read them; the header is preferred, since addresses end up in logs."""
        scheme, _, shown = authorization.partition(" ")
        return cls(agent, shown.strip() if scheme.lower() == _BEARER else token)


class Doors:
    """The doors of one hub."""

    def __init__(
        self,
        hub: Hub,
        tokens: Tokens,
        clock: Clock,
        seal: SealDoor,
        blobs: Blobs,
        *,
        most_connections: int,
    ) -> None:
        self.hub = hub
        self.tokens = tokens
        self.clock = clock
        self.limits = hub.limits.message
        self.blobs = blobs
        self.latency = Latency()
        self.connections = {"websocket": 0, "http": 0}
        self._most_connections = most_connections
        self._seal = seal
        self._keys: dict[str, set[str]] = {}
        self._spoken: dict[str, DialectName] = {}

    @contextmanager
    def room(self) -> Iterator[None]:
        """Count a WebSocket; refuse one more than there are files for: the others need theirs."""
        if self.connections["websocket"] >= self._most_connections:
            raise ResourceError(
                f"This hub has {self._most_connections} connections and no room for more; "
                "try again later, or start it after: ulimit -n, with a larger number."
            )
        self.connections["websocket"] += 1
        try:
            yield
        finally:
            self.connections["websocket"] -= 1

    def check(self, shown: Credentials) -> Principal:
        """Tell whose token is shown, or raise ``Unauthenticated``."""
        return self.tokens.authenticate(shown.token, claimed=shown.agent)

    async def recognise(self, shown: Credentials) -> Principal:
        """Tell who is at the door, or raise ``PermissionDenied``; agents are known from then on."""
        principal = self.check(shown)
        if principal.kind not in (PrincipalKind.AGENT, PrincipalKind.PERSON):
            raise PermissionDenied(
                f"{principal.id} has no inbox here; use the token of an agent or a person."
            )
        self._learn_key(principal, shown.token or "")
        if not self._is_member(principal.id):
            await self.hub.sessions.join(DEFAULT_SESSION, principal.id)
        return principal

    def admit(self, raw: bytes, principal: Principal) -> Admitted:
        """Take a message in from the wire, or raise why not."""

        def read(data: bytes) -> Reading:
            before = self._spoken.get(principal.id)  # nearly always the same one
            if before is not None and (plain := DIALECTS[before].decode_plain(data)):
                return plain
            spoken = detect(data)
            self._spoken[principal.id] = spoken
            return DIALECTS[spoken].decode(data)

        admitted = admit(
            raw,
            sender=principal.id,
            decode=read,
            seal=self._seal,
            limits=self.limits,
            now_ms=self.clock.now_ms(),
        )
        if admitted.envelope.fragments:
            envelope = without_delivery(admitted.envelope)
            admitted = msgspec.structs.replace(admitted, envelope=envelope)
        return admitted

    def spoken_by(self, principal: Principal) -> DialectName:
        """Tell which dialect somebody spoke last; MAC before the first word."""
        return self._spoken.get(principal.id, DialectName.MAC)

    def refusal(
        self, error: AgentCanvasError, about: str | None = None, *, ref: int | None = None
    ) -> bytes:
        """Write a refusal as a MAC ERROR message; it is ``about`` a message, or about a word.

        It may quote what it refuses, but no known secret in it (D37).
        """
        body = to_body(error, time=self.clock.now(), about=about, ref=ref)
        return self.hub.redactor.quietly(body)

    def _is_member(self, name: str) -> bool:
        session = self.hub.sessions.get(DEFAULT_SESSION)
        return session is not None and session.has(name)

    def _learn_key(self, principal: Principal, token: str) -> None:
        """Check signatures with the key of this token, and with those of revoked ones no longer.

        Whoever holds a revoked one was put out, and comes by here when it is back.
        """
        known = self._keys.setdefault(principal.id, set())
        for id_ in [each for each in known if not self.tokens.is_good(each)]:
            known.remove(id_)
            self._seal.keyring.revoke(principal.id, id_)
        new = token_id(token)
        if new is not None and new not in known:
            known.add(new)
            self._seal.keyring.add(signing_key(token, principal.id))
