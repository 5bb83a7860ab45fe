"""What a text form is made of: its parts, in order, and what each part holds.

``reading``, ``writing`` and ``checking`` go by these descriptions; a form adds no code of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from msgspec import Struct


class Kind(Enum):
    """What a part holds, and so how it is laid out."""

    LINE = auto()  # one line below the heading
    TEXT = auto()  # prose of one or more lines
    PATH = auto()  # one path
    ITEMS = auto()  # a bulleted list
    STEPS = auto()  # a numbered list
    PATHS = auto()  # a list of paths
    STEPS_OR_DONE = auto()  # a bulleted list, or the word DONE

    @property
    def is_list(self) -> bool:
        return self in (Kind.ITEMS, Kind.STEPS, Kind.PATHS, Kind.STEPS_OR_DONE)

    @property
    def is_single_line(self) -> bool:
        return self in (Kind.LINE, Kind.PATH, Kind.PATHS)


class Layout(Enum):
    """How headings are written: ``1. Intent`` on a line of its own, or ``Goal: …`` on one line."""

    NUMBERED = auto()
    KEYED = auto()


@dataclass(frozen=True)
class Part:
    """One part of a form.

    ``also`` are other spellings of the title that readers accept, as regular expressions, tried
    before the title and in this order, so that `Next Steps` is not read as `Next`; ``hint``
    says what belongs there, for the sentence that asks for it. ``at_least`` and ``at_most`` count
    the entries of a list. ``note`` is the attribute for what stands beside DONE. ``judge`` returns
    why a text is not acceptable, or nothing.
    """

    title: str
    attribute: str
    kind: Kind
    hint: str
    also: tuple[str, ...] = ()
    optional: bool = False
    at_least: int = 0
    at_most: int | None = None
    note: str = ""
    judge: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Shape:
    """A form: its parts in order, and the line it opens with, where it has one."""

    name: str
    layout: Layout
    parts: tuple[Part, ...]
    opening: str = ""
    titles: re.Pattern[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        spellings = (
            f"(?P<part{index}>{'|'.join((*part.also, re.escape(part.title)))})"
            for index, part in enumerate(self.parts)
        )
        titles = re.compile("|".join(spellings), re.IGNORECASE)
        object.__setattr__(self, "titles", titles)

    def heading(self, part: Part) -> str:
        """The heading as it is written."""
        if self.layout is Layout.KEYED:
            return f"{part.title}:"
        return f"{self.parts.index(part) + 1}. {part.title}"


class FormProblem(Struct, frozen=True):
    """One breach: the part it is in, and how to mend it."""

    part: str
    sentence: str
