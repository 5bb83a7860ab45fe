"""Recognising what a line of a text form is: a heading, a list marker, a fence, a rule.

Also the one escape the forms know: a leading backslash turns a line that would be taken for
structure into plain text. Reader and writer share these functions, so that they cannot disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentcanvas.protocol.forms.shape import Kind, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = re.compile(r"(?:[-*+•‣◦]|(?P<number>\d{1,3})[.)]|\(\d{1,3}\))(?:[ \t]+|$)")
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*)$")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,}|={3,})$")
_HEADING_START = re.compile(
    r"(?P<bullet>[-*+•][ \t]+)?"
    r"(?P<hashes>\#{1,6}[ \t]*)?"
    r"(?P<outer>\*{1,3}|_{1,3})?"
    r"(?:\(?(?P<number>\d{1,2})[.):]\)?[ \t]*)?"
    r"(?P<inner>\*{1,3}|_{1,3})?"
)
_REMARK = re.compile(r"[ \t]*\([^()]*\)")
_SEPARATOR = re.compile(r"[ \t]*(?:[:\uff1a]|[—\u2013](?=\s|$)|-(?=\s|$))")
_NONE = re.compile(
    r"[(\[]?(?:none(?: yet| so far| at this time)?|n/?a|nothing|nil|no(?: open)? questions)"
    r"[)\]]?[.!]?",
    re.IGNORECASE,
)
_DONE_ALONE = re.compile(r"(?:✅[ \t]*)?[*_`]{0,3}done[.!:]?[*_`]{0,3}[.!:]?", re.IGNORECASE)
_DONE_WITH_NOTE = re.compile(
    r"(?:✅[ \t]*)?[*_`]{0,3}DONE[*_`]{0,3}[ \t]*[:.,;—\u2013-][ \t]*(?=\S)"
)


@dataclass(frozen=True)
class Heading:
    """A line that opens a part; ``rest`` is what stands after the title on the same line."""

    part: Part
    rest: str
    indent: int
    bulleted: bool


def indent_of(line: str) -> int:
    """Columns of leading white space, a tab counting to the next multiple of four."""
    lead = line[: len(line) - len(line.lstrip(" \t"))]
    return len(lead.expandtabs(4))


def heading(line: str, shape: Shape) -> Heading | None:
    """Read ``line`` as a heading of ``shape``, in any of the ways people and models write one."""
    body = line.strip()
    start = _HEADING_START.match(body)
    assert start is not None  # every group is optional
    title = shape.titles.match(body, start.end())
    if title is None or title.lastgroup is None:
        return None
    index = int(title.lastgroup.removeprefix("part"))
    emphasis = start["outer"] or start["inner"] or ""
    rest = _after_title(body[title.end() :], emphasis)
    if rest is None:
        return None
    decorated = bool(emphasis or start["hashes"])
    if start["number"] and int(start["number"]) != index + 1 and not decorated:
        return None  # an entry of a numbered list that happens to begin with a title
    return Heading(shape.parts[index], rest, indent_of(line), bool(start["bullet"]))


def _after_title(tail: str, emphasis: str) -> str | None:
    """What follows the title on its line, or None when the title was only the start of a sentence.

    The emphasis is closed before or after the separator: ``**Intent**: …`` or ``**Intent:** …``.
    """
    closed = not emphasis
    tail = _without_remark(tail)
    if emphasis and tail.startswith(emphasis):
        tail, closed = _without_remark(tail[len(emphasis) :]), True
    separator = _SEPARATOR.match(tail)
    if separator:
        tail = tail[separator.end() :]
        if not closed and tail.startswith(emphasis):
            tail, closed = tail[len(emphasis) :], True
    tail = tail.strip()
    if not closed or (tail and not separator):
        return None
    return tail


def _without_remark(tail: str) -> str:
    remark = _REMARK.match(tail)
    return tail[remark.end() :] if remark else tail


def is_opening(line: str, shape: Shape) -> bool:
    """Whether the line is only the word a block opens with, however decorated."""
    word = line.strip(" \t#*_=-:`>").casefold()
    return bool(word) and word == shape.opening.casefold()


def is_rule(line: str) -> bool:
    """A horizontal rule."""
    return _RULE.fullmatch(line.strip()) is not None


def fence(line: str) -> str:
    """The characters of a code fence, or nothing."""
    found = _FENCE.match(line.strip())
    return found[1] if found else ""


def is_bare_fence(line: str) -> bool:
    """A fence without a language: it can close a block."""
    found = _FENCE.match(line.strip())
    return found is not None and not found[2]


def is_none(text: str) -> bool:
    """The words for an empty list."""
    return _NONE.fullmatch(text) is not None


def done_note(text: str) -> str | None:
    """The remark beside DONE, empty where there is none; None when ``text`` does not say DONE."""
    first, _, more = text.partition("\n")
    if _DONE_ALONE.fullmatch(first):
        return more.strip()
    if with_note := _DONE_WITH_NOTE.match(text):
        return text[with_note.end() :]
    return None


def is_quoted_path(text: str) -> bool:
    """A path in backticks, as Markdown writes code."""
    return len(text) > len("``") and text[0] == text[-1] == "`"


def reads_otherwise(shape: Shape, part: Part, number: int | None) -> Callable[[str], bool]:
    """A test whether a text of this part would be taken for something else than itself.

    ``number`` is that of the list entry, where entries are numbered.
    """

    def line(text: str) -> bool:
        return bool(MARKER.match(text) or heading(text, shape) or fence(text) or is_rule(text))

    def entry(text: str) -> bool:
        first, _, _ = text.partition("\n")
        return is_none(text) or (
            number is not None and heading(f"{number}. {first}", shape) is not None
        )

    match part.kind:
        case Kind.LINE:
            return line
        case Kind.PATH:
            return is_quoted_path
        case Kind.PATHS:
            return lambda text: entry(text) or is_quoted_path(text)
        case Kind.STEPS_OR_DONE:
            return lambda text: entry(text) or done_note(text) is not None
        case Kind.ITEMS | Kind.STEPS:
            return entry
        case Kind.TEXT:
            return lambda _: False


def escape(text: str, misread: Callable[[str], bool]) -> str:
    """Put a backslash before text that would be misread, or that already hides behind one."""
    return f"\\{text}" if misread(text.lstrip("\\")) else text


def unescape(text: str, misread: Callable[[str], bool]) -> str:
    """Take the backslash away that ``escape`` put there, and no other."""
    return text[1:] if text.startswith("\\") and misread(text.lstrip("\\")) else text
