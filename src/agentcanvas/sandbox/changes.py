"""What differs between a frozen tree and a living one, by content.

Suspects come from stat manifests; here they are compared. Making a patch is left to ``diff``.
"""

# ruff: noqa: PTH115 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import io
import os
import stat
from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

_BLOCK = 1 << 18


class Status(StrEnum):
    """What happened to a file, in the words of proposal.json (S4)."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class Change(msgspec.Struct, frozen=True):
    """One changed file; the path is in bytes, ``paths.shown`` makes text of it."""

    path: bytes
    status: Status


def git_mode(mode: int) -> bytes | None:
    """Give the mode as git keeps it; None for what git does not keep."""
    if stat.S_ISLNK(mode):
        return b"120000"
    if stat.S_ISREG(mode):
        return b"100755" if mode & 0o100 else b"100644"
    return None


@dataclass(frozen=True)
class Side:
    """A tree to compare, and which of its files count."""

    root: Path
    files: Container[bytes]

    def path(self, name: bytes) -> bytes:
        """Give the full path of a file."""
        return os.fsencode(self.root) + b"/" + name

    def look(self, name: bytes) -> os.stat_result | None:
        """Look at a file or link that counts; None for anything else."""
        if name not in self.files:
            return None
        try:
            status = os.lstat(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status if git_mode(status.st_mode) else None


def changes_between(frozen: Side, living: Side, suspects: Iterable[bytes]) -> tuple[Change, ...]:
    """Compare the suspects by content."""
    statuses = ((name, _compared(name, frozen, living)) for name in suspects)
    return tuple(Change(name, status) for name, status in statuses if status)


def _compared(name: bytes, frozen: Side, living: Side) -> Status | None:
    before, after = frozen.look(name), living.look(name)
    if before is None or after is None:
        if before is after:
            return None
        return Status.ADDED if before is None else Status.DELETED
    then, now = frozen.path(name), living.path(name)
    kind = git_mode(before.st_mode)
    if kind != git_mode(after.st_mode) or before.st_size != after.st_size:
        return Status.MODIFIED
    same = os.readlink(then) == os.readlink(now) if kind == b"120000" else _same(then, now)
    return None if same else Status.MODIFIED


def _same(one: bytes, other: bytes) -> bool:
    with _reading(one) as left, _reading(other) as right:
        while block := left.read(_BLOCK):
            if block != right.read(_BLOCK):
                return False
        return not right.read(1)


def _reading(path: bytes) -> io.FileIO:
    return io.FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
