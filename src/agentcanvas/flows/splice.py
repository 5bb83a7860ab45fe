"""Replacing pieces of a text without touching the rest: lines, gaps, and what goes into them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """Characters ``start`` to ``end`` give way to ``text``."""

    start: int
    end: int
    text: str = ""


class OverlapError(ValueError):
    """Two splices want the same characters."""


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text with all splices made at once; new lines end as the text's own do."""
    newline = "\r\n" if "\r\n" in text else "\n"
    pieces, done = [], 0
    for splice in sorted(splices, key=lambda each: (each.start, each.end)):
        if splice.start < done:
            raise OverlapError
        pieces += [text[done : splice.start], splice.text.replace("\n", newline)]
        done = splice.end
    return "".join([*pieces, text[done:]])


def line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def line_end(text: str, index: int) -> int:
    """Before the line's end, which may be two characters."""
    end = text.find("\n", index)
    if end < 0:
        return len(text)
    return end - 1 if end > index and text[end - 1] == "\r" else end


def next_line(text: str, index: int) -> int:
    """Where the line after the one that ends at or after ``index`` begins."""
    if index and text[index - 1] == "\n":
        return index
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def begins_line(text: str, index: int) -> bool:
    """Whether nothing but space stands before it."""
    return not text[line_start(text, index) : index].strip(" ")


def is_last_on_line(text: str, index: int) -> bool:
    """Whether nothing, not even a comment, stands behind it."""
    return not text[index : line_end(text, index)].strip()


def insert_lines(text: str, index: int, lines: str) -> Splice:
    """Whole lines at the beginning of a line, or behind a last line that has no end."""
    if index and text[index - 1] != "\n":
        return Splice(index, index, f"\n{lines}")
    return Splice(index, index, f"{lines}\n")
