"""The plain form of a patch: what ``git diff --binary --no-renames`` prints, and nothing else.

git's own parser stays the only source of names for what is applied. This second, stricter reading
can only refuse: text around the diffs, rename and copy headers (D14), names without the ``a/`` and
``b/`` prefixes, names that differ from line to line. git would accept all of these, and a reviewer
could be shown one thing while another is applied. What it has read, whoever points things out to
reviewers, looks for collisions or chooses parts of a patch takes from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_START: Final = re.compile(rb'diff --git ("?)[ab]/(?!/)(.+)')
_INDEX: Final = re.compile(rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
_MODE: Final = re.compile(rb"(old mode|new mode|new file mode|deleted file mode) ([0-7]{6})")
_OLD: Final = re.compile(rb'--- (?:("?a/(?!/).+)|/dev/null)')
_NEW: Final = re.compile(rb'\+\+\+ (?:("?b/(?!/).+)|/dev/null)')
_NUMBER: Final = rb"(\d{1,10})"  # Python takes no numbers of thousands of digits
_HUNK: Final = re.compile(rb"@@ -%b(?:,%b)? \+%b(?:,%b)? @@( .*)?" % ((_NUMBER,) * 4))
_BINARY: Final = re.compile(rb"(?:literal|delta) \d+")
_BASE85: Final = re.compile(rb"[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+")
_NO_NEWLINE: Final = re.compile(rb"\\ .*")
_ESCAPED: Final = re.compile(rb'\\([abtnvfr"\\]|[0-3][0-7]{2})')
_PLAIN: Final = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_LINK: Final = b"120000"


@dataclass(frozen=True, slots=True)
class Hunk:
    """One stretch of changed lines; ``lines`` keep their signs and ``\\ No newline`` marks."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    heading: bytes
    lines: tuple[bytes, ...]

    @property
    def old_index(self) -> int:
        """How many lines of the old file come before it; git counts otherwise when it is empty."""
        return self.old_start - 1 if self.old_count else self.old_start

    @property
    def new_index(self) -> int:
        return self.new_start - 1 if self.new_count else self.new_start

    def after(self) -> Iterator[tuple[int, bytes, bool]]:
        """The lines of the new file: number, text, and whether the patch adds it."""
        number = self.new_index
        for line in self.lines:
            if line[:1] not in {b"-", b"\\"}:
                number += 1
                yield number, line[1:], line[:1] == b"+"


@dataclass(frozen=True, slots=True)
class FileSection:
    """What one file's part says: blob ids, possibly abbreviated, modes, and every line of it.

    ``old_mode`` and ``new_mode`` are empty where the patch does not say them; ``modes`` is every
    mode named. A change of type is two sections with one name.
    """

    name: bytes = b""
    old: bytes = b""
    new: bytes = b""
    modes: frozenset[bytes] = frozenset()
    old_mode: bytes = b""
    new_mode: bytes = b""
    created: bool = False
    deleted: bool = False
    binary: bool = False
    hunks: tuple[Hunk, ...] = ()
    lines: tuple[bytes, ...] = ()

    @property
    def changes_mode(self) -> bool:
        """An existing file that becomes executable, or stops being so."""
        return bool(self.old_mode and self.new_mode) and self.old_mode != self.new_mode

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
        return FileSection(self.name, self.old, made.new, self.modes | made.modes)


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
        sections.append(_section(reader))
    return sections


def _section(reader: _Reader) -> FileSection:
    first = reader.position
    name = _name(reader, reader.take(_START))
    modes = {}
    while mode := reader.accept(_MODE):
        modes[mode[1]] = mode[2]
    ids = reader.accept(_INDEX)
    old, new, same_mode = ids.groups() if ids else (b"", b"", None)
    if same_mode:
        modes[b"old mode"] = modes[b"new mode"] = same_mode
    binary = reader.accept(re.compile(rb"GIT binary patch")) is not None
    if binary:
        _binary(reader)
    hunks = () if binary else _hunks(reader, name)
    return FileSection(
        name=name,
        old=old,
        new=new,
        modes=frozenset(modes.values()),
        old_mode=modes.get(b"old mode") or modes.get(b"deleted file mode", b""),
        new_mode=modes.get(b"new mode") or modes.get(b"new file mode", b""),
        created=b"new file mode" in modes,
        deleted=b"deleted file mode" in modes,
        binary=binary,
        hunks=hunks,
        lines=reader.since(first),
    )


