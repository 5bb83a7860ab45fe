"""An error's severity decides what is done about it (H9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import TypeAlias

from agentcanvas.hub.journal import Choice, Decision, Journal
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Error, ErrorSeverity
from agentcanvas.protocol.values import Word


class Reaction(Word):
    """What may be done about an error."""

    LOG = "log"
    MAY_RETRY = "may_retry"
    TELL = "tell"
    ACT = "act"
    SHOW = "show"


REACTIONS = MappingProxyType(
    {
        ErrorSeverity.INFO: (Reaction.LOG,),
        ErrorSeverity.WARNING: (Reaction.LOG, Reaction.MAY_RETRY),
        ErrorSeverity.ERROR: (Reaction.LOG, Reaction.TELL),
        ErrorSeverity.CRITICAL: (Reaction.ACT, Reaction.SHOW, Reaction.LOG, Reaction.TELL),
    }
)

Doing: TypeAlias = Callable[[Envelope], Awaitable[None]]


class Attention:
    """Reacts to errors: ``tell`` those concerned, ``act`` at once, ``show`` it to a person."""

    def __init__(
        self,
        journal: Journal,
        *,
        tell: Doing | None = None,
        act: Doing | None = None,
        show: Doing | None = None,
    ) -> None:
        self._journal = journal
        self._doing = {Reaction.TELL: tell, Reaction.ACT: act, Reaction.SHOW: show}

    async def react(self, envelope: Envelope) -> tuple[Reaction, ...]:
        """Do what an error's severity asks for; return what that was."""
        body = envelope.body
        if not isinstance(body, Error):
            return ()
        reactions = REACTIONS[body.severity or ErrorSeverity.ERROR]
        for reaction in reactions:
            doing = self._doing.get(reaction)
            if doing is not None:
                await doing(envelope)
            choice = _CHOICES.get(reaction)
            if choice is not None:
                await self._journal.note(
                    Decision(
                        choice=choice,
                        message_id=envelope.id,
                        recipient=envelope.sender.id,
                        session=envelope.session or "default",
                        code=body.error_code,
                    )
                )
        return reactions


_CHOICES = MappingProxyType(
    {Reaction.LOG: Choice.LOGGED, Reaction.TELL: Choice.TOLD, Reaction.SHOW: Choice.SHOWN}
)
