"""How far an extension is believed (D33): never against what is visible.

One rule covers every field, every kind and every forgery: a claim holds if the message it
describes, spelled again in the dialect, gives exactly the visible fields. What an extension is made
of belongs to ``extension``; how a dialect is spelled, to the dialects.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.protocol.dialect import DialectName, Reading
from agentcanvas.protocol.envelope import Envelope, Fragment
from agentcanvas.protocol.extension import Extension, claims, given, is_possible, marks
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.scan import exactly
from agentcanvas.protocol.shape import Breach, Rule

W = TypeVar("W")

_to_json = msgspec.json.Encoder().encode
_NO_MESSAGE = (ValueError, TypeError, LookupError, msgspec.MsgspecError, RecursionError)


class Hints(Struct, frozen=True):
    """What is known about a visible message beside itself while it is being lifted.

    ``kind``, ``filled``, ``left`` and ``carried`` are claims of the extension; ``sealed`` says that
    the payload is ciphertext. ``unknown`` holds the fields that were taken out of it before.
    """

    kind: Kind | UnsetType = UNSET
    filled: frozenset[str] = frozenset()
    left: msgspec.Raw | UnsetType = UNSET
    carried: bool = False
    sealed: bool = False
    unknown: tuple[Fragment, ...] = ()


NO_HINTS = Hints()


class Speaker(Protocol[W]):
    """What has to be known of a dialect to weigh an extension in it."""

    @property
    def name(self) -> DialectName: ...

    def render(self, envelope: Envelope) -> W:
        """The message in this dialect, with the extension it needs."""

    def lift(self, wire: W, hints: Hints) -> Envelope:
        """What the visible message says; raises ValueError when the hints do not fit it."""

    def detach(self, wire: W) -> tuple[W, Extension | UnsetType]:
        """The message without its extension, and the extension."""


class Scale(Struct, frozen=True):
    """A visible message, to weigh claims about it; ``at`` points at where they are made."""

    speaker: Speaker[Any]
    plain: Any
    visible: Envelope
    unknown: tuple[Fragment, ...]
    at: str

    def weigh(self, extension: Extension) -> Reading:
        """The message as its extension completes it, as far as nothing contradicts."""
        completed = self._completed(extension)
        return self._weigh_each(extension) if completed is None else Reading(completed)

    def _weigh_each(self, extension: Extension) -> Reading:
        """Take from a contradictory extension, one by one, the claims that nothing contradicts."""
        envelope, trusted = self.visible, Extension()
        refused: list[Breach] = []
        for name, claim in claims(extension):
            attempt = self._completed(claim(trusted))
            if attempt is None:
                refused.append(
                    Breach(
                        Rule.EXTENSION,
                        f"{self.at}/{name}",
                        f"The extension's {name} contradicts the visible message, which counts",
                    )
                )
            else:
                envelope, trusted = attempt, claim(trusted)
        return Reading(envelope, tuple(refused))

    def _completed(self, extension: Extension) -> Envelope | None:
        """The message as the extension completes it, if that still looks as it does here."""
        if not is_possible(extension, self.speaker.name):
            return None
        hints = Hints(
            kind=extension.kind,
            filled=frozenset(extension.filled or ()),
            left=extension.body,
            carried=extension.carried is True,
            sealed=extension.header is not UNSET and extension.header.encrypted is True,
            unknown=self.unknown,
        )
        try:
            lifted = self.speaker.lift(self.plain, hints)
            changes = {**given(extension.header), **marks(extension)}
            completed = msgspec.structs.replace(lifted, **changes)
            alike = self._looks_alike(completed)
        except _NO_MESSAGE:
            return None  # claims that do not even make a message
        return completed if alike else None

    def _looks_alike(self, completed: Envelope) -> bool:
        visible = self.visible
        if completed.origin != self.speaker.name:
            visible = msgspec.structs.replace(visible, signature=UNSET)  # of this form only
        one, _ = self.speaker.detach(self.speaker.render(completed))
        other, _ = self.speaker.detach(self.speaker.render(visible))
        # The same message may have been written with other spacing or key order.
        return bool(one == other or exactly(_to_json(one)) == exactly(_to_json(other)))
