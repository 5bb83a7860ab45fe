"""The notebook of a workspace: ``MEMORY.md`` and one file a day below ``memory/``.

A note is a list item of the day's file, with its sources below it and a mark that names the step it
comes from: noting the same step again, after a crash, changes nothing. Everything else in the files
is people's, and stays as it is. Nothing is read or written through a link.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agentcanvas.errors import ResourceError

LASTING: Final = "MEMORY.md"
DAYS: Final = "memory"

MOST_RECALLED: Final = 20
MOST_DAYS: Final = 60
"""So many of the latest days are looked through."""
_LARGEST: Final = 256 * 1024
_LONGEST: Final = 4_000
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d\.md")
_MARK: Final = re.compile(r"\s*<!-- note [0-9a-f]{16} -->")
_ITEM: Final = re.compile(r"^[-*] ", re.MULTILINE)
_WORD: Final = re.compile(r"\w{3,}")
_COMMON: Final = frozenset(
    ("and", "are", "but", "for", "from", "has", "not", "that", "the", "this", "was", "with", "you")
)
_NEW: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Notebook:
    """Below ``folder``, the workspace's own; neither file has to be there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, entry: str, sources: Sequence[str], *, key: str, now_ms: int) -> Path:
        """Write a note into the day's file, unless it is there already; returns the file."""
        day = datetime.fromtimestamp(now_ms / 1000, UTC).date().isoformat()
        path = self._folder / DAYS / f"{day}.md"
        mark = f"<!-- note {hashlib.sha256(key.encode()).hexdigest()[:16]} -->"
        try:
            self._append(path, _item(entry, sources, mark), mark, title=day)
        except OSError as error:
            raise ResourceError(
                f"The note cannot be written to {path}: {error.strerror}; make room, or see who "
                "may write there."
            ) from error
        return path

    def recall(self, query: str) -> tuple[str, ...]:
        """What is known that shares words with the query, the best first; lasting before daily.

        Without a word in the query it is the lasting and the latest.
        """
        entries = list(dict.fromkeys(self._entries()))
        wanted = _words(query)
        if not wanted:
            return tuple(entries[:MOST_RECALLED])
        scored = [(len(wanted & _words(entry)), entry) for entry in entries]
        fitting = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
        return tuple(entry for _, entry in fitting[:MOST_RECALLED])

    def _entries(self) -> Iterable[str]:
        yield from _items(_read(self._folder / LASTING))
        for path in self._days():
            yield from reversed(_items(_read(path)))

    def _days(self) -> list[Path]:
        """The files of the latest days, the latest first."""
        folder = self._folder / DAYS
        try:
            there = [] if folder.is_symlink() else [path.name for path in folder.iterdir()]
        except OSError:
            return []
        names = sorted(filter(_DAY.fullmatch, there), reverse=True)
        return [folder / name for name in names[:MOST_DAYS]]

    def _append(self, path: Path, item: str, mark: str, *, title: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.is_symlink():
            raise ResourceError(f"{path.parent} is a link and is not followed; remove it.")
        with os.fdopen(os.open(path, _NEW, 0o644), "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed; another run may note as well
            there = file.read()
            if mark.encode() in there:
                return
            # What a full disk tore off, or an editor left, gets its line end.
            start = b"" if there.endswith(b"\n") else b"\n" if there else f"# {title}\n\n".encode()
            _write(file.fileno(), start + item.encode())
            os.fsync(file.fileno())


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _item(entry: str, sources: Sequence[str], mark: str) -> str:
    lines = [line.strip() for line in entry.strip()[:_LONGEST].splitlines() if line.strip()]
    text = "\n  ".join(lines)
    told = "".join(f"\n  - {' '.join(source.split())[:_LONGEST]}" for source in sources)
    return f"- {text} {mark}{told}\n"


def _items(text: str) -> list[str]:
    """The entries of a file: its list items, without marks and headings."""
    found = []
    for item in _ITEM.split(text)[1:]:
        kept = [line for line in item.splitlines() if line.strip() and not line.startswith("#")]
        plain = _MARK.sub("", "\n".join(kept)).strip()
        if plain:
            found.append(plain)
    return found


def _read(path: Path) -> str:
    """The beginning of a file; nothing where there is none, or something else of its name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON
