"""The plain form of a patch: what ``git diff --binary --no-renames`` prints, and nothing else.

git's own parser stays the only source of names. This second, stricter reading can only refuse: text
around the diffs, rename and copy headers (D14), names without the ``a/`` and ``b/`` prefixes. git
would accept all of these, and a reviewer could be shown one thing while another is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_START: Final = re.compile(rb'diff --git "?[ab]/(?!/).+ "?[ab]/(?!/).+')
_INDEX: Final = re.compile(rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
_MODE: Final = re.compile(rb"(?:old mode|new mode|new file mode|deleted file mode) ([0-7]{6})")
_OLD: Final = re.compile(rb'--- (?:("?)a(/(?!/).+)|/dev/null)')
_NEW: Final = re.compile(rb'\+\+\+ (?:("?)b(/(?!/).+)|/dev/null)')
_HUNK: Final = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@(?: .*)?")
_BINARY: Final = re.compile(rb"(?:literal|delta) \d+")
_BASE85: Final = re.compile(rb"[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+")
_LINK: Final = b"120000"


@dataclass(frozen=True, slots=True)
class FileSection:
    """What one file's headers promise: blob ids, possibly abbreviated, and every mode named."""

    old: bytes = b""
    new: bytes = b""
    modes: frozenset[bytes] = frozenset()

    def replaces(self, gone: FileSection) -> bool:
        """Whether this makes anew, as another type of file, what ``gone`` removes."""
        return (
            _is_nothing(gone.new)
            and _is_nothing(self.old)
            and len(gone.modes) == len(self.modes) == 1
            and (_LINK in gone.modes) is not (_LINK in self.modes)
        )

    def then(self, made: FileSection) -> FileSection:
        """Both parts of a change of type, as one."""
        return FileSection(self.old, made.new, self.modes | made.modes)


def _is_nothing(blob: bytes) -> bool:
    return bool(blob) and set(blob) == {ord("0")}


class NotPlainError(ValueError):
    """Line ``number`` (from 1) has no place in a plain patch."""

    def __init__(self, number: int, line: bytes) -> None:
        shown = line[:80].decode(errors="backslashreplace")
        super().__init__(f"line {number} is not part of a plain git diff: {shown!r}")


def read_outline(patch: bytes) -> list[FileSection]:
    """One section a file, in order; ``NotPlainError`` at the first line that is out of place."""
    lines = patch.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    reader = _Reader(lines)
    sections = []
    while not reader.at_end:
        reader.take(_START)
        sections.append(_section(reader))
    return sections


def _section(reader: _Reader) -> FileSection:
    modes = set()
    while mode := reader.accept(_MODE):
        modes.add(mode[1])
    ids = reader.accept(_INDEX)
    if ids and ids[3]:
        modes.add(ids[3])
    if reader.accept(re.compile(rb"GIT binary patch")):
        _binary(reader)
    elif before := reader.accept(_OLD):
        after = reader.take(_NEW)
        if before[2] and after[2] and before.groups() != after.groups():
            raise reader.out_of_place()
        _hunk(reader, reader.take(_HUNK))
        while hunk := reader.accept(_HUNK):
            _hunk(reader, hunk)
    old, new = (ids[1], ids[2]) if ids else (b"", b"")
    return FileSection(old, new, frozenset(modes))


def _hunk(reader: _Reader, header: re.Match[bytes]) -> None:
    """Consume exactly the lines that the header counts."""
    old, new = (1 if count is None else int(count) for count in header.groups())
    while old > 0 or new > 0:
        sign = reader.next()[:1]
        # git writes an empty context line with its space, but reads one without.
        old -= sign in {b" ", b"-", b""}
        new -= sign in {b" ", b"+", b""}
        if sign not in {b" ", b"-", b"+", b"", b"\\"} or old < 0 or new < 0:
            raise reader.out_of_place()
    reader.accept(re.compile(rb"\\ .*"))


def _binary(reader: _Reader) -> None:
    reader.take(_BINARY)
    while True:
        while reader.accept(_BASE85):
            pass
        reader.take(re.compile(rb""))
        if not reader.accept(_BINARY):  # the reverse data, which git adds
            return


class _Reader:
    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self._next = 0

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._lines)

    def accept(self, form: re.Pattern[bytes]) -> re.Match[bytes] | None:
        if self.at_end:
            return None
        match = form.fullmatch(self._lines[self._next])
        self._next += match is not None
        return match

    def take(self, form: re.Pattern[bytes]) -> re.Match[bytes]:
        if match := self.accept(form):
            return match
        self._next += 1
        raise self.out_of_place()

    def next(self) -> bytes:
        self._next += 1
        if self._next > len(self._lines):
            raise self.out_of_place()
        return self._lines[self._next - 1]

    def out_of_place(self) -> NotPlainError:
        """About the line that was read last."""
        number = self._next
        line = self._lines[number - 1] if number <= len(self._lines) else b"(end of the patch)"
        return NotPlainError(number, line)


def stands_for(promised: bytes, oid: str | None) -> bool:
    """Whether a possibly abbreviated id from an ``index`` line means this blob, or none at all."""
    if not promised:
        return True
    return set(promised) == {ord("0")} if oid is None else oid.encode().startswith(promised)
