"""A workspace as a crash would leave it, before and after every commit of its store.

The copy is made by the thread that writes, at a moment when nobody changes a file: what is in it is
what a machine would find that lost its power just then. Before a commit, what led to it has
happened and nobody knows; after it, it is known and nothing has come of it yet.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.store.writer import Writer


class Side(StrEnum):
    """Which side of a commit."""

    BEFORE = "before"
    AFTER = "after"


Moment = tuple[int, Side]
"""The number of a commit, and a side of it."""


class Snapshots:
    """Copies of one workspace, one for each moment, or for those of ``only``.

    The moments at which something has landed and no record says so are always among them.
    """

    def __init__(self, root: Path, folder: Path, only: Collection[Moment] | None = None) -> None:
        self._root = root
        self._folder = folder
        self._only = only
        self._commits = 0
        self._landed = 0
        self.taken: list[Path] = []

    @contextmanager
    def around_every_commit(self) -> Iterator[None]:
        """Copy the workspace before and after each commit that is made inside the block."""
        write = Writer._write

        def written(writer: Writer, steps: list[Any]) -> None:
            self._commits += 1
            self._take((self._commits, Side.BEFORE))
            write(writer, steps)
            self._take((self._commits, Side.AFTER))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Writer, "_write", written)
            yield

    def put_back(self, snapshot: Path) -> None:
        """Let the workspace be as it was then."""
        shutil.rmtree(self._root)
        shutil.copytree(snapshot, self._root, symlinks=True)

    def _take(self, moment: Moment) -> None:
        known, self._landed = self._landed, self._count_landings()
        if self._only is not None and moment not in self._only and known == self._landed:
            return
        number, side = moment
        target = self._folder / f"{number:03}-{side}"
        while True:
            before = _files(self._root)
            try:
                shutil.copytree(self._root, target, symlinks=True)
            except (OSError, shutil.Error):
                pass  # something went away meanwhile
            else:
                if _files(self._root) == before:
                    break
            shutil.rmtree(target, ignore_errors=True)
        self.taken.append(target)

    def _count_landings(self) -> int:
        return sum(1 for _ in (self._root / ".agentcanvas" / "apply").glob("*/journal.json"))


def _files(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for folder, _, names in os.walk(root):
        for name in (".", *names):
            path = os.path.join(folder, name)  # noqa: PTH118 - thousands of times
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found
