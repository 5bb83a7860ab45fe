"""Tables that say how a dialect spells a kind, and the two readings of such a table.

A ``Form`` has one ``Row`` per field that both sides know. ``show`` spells a body in a dialect and
tells what was left over and what had to be invented; ``hear`` is its inverse. Because both come
from the same rows, a translation and its way back cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from agentcanvas.protocol.envelope import Fragment
from agentcanvas.protocol.kinds import Body
from agentcanvas.protocol.values import Maybe, Raw, freeze, is_object, is_text

NOTHING: Final = object()
"""No value to fill in: the target can do without the field."""

TIME: Final = object()
"""Fill in the message's own time."""

UNKNOWN: Final = "unknown"
"""What a field says that the dialect requires and nobody has told."""

EMPTY: Final = freeze({})

Convert = Callable[[Any], Any]


class Row(Struct, frozen=True):
    """One field: its canonical name and its place in the dialect (dotted when nested).

    ``down`` spells a canonical value, or gives UNSET when the dialect cannot say it; ``up`` reads
    it back, and with ``lossy`` may not give exactly what was there. ``exact`` tells cheaply which
    values are spelled without loss; otherwise they are read back to see. A row without ``field``
    is a constant that the dialect asks for.
    """

    field: str
    wire: str
    fill: Any = NOTHING
    down: Convert | None = None
    up: Convert | None = None
    exact: Callable[[Any], bool] | None = None
    lossy: bool = False


class Shown(Struct):
    """A body as a dialect shows it: its values by place, what is left over, what was invented."""

    values: dict[str, Any]
    left: dict[str, Any]
    filled: list[str]
    carried: bool = False


Show: TypeAlias = Callable[[Body, bool, str], Shown]
Hear: TypeAlias = Callable[
    [object, frozenset[str], bool, Maybe[Raw]], tuple[Body, tuple[Fragment, ...]]
]


class Form:
    """How one kind is spelled in one dialect, compiled from its rows into two functions.

    ``show(body, fill, time)`` spells a body; ``fill`` invents what the dialect requires and the
    body lacks. ``hear(payload, filled, carried, left)`` reads the body back: invented fields
    (``filled``) count as absent, ``left`` or the slot holds further ones, and what a field cannot
    hold exactly is given as fragments.

    ``slot`` names a free-form place in the dialect's payload (its row comes last). When the payload
    does not need it, the fields that have no place of their own travel there in plain sight;
    otherwise they go into the extension. With ``slot_whole`` the slot then carries its own field
    along with the others. ``parts`` are nested objects of the payload that may be absent; what is
    required in one is filled in only when something else is in it.
    """

    def __init__(
        self,
        says: str,
        body: type[Body],
        rows: Iterable[Row],
        *,
        slot: str | None = None,
        slot_whole: bool = False,
        parts: tuple[str, ...] = (),
        prefix: str = "/payload",
    ) -> None:
        self.says = says
        self.body = body
        self.rows = tuple(rows)
        self.slot = slot
        self.slot_whole = slot_whole
        self.parts = parts
        self.prefix = prefix
        if slot is not None and self.rows[-1].wire != slot:
            raise ValueError(f"the row of the slot {slot} must come last")
        self.show: Show = _compile(_show_source(self), self)
        self.hear: Hear = _compile(_hear_source(self), self)

    def pointer(self, row: Row) -> str:
        """Where a row's field stands in the whole message."""
        return f"{self.prefix}/{row.wire.replace('.', '/')}"


# A table is read for every message of every dialect. Compiled to plain assignments, as dataclasses
# do with their methods, it is read about four times as fast as by a loop over rows.


def _compile(source: list[str], form: Form) -> Any:
    names: dict[str, Any] = {
        "UNSET": UNSET,
        "Shown": Shown,
        "Fragment": Fragment,
        "Body": form.body,
        "completed": _completed,
        "freeze": freeze,
    }
    for index, row in enumerate(form.rows):
        names[f"fill{index}"] = row.fill
        names[f"down{index}"] = row.down
        names[f"up{index}"] = row.up
        names[f"exact{index}"] = row.exact
    exec("\n".join(source), names)  # noqa: S102 - the source is made from the tables in this package
    return names["made"]


def _show_source(form: Form) -> list[str]:
    shown = {row.field for row in form.rows}
    lines = ["def made(body, fill, time):", " left = {}", " filled = []", " carried = False"]
    for name in form.body.__struct_fields__:
        if name not in shown:
            lines += [f" v = body.{name}", f" if v is not UNSET: left[{name!r}] = v"]
    for index, row in enumerate(form.rows):
        lines += _show_row(form, index, row)
    for part in form.parts:
        lines += _fill_part(form, part)
    values = ", ".join(f"{row.wire!r}: v{index}" for index, row in enumerate(form.rows))
    return [*lines, f" return Shown({{{values}}}, left, filled, carried)"]


