"""A message and whom it is for: every check on the way in that needs no disk.

It says who may speak where (``guard``, ``session``), keeps to the rates of edges, leaves known
secrets out, and gives a ``Post``. Keeping it is the broker's work.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentNotFound, InvalidMessage, MessageTooLarge, ValidationError
from agentcanvas.hub import guard, router
from agentcanvas.hub.broker import Post
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.intake import DEFAULT_SESSION
from agentcanvas.hub.mailbox import Origin
from agentcanvas.hub.notices import HUB
from agentcanvas.hub.rates import Rates
from agentcanvas.hub.redaction import Redactor
from agentcanvas.hub.session import Session, Sessions
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.limits import Limits
from agentcanvas.protocol.session import check_direction


class Addressing:
    """The checks of one hub."""

    def __init__(
        self, sessions: Sessions, rates: Rates, redactor: Redactor, clock: Clock, limits: Limits
    ) -> None:
        self._sessions = sessions
        self._rates = rates
        self._redactor = redactor
        self._clock = clock
        self._limits = limits

    def address(
        self,
        principal: Principal,
        envelope: Envelope,
        origin: Origin | None,
        on_behalf_of: OnBehalfOf | UnsetType,
        breaches: Sequence[str] = (),
        *,
        again: bool = False,
    ) -> Post:
        """Check a message and find its recipients; raise the first thing that is wrong.

        ``again`` is for one that was checked and held: its permissions and its rate were counted.
        """
        guard.check_sender(principal, envelope, on_behalf_of)
        if self._limits.acp.security.require_permissions and not again:
            guard.check_permissions(principal, envelope)
        noted: tuple[str, ...] = ()
        if (direction := check_direction(envelope)) or breaches:
            found = (*breaches, *(str(breach) for breach in direction))
            noted = tuple(self._redactor.text(each) for each in found)
        try:
            post = self._routed(principal, envelope, origin, on_behalf_of, noted)
            contents = _contents(post)
            if any(map(self._redactor.finds, contents)):
                cleaned = self._redactor.envelope(envelope)
                post = self._routed(principal, cleaned, origin, on_behalf_of, noted)
                contents = _contents(post)
        except UnicodeEncodeError:
            sentence = f"The message {envelope.id!r} holds text that is not valid Unicode."
            raise InvalidMessage(sentence) from None
        self._refuse_large(post, contents)
        limited = principal.kind is PrincipalKind.AGENT and not guard.is_answer(envelope.kind)
        if limited and not again:
            recipients = [copy.recipient for copy in post.copies]
            self._rates.admit(post.session, principal.id, recipients, self._clock.monotonic())
        return post

    def _routed(
        self,
        principal: Principal,
        envelope: Envelope,
        origin: Origin | None,
        on_behalf_of: OnBehalfOf | UnsetType,
        noted: tuple[str, ...],
    ) -> Post:
        if principal.kind is PrincipalKind.PERSON and _recipient(envelope, origin) == HUB:
            name = envelope.session or (origin.session if origin else DEFAULT_SESSION)
            return router.to_one(envelope, name, HUB, on_behalf_of, noted)
        session = self._session(envelope, origin)
        if envelope.is_broadcast:
            speaker = on_behalf_of.speaker if on_behalf_of is not UNSET else principal.id
            recipients = [
                member
                for member in session.members
                if member not in (principal.id, speaker)
                and guard.may_speak(session, envelope.kind, speaker, member)
            ]
            return router.to_all(envelope, session.name, recipients, on_behalf_of, noted)
        recipient = _recipient(envelope, origin)
        if recipient is None:
            raise InvalidMessage(
                f"The message {envelope.id} names no recipient and answers no message that is "
                "known; name one of the two."
            )
        if not session.has(recipient):
            raise AgentNotFound(f"Agent not found: {recipient}")
        guard.check_edge(session, envelope, recipient, on_behalf_of)
        return router.to_one(envelope, session.name, recipient, on_behalf_of, noted)

    def _session(self, envelope: Envelope, origin: Origin | None) -> Session:
        name = envelope.session or (origin.session if origin else DEFAULT_SESSION)
        session = self._sessions.get(name)
        if session is None:
            raise ValidationError(f"There is no session {name}; open it, or name another.")
        if not session.has(envelope.sender.id):
            raise AgentNotFound(f"Agent not found: {envelope.sender.id}")
        return session

    def _refuse_large(self, post: Post, contents: Sequence[bytes]) -> None:
        most = self._limits.message.size_bytes
        for content in contents:
            if len(content) > most:
                raise MessageTooLarge(
                    f"The message {post.envelope.id} has {len(content)} bytes, more than the "
                    f"{most} allowed; send large content as a blob.",
                    message_id=post.envelope.id,
                )


def _recipient(envelope: Envelope, origin: Origin | None) -> str | None:
    if envelope.recipient is not UNSET:
        return envelope.recipient.id
    return origin.sender if origin is not None else None


def _contents(post: Post) -> list[bytes]:
    contents = [copy.content for copy in post.copies]
    return contents if post.broadcast is None else [post.broadcast, *contents]
