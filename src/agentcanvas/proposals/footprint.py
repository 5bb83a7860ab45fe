"""Where a patch treads: each file, and the lines of the base that it changes.

Pure, and read from the patch alone. ``collisions`` compares footprints with each other, ``radar``
with the workspace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.outline import NotPlainError, read_outline, stands_for
from agentcanvas.proposals.policy import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentcanvas.proposals.outline import FileSection, Hunk

_LINK: Final = b"120000"


class Span(NamedTuple):
    """Lines of the base from ``start`` up to ``end``, from 0; an insertion takes none."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Touch:
    """What a patch does to one file; ``sections`` are its parts in the patch."""

    path: str
    name: bytes
    sections: tuple[FileSection, ...]
    spans: tuple[Span, ...]
    whole: bool

    @property
    def old(self) -> bytes:
        return self.sections[0].old

    @property
    def new(self) -> bytes:
        return self.sections[-1].new

    @property
    def created(self) -> bool:
        return self.sections[0].created

    @property
    def deleted(self) -> bool:
        return self.sections[-1].deleted

    @property
    def has_link(self) -> bool:
        """Whether there is a link before it or after it."""
        return any(_LINK in section.modes for section in self.sections)

    @property
    def names_content(self) -> bool:
        """Whether the patch says what it was made for; where the mode changes alone it does not."""
        return self.created or bool(self.old)

    def starts_from(self, oid: str | None, mode: str | None) -> bool:
        """Whether the file that has this id and mode is the one the patch was made for."""
        if self.created and len(self.sections) == 1:
            return oid is None
        return oid is not None and _fits(self.old, self.sections[0].old_mode, oid, mode)

    def leads_to(self, oid: str | None, mode: str | None) -> bool:
        """Whether the file that has this id and mode is what the patch makes."""
        if self.deleted:
            return oid is None
        return oid is not None and _fits(self.new, self.sections[-1].new_mode, oid, mode)


@dataclass(frozen=True, slots=True)
class Footprint:
    """All files of a patch, by path."""

    files: Mapping[str, Touch] = field(default_factory=dict)


def footprint(patch: bytes) -> Footprint:
    """Read it from a plain patch."""
    try:
        sections = read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"The patch cannot be compared with others: {problem}.") from None
    grouped: dict[bytes, list[FileSection]] = {}
    for section in sections:
        grouped.setdefault(section.name, []).append(section)
    return Footprint({show(name): _touch(name, parts) for name, parts in grouped.items()})


def _touch(name: bytes, sections: list[FileSection]) -> Touch:
    first = sections[0]
    whole = (
        len(sections) > 1 or first.created or first.deleted or first.binary or _LINK in first.modes
    )
    spans = tuple(span for hunk in first.hunks for span in _spans(hunk))
    return Touch(show(name), name, tuple(sections), spans, whole)


def _spans(hunk: Hunk) -> Iterator[Span]:
    """The changed lines without the context around them."""
    line, start = hunk.old_index, None
    for sign in (text[:1] for text in hunk.lines):
        if sign in {b"-", b"+"}:
            start = line if start is None else start
            line += sign == b"-"
        elif sign != b"\\":
            if start is not None:
                yield Span(start, line)
                start = None
            line += 1
    if start is not None:
        yield Span(start, line)


def _fits(promised: bytes, promised_mode: bytes, oid: str, mode: str | None) -> bool:
    same_mode = not promised_mode or mode is None or promised_mode.decode() == mode
    return same_mode and stands_for(promised, oid)
