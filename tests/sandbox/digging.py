"""Making trees deeper than a path can say, one step at a time."""

from __future__ import annotations

import os
from pathlib import Path


def dig(root: Path, depth: int, *, name: str = "d", file: str = "f") -> None:
    """Make ``depth`` folders one inside the other, with a file in each."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=folder)
            deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = deeper
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder))
    finally:
        os.close(folder)
