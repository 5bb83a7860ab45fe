"""Cutting a named part out of a file: what is under a Markdown heading, or a definition in code.

Code is cut by its indentation, which formatted code of every common language has; no language is
parsed. What is not found is said by None.
"""

from __future__ import annotations

import re

_LONGEST_LINE = 400
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_CLOSING = re.compile(r"[ \t]*([)\]}]|end\b|else\b|except\b|finally\b|catch\b)")
_BEFORE_A_NAME = (
    r"(?:\b(?:def|class|function\*?|func|fn|fun|sub|struct|enum|interface|trait|impl|type|module"
    r"|namespace|const|let|var|val|object|record|macro)\s+(?:\([^)]*\)\s*)?)"
)


def cut_section(text: str, name: str) -> str | None:
    """The part of ``text`` that is called ``name``; ``Class.method`` looks inside the class."""
    lines = text.splitlines()
    found = _under_heading(lines, name)
    if found is None:
        found = _definition(lines, name)
    return "\n".join(found).rstrip() if found else None


def _under_heading(lines: list[str], name: str) -> list[str] | None:
    """From the heading to the next of its level or above; headings inside code do not count."""
    wanted = name.lstrip("# \t").strip().casefold()
    start, level, fence = None, 0, ""
    for index, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.fullmatch(line)
        if heading is None:
            continue
        if start is not None and len(heading[1]) <= level:
            return lines[start:index]
        if start is None and heading[2].casefold() == wanted:
            start, level = index, len(heading[1])
    return None if start is None else lines[start:]


def _definition(lines: list[str], name: str) -> list[str] | None:
    found: list[str] | None = lines
    for part in name.removesuffix("()").split("."):
        found = _block_of(found or [], part) if part else None
        if found is None:
            return None
    return found


def _block_of(lines: list[str], name: str) -> list[str] | None:
    word = re.escape(name)
    # A line that nobody could have written by hand (minified, generated) takes too long to match.
    readable = [line if len(line) <= _LONGEST_LINE else "" for line in lines]
    by_keyword = re.compile(rf"{_BEFORE_A_NAME}{word}\b")
    # `name(…) {` in C and its kin, or a method in a class body.
    by_shape = re.compile(
        rf"[ \t]*(?:[\w:<>*&,\[\]]+[ \t]+)*{word}[ \t]*\([^;]*\)?[^;]*[{{,(]?[ \t]*"
    )
    for looks_right in (by_keyword.search, by_shape.fullmatch):
        for index, line in enumerate(readable):
            if looks_right(line):
                return lines[_with_decorators(lines, index) : _end_of_block(lines, index)]
    return None


def _with_decorators(lines: list[str], index: int) -> int:
    while index and lines[index - 1].lstrip().startswith(("@", "#[", "///", "/**", " *", "*/")):
        index -= 1
    return index


def _end_of_block(lines: list[str], start: int) -> int:
    margin = _indent(lines[start])
    end = start + 1
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        deeper = _indent(line) > margin
        if not deeper and not (_indent(line) == margin and _CLOSING.match(line)):
            break
        end = index + 1
    return end


def _indent(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())