def _name(reader: _Reader, start: re.Match[bytes]) -> bytes:
    """The one name of the ``diff --git`` line: without renames it is there twice.

    Whether it stands below a/ or b/ depends on how the diff was made.
    """
    quote, rest = start.groups()
    joints = [quote + b" " + quote + side for side in (b"a/", b"b/")]
    length = (len(rest) - len(joints[0]) - len(quote)) // 2
    name = rest[: max(length, 0)]
    if rest not in [name + joint + name + quote for joint in joints]:
        raise reader.out_of_place()
    return _unquoted(name) if quote else name


def _unquoted(name: bytes) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        if len(found[1]) > 1:
            return bytes([int(found[1], 8)])
        return bytes([_PLAIN[found[1][0]]])

    return _ESCAPED.sub(plain, name)


def _hunks(reader: _Reader, name: bytes) -> tuple[Hunk, ...]:
    before = reader.accept(_OLD)
    if before is None:
        return ()
    _same_name(reader, before, name)
    _same_name(reader, reader.take(_NEW), name)
    hunks = [_hunk(reader, reader.take(_HUNK))]
    while header := reader.accept(_HUNK):
        hunks.append(_hunk(reader, header))
    return tuple(hunks)


def _same_name(reader: _Reader, line: re.Match[bytes], name: bytes) -> None:
    if line[1] is None:
        return
    # git ends a name that holds a blank with a tab.
    said = line[1].removesuffix(b"\t")
    plain = _unquoted(said[3:-1]) if said.startswith(b'"') else said[2:]
    if plain != name:
        raise reader.out_of_place()


def _hunk(reader: _Reader, header: re.Match[bytes]) -> Hunk:
    """Consume exactly the lines that the header counts."""
    first = reader.position
    counts = [1 if count is None else int(count) for count in (header[2], header[4])]
    old, new = counts
    while old > 0 or new > 0:
        sign = reader.next()[:1]
        # git writes an empty context line with its space, but reads one without.
        old -= sign in {b" ", b"-", b""}
        new -= sign in {b" ", b"+", b""}
        if sign not in {b" ", b"-", b"+", b"", b"\\"} or old < 0 or new < 0:
            raise reader.out_of_place()
    reader.accept(_NO_NEWLINE)
    return Hunk(
        int(header[1]), counts[0], int(header[3]), counts[1], header[5] or b"", reader.since(first)
    )


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
        self.position = 0

    @property
    def at_end(self) -> bool:
        return self.position >= len(self._lines)

    def since(self, first: int) -> tuple[bytes, ...]:
        return tuple(self._lines[first : self.position])

    def accept(self, form: re.Pattern[bytes]) -> re.Match[bytes] | None:
        if self.at_end:
            return None
        match = form.fullmatch(self._lines[self.position])
        self.position += match is not None
        return match

    def take(self, form: re.Pattern[bytes]) -> re.Match[bytes]:
        if match := self.accept(form):
            return match
        self.position += 1
        raise self.out_of_place()

    def next(self) -> bytes:
        self.position += 1
        if self.position > len(self._lines):
            raise self.out_of_place()
        return self._lines[self.position - 1]

    def out_of_place(self) -> NotPlainError:
        """About the line that was read last."""
        number = self.position
        line = self._lines[number - 1] if number <= len(self._lines) else b"(end of the patch)"
        return NotPlainError(number, line)


def stands_for(promised: bytes, oid: str | None) -> bool:
    """Whether a possibly abbreviated id from an ``index`` line means this blob, or none at all."""
    if not promised:
        return True
    return set(promised) == {ord("0")} if oid is None else oid.encode().startswith(promised)
