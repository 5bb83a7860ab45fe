"""Reading a text form out of whatever a model wrote around it.

Two steps: find the block and cut it at its headings, then read each part by its kind. Reading never
raises: it returns what it found and every breach, and leaves what the values may hold to
``checking``. Every step is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from agentcanvas.protocol.forms.lines import (
    MARKER,
    Heading,
    done_note,
    fence,
    heading,
    indent_of,
    is_bare_fence,
    is_none,
    is_opening,
    is_quoted_path,
    is_rule,
    reads_otherwise,
    unescape,
)
from agentcanvas.protocol.forms.shape import FormProblem, Kind, Layout, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Entries and continuation lines are indented by two or more; a slip of one is forgiven.
_DEEPER = 2
_UNKNOWN_KEY = re.compile(r"(?P<key>[A-Z][A-Za-z]*(?: [A-Za-z]+)?)[:\uff1a](?:\s|$)")


@dataclass
class Reading:
    """The values found, by attribute, and every breach of the form's structure."""

    values: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    problems: list[FormProblem] = field(default_factory=list)


@dataclass(frozen=True)
class _Line:
    text: str
    fenced: bool  # inside a code block, so that it is nothing but text

    @property
    def indent(self) -> int:
        return indent_of(self.text)


@dataclass(frozen=True)
class _Section:
    heading: Heading
    lines: list[_Line]
    last: bool  # what follows it may be text after the block


def read(text: str, shape: Shape) -> Reading:
    """Everything that can be read of ``text`` as a form of this shape."""
    found = Reading()
    sections = _sections(text, shape, found)
    for part in shape.parts:
        section = sections.get(part.title)
        if section is not None:
            _read_part(section, shape, found)
        elif not part.optional:
            found.problems.append(
                FormProblem(
                    part.title,
                    f'The part "{part.title}" is missing: add "{shape.heading(part)}" '
                    f"with {part.hint}.",
                )
            )
    return found


# --- finding the block and its headings ---------------------------------------------------------


def _sections(text: str, shape: Shape, found: Reading) -> dict[str, _Section]:
    normal = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in normal.split("\n")]
    start = _start(lines, shape, found)
    if start is None:
        return {}
    first = heading(lines[start], shape)
    assert first is not None  # _start returns a heading's place
    current = _Section(first, [], last=first.part is shape.parts[-1])
    sections = {first.part.title: current}
    for line in islice(_block(lines, start, first.indent), 1, None):
        at_margin = not line.fenced and line.indent < first.indent + _DEEPER
        head = heading(line.text, shape) if at_margin else None
        # Headings look alike: they are list entries all of them or none.
        if head is not None and head.bulleted == first.bulleted:
            if head.part.title in sections:
                found.problems.append(_twice(head, shape))
            current = _Section(head, [], last=head.part is shape.parts[-1])
            sections.setdefault(head.part.title, current)
        elif at_margin and is_opening(line.text, shape):
            found.problems.append(
                FormProblem(
                    shape.opening,
                    f"There is a second {shape.opening} block: send one block a message.",
                )
            )
            break
        else:
            current.lines.append(line)
    return sections


def _start(lines: list[str], shape: Shape, found: Reading) -> int | None:
    """The place of the block's first heading: after the opening word, else wherever parts begin."""
    after = 0
    if shape.opening:
        opened = next((i for i, line in enumerate(lines) if is_opening(line, shape)), None)
        if opened is None:
            found.problems.append(
                FormProblem(
                    shape.opening,
                    f"The block does not begin: put a line {shape.opening} before its first part.",
                )
            )
        else:
            after = opened + 1
    anywhere = None
    for place in range(after, len(lines)):
        head = heading(lines[place], shape)
        if head is None:
            continue
        if shape.opening or head.part is shape.parts[0]:
            return place
        anywhere = place if anywhere is None else anywhere
    return anywhere


