"""Writing a CLI's private configuration into its private HOME, and cleaning up its litter.

An agent has had this HOME to itself in earlier turns: a link that it planted must not lead our
writing out of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.trees import remove_entry, remove_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_private(home: Path, files: Mapping[str, str]) -> None:
    """Write files below HOME, for its owner's eyes only; nothing outside is touched."""
    for name, content in files.items():
        try:
            _write(home, PurePosixPath(name), content)
        except OSError as error:
            raise SandboxError(
                f"The private configuration {name} could not be written: {error.strerror}"
            ) from error


def _write(home: Path, name: PurePosixPath, content: str) -> None:
    folder = os.open(home, _FOLDER)
    try:
        for part in name.parts[:-1]:
            folder = _entered(folder, part)
        remove_entry(folder, name.name)
        file = os.open(name.name, _FRESH, 0o600, dir_fd=folder)
        with os.fdopen(file, "w", encoding="utf-8", errors="replace") as opened:
            opened.write(content)
    finally:
        os.close(folder)


def _entered(folder: int, part: str) -> int:
    """Go one folder down; whatever else has this name makes room for it."""
    try:
        below = os.open(part, _FOLDER, dir_fd=folder)
    except OSError:
        remove_entry(folder, part)
        os.mkdir(part, 0o700, dir_fd=folder)
        below = os.open(part, _FOLDER, dir_fd=folder)
    os.close(folder)
    return below


def read_private(home: Path, name: str, most: int) -> bytes | None:
    """A file below HOME, without following a link; None if it is not there as a file."""
    path = PurePosixPath(name)
    try:
        folder = _reached(home, path)
    except OSError:
        return None
    try:
        file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as opened:
        is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
        content = opened.read(most + 1) if is_file else b""
    return content if is_file and len(content) <= most else None


def clear_private(home: Path, name: str) -> None:
    """Remove a file below HOME, whatever it is by now."""
    path = PurePosixPath(name)
    try:
        folder = _reached(home, path)
    except OSError:
        return
    try:
        remove_entry(folder, path.name)
    except OSError as error:
        raise SandboxError(f"{name} could not be removed: {error.strerror}") from error
    finally:
        os.close(folder)


def _reached(home: Path, name: PurePosixPath) -> int:
    """Go down to the folder of a file, through no link."""
    folder = os.open(home, _FOLDER)
    for part in name.parts[:-1]:
        try:
            below = os.open(part, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def sweep(tree: Path, litter: Iterable[str], were_there: frozenset[str]) -> None:
    """Remove what a CLI leaves in the folder it works in, unless it was there before."""
    for name in litter:
        path = tree / name
        if name not in were_there and os.path.lexists(path):
            with suppress(OSError):
                remove_path(path)


def there(tree: Path, litter: Iterable[str]) -> frozenset[str]:
    """Which of these names exist already."""
    return frozenset(name for name in litter if os.path.lexists(tree / name))
