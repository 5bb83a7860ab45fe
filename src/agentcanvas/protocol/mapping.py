"""Tables that say how a dialect spells a kind, and the two readings of such a table.

A ``Form`` has one ``Row`` per field that both sides know. ``show`` spells a body in a dialect and
tells what was left over and what had to be invented; ``hear`` is its inverse. Because both read
the same rows, a translation and its way back cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from agentcanvas.protocol.envelope import Fragment
from agentcanvas.protocol.kinds import Body
from agentcanvas.protocol.values import Raw, freeze, is_object, is_text

NOTHING: Final = object()
"""No value to fill in: the target can do without the field."""

TIME: Final = object()
"""Fill in the message's own time."""

Convert = Callable[[Any], Any]


class Row(Struct, frozen=True):
    """One field: its canonical name and its place in the dialect (dotted when nested).

    ``down`` spells a canonical value, or gives UNSET when the dialect cannot say it; ``up`` reads
    it back. A row without ``field`` is a constant that the dialect asks for.
    """

    field: str
    wire: str
    fill: Any = NOTHING
    down: Convert | None = None
    up: Convert | None = None


class Shown(Struct):
    """A body as a dialect shows it."""

    values: dict[str, Any]
    left: dict[str, Any]
    filled: list[str]
    carried: bool = False


class Heard(Struct):
    """A body as read from a dialect: its fields, and what the fields could not hold."""

    fields: dict[str, Any]
    fragments: list[Fragment]


class Form(Struct, frozen=True, kw_only=True):
    """How one kind is spelled in one dialect.

    ``slot`` names a free-form place in the dialect's payload. When the payload does not need it,
    the fields that have no place of their own travel there in plain sight; otherwise they go into
    the extension. With ``slot_whole`` the slot then carries its own field along with the others.
    """

    says: str
    rows: tuple[Row, ...]
    slot: str | None = None
    slot_whole: bool = False
    prefix: str = "/payload"

    def show(self, body: Body, *, fill: bool, time: str) -> Shown:
        """Spell ``body``; ``fill`` invents what the dialect requires and the body lacks."""
        shown = Shown({}, self._unshown(body), [])
        carry = False
        for row in self.rows:
            value = getattr(body, row.field, UNSET) if row.field else UNSET
            if row.wire == self.slot and self.slot_whole and shown.left and value is not UNSET:
                shown.left[row.field] = value
                value = UNSET
            if value is not UNSET and row.down is not None:
                spelled = row.down(value)
                if spelled is UNSET or row.up is None or row.up(spelled) != value:
                    shown.left[row.field] = value
                value = spelled
            if value is UNSET:
                if row.wire == self.slot:
                    carry = True
                elif row.fill is not NOTHING and (fill or not row.field):
                    shown.values[row.wire] = time if row.fill is TIME else row.fill
                    if fill:
                        shown.filled.append(self.pointer(row))
            else:
                shown.values[row.wire] = value
        if carry:
            self._use_slot(shown, fill=fill)
        return shown

    def _use_slot(self, shown: Shown, *, fill: bool) -> None:
        assert self.slot is not None
        if shown.left:
            shown.values[self.slot] = freeze(shown.left)
            shown.left = {}
            shown.carried = True
            return
        row = next(row for row in self.rows if row.wire == self.slot)
        if fill and row.fill is not NOTHING:
            shown.values[self.slot] = row.fill
            shown.filled.append(self.pointer(row))

    def hear(self, read: Mapping[str, Any], filled: frozenset[str], *, carried: bool) -> Heard:
        """Read a body back; invented values (``filled``) count as absent."""
        heard = Heard({}, [])
        for row in self.rows:
            value = read.get(row.wire, UNSET)
            if value is UNSET or not row.field or (carried and row.wire == self.slot):
                continue
            pointer = self.pointer(row)
            if pointer in filled:
                continue
            if row.up is None:
                heard.fields[row.field] = value
                continue
            meant = heard.fields[row.field] = row.up(value)
            if row.down is not None and row.down(meant) != value:
                heard.fragments.append(Fragment(pointer, freeze(value)))
        return heard

    def pointer(self, row: Row) -> str:
        """Where a row's field stands in the whole message."""
        return f"{self.prefix}/{row.wire.replace('.', '/')}"

    def _unshown(self, body: Body) -> dict[str, Any]:
        shown = {row.field for row in self.rows}
        return {
            name: value
            for name in body.__struct_fields__
            if name not in shown and (value := getattr(body, name)) is not UNSET
        }


# --- conversions that several dialects share ------------------------------------------------------


def to_ms(seconds: float) -> float:
    """Seconds to milliseconds, whole when that is exact."""
    ms = seconds * 1000
    whole = round(ms) if abs(ms) < 2**53 else None
    return whole if whole is not None and whole / 1000 == seconds else ms


def to_seconds(ms: float) -> float:
    """Milliseconds to seconds, whole when that is exact."""
    return ms // 1000 if isinstance(ms, int) and ms % 1000 == 0 else ms / 1000


def text_of(value: Raw) -> Any:
    """Free JSON as a text field: a string as itself, anything else as its JSON text."""
    if is_text(value):
        return msgspec.json.decode(value, type=str)
    return msgspec.json.format(bytes(value), indent=-1).decode()


def from_text(text: str) -> Raw:
    """A text field as free JSON."""
    return freeze(text)


def object_or_unset(value: Raw) -> Any:
    """Free JSON where only an object has a place."""
    return value if is_object(value) else UNSET


def text_or_object(value: Raw) -> Any:
    """Free JSON where only text or an object has a place."""
    return value if is_object(value) or is_text(value) else UNSET


def number_or_unset(value: float | str) -> Any:
    """A duration where only a number has a place; free text stays raw (C7)."""
    return UNSET if isinstance(value, str) else value


def same(value: Any) -> Any:
    """A value that needs no change on the way up."""
    return value