def _block(lines: list[str], start: int, indent: int) -> Iterator[_Line]:
    """The lines of the block, up to the end of the code fence it may stand in."""
    closers: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        if is_bare_fence(line) and (place < start or indent_of(line) < indent + _DEEPER):
            closers.setdefault(fence(line), []).append(place)
    around = _fence_around(lines[:start])
    place = start
    while place < len(lines):
        line = lines[place]
        opened = fence(line) if indent_of(line) < indent + _DEEPER else ""
        if around and opened == around and is_bare_fence(line):
            return
        later = closers.get(opened, [])
        here = bisect_right(later, place)
        # Inside a fence the last closing line belongs to the fence around the block.
        if opened and len(later) - here > (opened == around):
            for inside in range(place, later[here] + 1):
                yield _Line(lines[inside], fenced=True)
            place = later[here] + 1
            continue
        yield _Line(line, fenced=False)
        place += 1


def _fence_around(before: list[str]) -> str:
    """The fence still open after these lines, or nothing."""
    opened = ""
    for line in before:
        if not opened:
            opened = fence(line)
        elif is_bare_fence(line) and fence(line) == opened:
            opened = ""
    return opened


def _twice(head: Heading, shape: Shape) -> FormProblem:
    title = head.part.title
    return FormProblem(
        title,
        f'The part "{title}" is there twice: keep one heading "{shape.heading(head.part)}", and '
        "begin a line that only looks like it with a backslash.",
    )


# --- reading a part -----------------------------------------------------------------------------


def _read_part(section: _Section, shape: Shape, found: Reading) -> None:
    part = section.heading.part
    if part.kind.is_list:
        entries = _entries(section, shape, found)
        if part.kind is Kind.STEPS_OR_DONE:
            _read_steps_or_done(part, entries, shape, found)
        else:
            plain = () if _says_none(entries) else entries
            found.values[part.attribute] = tuple(_plain(entry, part, shape) for entry in plain)
    elif part.kind is Kind.TEXT:
        found.values[part.attribute] = _prose(section)
    else:
        found.values[part.attribute] = _one_line(section, shape)


@dataclass
class _Entry:
    """A list entry under construction: where it stands and where its own text begins."""

    lines: list[str]
    number: int | None = None
    indent: int = 0
    column: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def _entries(section: _Section, shape: Shape, found: Reading) -> list[_Entry]:
    entries = _inline_entries(section.heading)
    open_entry: _Entry | None = None
    blanks = 0
    for line in section.lines:
        body = line.text.strip()
        outer = not line.fenced and (
            open_entry is None or line.indent < open_entry.indent + _DEEPER
        )
        rule = outer and is_rule(body)
        if section.last and entries and _ends_block(body, outer=outer, blanks=blanks):
            break
        if not body or rule:
            blanks += 1
            continue
        marker = MARKER.match(body) if outer else None
        if outer and marker is None and entries:
            _note_unknown_key(line, section, shape, found)
        if marker is None and open_entry is not None and not (outer and blanks):
            column = section.heading.indent if line.fenced else open_entry.column
            open_entry.lines += [""] * blanks + [_cut(line.text, column)]
        else:
            open_entry = _new_entry(line, body, marker)
            entries.append(open_entry)
        blanks = 0
    return [entry for entry in entries if entry.text]


def _ends_block(body: str, *, outer: bool, blanks: int) -> bool:
    """Whether this line of the last part is text after the block: a paragraph, a rule, a title."""
    if not outer or not body or MARKER.match(body):
        return False
    return blanks > 0 or is_rule(body) or body.startswith("#")


def _new_entry(line: _Line, body: str, marker: re.Match[str] | None) -> _Entry:
    if marker is None:
        return _Entry([body], indent=line.indent, column=line.indent + _DEEPER)
    number = int(marker["number"]) if marker["number"] else None
    return _Entry([body[marker.end() :]], number, line.indent, line.indent + marker.end())


