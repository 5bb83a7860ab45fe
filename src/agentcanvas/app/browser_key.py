"""The secret that browsers' passes are signed with: kept beside the store, for this user only."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

NAME = "browser.key"
_BYTES = 32
_PRIVATE = 0o600


def browser_key(folder: Path) -> bytes:
    """The folder's secret; a new one where there is none, or others could have read it.

    Where nothing can be kept the secret is good for this life of the server only.
    """
    path = folder / NAME
    kept = _read(path)
    if kept is not None:
        return kept
    fresh = secrets.token_bytes(_BYTES)
    with suppress(OSError):
        _write(path, fresh)
    return fresh


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        is_private = os.name == "nt" or not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        is_ours = os.name == "nt" or found.st_uid == os.geteuid()
        content = os.read(descriptor, _BYTES + 1)
    except OSError:  # it is no file
        return None
    finally:
        os.close(descriptor)
    return content if is_private and is_ours and len(content) == _BYTES else None


def _write(path: Path, content: bytes) -> None:
    descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{NAME}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _PRIVATE)
            file.write(content)
        Path(made).replace(path)
    except OSError:
        Path(made).unlink(missing_ok=True)
        raise
