"""Files of ours in a folder of an agent: private configuration, a lent login, a prompt, an image.

An agent has had this folder to itself in earlier turns: a link that it planted must not lead our
writing out of it, and a folder that it closed must not keep us out.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.trees import remove_entry

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WHATEVER = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER = 0o700
_NOT_OURS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""What is said of a way on which there is nothing, a file or a link."""


def write_private(home: Path, files: Mapping[str, str]) -> None:
    """Write files below HOME, for its owner's eyes only; nothing outside is touched."""
    for name, content in files.items():
        place_private(home, name, io.BytesIO(content.encode("utf-8", "replace")))


def place_private(home: Path, name: str, content: BinaryIO) -> None:
    """Write one file below HOME, in the same way."""
    try:
        _write(home, PurePosixPath(name), content)
    except OSError as error:
        raise SandboxError(
            f"{name} could not be written to {home.name}/ of the agent: {error.strerror}"
        ) from error


def _write(home: Path, name: PurePosixPath, content: BinaryIO) -> None:
    folder = _opened(home)
    try:
        for part in name.parts[:-1]:
            folder = _entered(folder, part)
        remove_entry(folder, name.name)
        file = os.open(name.name, _FRESH, 0o600, dir_fd=folder)
        with os.fdopen(file, "wb") as opened:
            shutil.copyfileobj(content, opened)
    finally:
        os.close(folder)


def _opened(name: Path | str, folder: int | None = None) -> int:
    """Open a folder and no link, with every right to it, also where its agent has closed it."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        os.chmod(name, _OWNER, dir_fd=folder)
        opened = os.open(name, _FOLDER, dir_fd=folder)
    mode = stat.S_IMODE(os.fstat(opened).st_mode)
    if mode & _OWNER != _OWNER:
        os.fchmod(opened, mode | _OWNER)
    return opened


def _entered(folder: int, part: str) -> int:
    """Go one folder down; whatever else has this name makes room for it."""
    try:
        below = _opened(part, folder)
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        remove_entry(folder, part)
        os.mkdir(part, _OWNER, dir_fd=folder)
        below = _opened(part, folder)
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
        file = os.open(path.name, _WHATEVER, dir_fd=folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        with os.fdopen(file, "rb", closefd=False) as opened:
            content = opened.read(most + 1)
    finally:
        os.close(file)
    return content if len(content) <= most else None


def clear_private(home: Path, name: str) -> None:
    """Remove a file below HOME, whatever it is by now."""
    path = PurePosixPath(name)
    try:
        folder = _reached(home, path)
        try:
            remove_entry(folder, path.name)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise SandboxError(
                f"{name} could not be removed from {home.name}/ of the agent: {error.strerror}"
            ) from error


def _reached(home: Path, name: PurePosixPath) -> int:
    """Go down to the folder of a file, through no link."""
    folder = _opened(home)
    for part in name.parts[:-1]:
        try:
            below = _opened(part, folder)
        finally:
            os.close(folder)
        folder = below
    return folder