def _inline_entries(head: Heading) -> list[_Entry]:
    """Entries that stand on the heading's own line."""
    if not head.rest:
        return []
    if head.part.kind is Kind.PATHS:
        return [_Entry([path.strip()]) for path in head.rest.split(",")]
    if head.part.kind is Kind.STEPS:
        return [_Entry([step]) for step in _inline_steps(head.rest)]
    return [_Entry([head.rest])]


def _inline_steps(rest: str) -> list[str]:
    """``1. Read 2. Move 3. Test`` cut at its numbers; anything else is one step."""
    steps: list[str] = []
    begin = 0
    for number in re.finditer(r"(?:^|[\s;,])(\d{1,2})[.)]\s+", rest):
        if int(number[1]) != len(steps) + (1 if begin == 0 else 2):
            continue
        if begin:
            steps.append(rest[begin : number.start()])
        elif number.start() > 0:
            break
        begin = number.end()
    return [step.strip(" \t;,") for step in (*steps, rest[begin:])]


def _note_unknown_key(line: _Line, section: _Section, shape: Shape, found: Reading) -> None:
    """``Risks: …`` after the list of changed files is not a file."""
    if shape.layout is not Layout.KEYED or line.fenced:
        return
    key = _UNKNOWN_KEY.match(line.text.strip())
    if key and line.indent < section.heading.indent + _DEEPER:
        known = ", ".join(part.title for part in shape.parts)
        found.problems.append(
            FormProblem(
                key["key"],
                f'{shape.name} has no part "{key["key"]}": its parts are {known}.',
            )
        )


def _cut(line: str, column: int) -> str:
    """The line without its entry's indentation; what is indented further keeps the difference."""
    lead, rest = line[:column], line[column:]
    return rest if not lead.strip(" ") and len(lead) == column else line.lstrip()


def _says_none(entries: Sequence[_Entry]) -> bool:
    return len(entries) == 1 and is_none(entries[0].text)


def _plain(entry: _Entry, part: Part, shape: Shape) -> str:
    text = entry.text
    if part.kind is Kind.PATHS and is_quoted_path(text):
        text = text.strip("`")
    return unescape(text, reads_otherwise(shape, part, entry.number))


def _read_steps_or_done(part: Part, entries: list[_Entry], shape: Shape, found: Reading) -> None:
    notes = [done_note(entry.text) for entry in entries]
    done = [note for note in notes if note is not None]
    if done and len(entries) > 1:
        found.problems.append(
            FormProblem(
                part.title,
                f'"{part.title}" says DONE and lists steps: write DONE alone, or only the steps.',
            )
        )
    if not entries or _says_none(entries):
        found.problems.append(
            FormProblem(part.title, f'"{part.title}" is empty: write DONE, or the steps.')
        )
    steps = [entry for entry, note in zip(entries, notes, strict=True) if note is None]
    found.values[part.attribute] = tuple(_plain(entry, part, shape) for entry in steps)
    found.values[part.note] = done[0] if done else ""


def _prose(section: _Section) -> str:
    """All lines of the part, moved left together."""
    lines = [line.text for line in _without_rules(section)]
    first = next((line for line in lines if line), "")
    moved = [_cut(line, len(first) - len(first.lstrip(" "))) for line in lines]
    return "\n".join([section.heading.rest, *moved]).strip()


def _one_line(section: _Section, shape: Shape) -> str:
    """The part's lines as they are; that there is only one is for ``checking`` to say."""
    part = section.heading.part
    lines = (line.text.strip() for line in _without_rules(section))
    text = "\n".join(line for line in (section.heading.rest, *lines) if line)
    if part.kind is Kind.LINE and (marker := MARKER.match(text)):
        text = text[marker.end() :]
    if part.kind is Kind.PATH and is_quoted_path(text):
        text = text.strip("`")
    return unescape(text, reads_otherwise(shape, part, None))


def _without_rules(section: _Section) -> Iterator[_Line]:
    """The part's lines but for the horizontal rules that people draw between parts."""
    margin = section.heading.indent + _DEEPER
    for line in section.lines:
        if line.fenced or line.indent >= margin or not is_rule(line.text):
            yield line
