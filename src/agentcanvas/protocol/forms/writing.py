"""Writing a text form: the one canonical layout, which ``reading`` gives back unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcanvas.protocol.forms.lines import escape, reads_otherwise
from agentcanvas.protocol.forms.shape import Kind, Layout, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    Values = Mapping[str, str | tuple[str, ...]]

_INDENT = "  "


def write(shape: Shape, values: Values) -> str:
    """The form as text, ended by a newline."""
    lines = [shape.opening] if shape.opening else []
    for part in shape.parts:
        value = values[part.attribute]
        if isinstance(value, str):
            lines += _single(shape, part, value)
        elif part.kind is Kind.STEPS_OR_DONE and not value:
            lines += [shape.heading(part), *_done(str(values[part.note]))]
        elif value or not part.optional:
            lines += [shape.heading(part), *_list(shape, part, value)]
    return "\n".join(lines) + "\n"


def _single(shape: Shape, part: Part, value: str) -> list[str]:
    heading = shape.heading(part)
    text = escape(value, reads_otherwise(shape, part, None))
    if shape.layout is Layout.NUMBERED:
        return [heading, text]
    if "\n" in text:
        return [heading, *_hung(_INDENT, _INDENT, text)]
    width = max(len(shape.heading(each)) for each in shape.parts if not each.kind.is_list)
    return [f"{heading:<{width}} {text}"]


def _list(shape: Shape, part: Part, entries: tuple[str, ...]) -> list[str]:
    margin = _INDENT if shape.layout is Layout.KEYED else ""
    if not entries:
        return [f"{margin}- None"]
    lines: list[str] = []
    for count, entry in enumerate(entries, start=1):
        number = count if part.kind is Kind.STEPS else None
        marker = f"{margin}{f'{number}.' if number else '-'} "
        text = escape(entry, reads_otherwise(shape, part, number))
        lines += _hung(marker, " " * len(marker), text)
    return lines


def _done(note: str) -> list[str]:
    return _hung("DONE: ", _INDENT, note) if note else ["DONE"]


def _hung(first: str, others: str, text: str) -> list[str]:
    """The lines of ``text``, the first behind ``first``, the others below it behind ``others``."""
    head, *tail = text.split("\n")
    return [first + head, *(others + line if line else "" for line in tail)]