def _show_row(form: Form, index: int, row: Row) -> list[str]:
    value = f"v{index}"
    lines = [f" {value} = body.{row.field}" if row.field else f" {value} = UNSET"]
    is_slot = row.wire == form.slot
    if is_slot and form.slot_whole:
        lines += [
            f" if left and {value} is not UNSET:",
            f"  left[{row.field!r}] = {value}",
            f"  {value} = UNSET",
        ]
    if row.down is not None:
        lines += [
            f" if {value} is not UNSET:",
            f"  spelled = down{index}({value})",
            f"  if {_is_lost(index, row)}: left[{row.field!r}] = {value}",
            f"  {value} = spelled",
        ]
    if is_slot:
        lines += [
            f" if {value} is UNSET and left:",
            f"  {value} = freeze(left)",
            "  left = {}",
            "  carried = True",
        ]
    if row.fill is not NOTHING and row.wire.partition(".")[0] not in form.parts:
        lines += _fill(form, index, row)
    return lines


def _is_lost(index: int, row: Row) -> str:
    if row.exact is not None:
        return f"not exact{index}(v{index})"
    if row.up is same:
        return "spelled is UNSET"
    return f"spelled is UNSET or up{index}(spelled) != v{index}"


def _fill(form: Form, index: int, row: Row, indent: str = " ") -> list[str]:
    invented = "time" if row.fill is TIME else f"fill{index}"
    pointer = form.pointer(row)
    if not row.field:
        # A constant belongs to the form, whoever wrote the message.
        return [
            f"{indent}if v{index} is UNSET:",
            f"{indent} v{index} = {invented}",
            f"{indent} if fill: filled.append({pointer!r})",
        ]
    return [
        f"{indent}if v{index} is UNSET and fill:",
        f"{indent} v{index} = {invented}",
        f"{indent} filled.append({pointer!r})",
    ]


def _fill_part(form: Form, part: str) -> list[str]:
    members = [
        (index, row) for index, row in enumerate(form.rows) if row.wire.partition(".")[0] == part
    ]
    present = " or ".join(f"v{index} is not UNSET" for index, row in members if row.field)
    lines = [f" if {present}:", "  pass"] if present else [" if False: pass"]
    for index, row in members:
        if present and row.fill is not NOTHING:
            lines += _fill(form, index, row, indent="  ")
    return lines


def _hear_source(form: Form) -> list[str]:
    lines = ["def made(payload, filled, carried, left):", " fragments = ()"]
    lines += [f" part_{part} = payload.{part}" for part in form.parts]
    rows = [(index, row) for index, row in enumerate(form.rows) if row.field]
    for index, row in rows:
        lines += _hear_row(form, index, row)
    if rows:
        lines.append(" if filled:")
        lines += [f"  if {form.pointer(row)!r} in filled: v{index} = UNSET" for index, row in rows]
    if form.slot:
        lines.append(f" if carried: left = payload.{form.slot}")
    fields = ", ".join(f"{row.field}=v{index}" for index, row in rows)
    return [
        *lines,
        f" if left is UNSET: return Body({fields}), fragments",
        f" return completed(Body, left, dict({fields})), fragments",
    ]


def _completed(body_type: type[Body], left: Raw, fields: dict[str, Any]) -> Body:
    """A body from what is visible of it and what is left."""
    rest = msgspec.json.decode(left, type=dict[str, Raw])
    visible = {name: value for name, value in fields.items() if value is not UNSET}
    return msgspec.json.decode(msgspec.json.encode({**visible, **rest}), type=body_type)


def _hear_row(form: Form, index: int, row: Row) -> list[str]:
    value = f"v{index}"
    part, _, member = row.wire.partition(".")
    if part in form.parts:
        lines = [f" {value} = UNSET if part_{part} is UNSET else part_{part}.{member}"]
    else:
        lines = [f" {value} = payload.{row.wire}"]
    if row.wire == form.slot:
        lines.append(f" if carried: {value} = UNSET")
    if row.up is not None and row.up is not same:
        lines += [f" if {value} is not UNSET:", f"  said = {value}", f"  {value} = up{index}(said)"]
        if row.lossy:
            lines += [
                f"  if down{index}({value}) != said:",
                f"   fragments += (Fragment({form.pointer(row)!r}, freeze(said)),)",
            ]
    return lines


# --- conversions that several dialects share ------------------------------------------------------


def to_ms(seconds: float) -> float:
    """Seconds to milliseconds, whole when that is exact."""
    ms = seconds * 1000
    whole = round(ms) if abs(ms) < 2**53 else None
    return whole if whole is not None and whole / 1000 == seconds else ms


def to_seconds(ms: float) -> float:
    """Milliseconds to seconds, whole when that is exact."""
    return ms // 1000 if isinstance(ms, int) and ms % 1000 == 0 else ms / 1000


_read_text = msgspec.json.Decoder(str).decode


def text_of(value: Raw) -> Any:
    """Free JSON as a text field: a string as itself, anything else as its JSON text."""
    if is_text(value):
        return _read_text(value)
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
