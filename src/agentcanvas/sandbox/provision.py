"""How a tree comes to its dependencies: mounted at their own place, linked, or copied (D9).

Mounted read-only where the confinement can mount: that costs nothing, and with the tree at the
workspace's own path an editable install leads to the tree's code. Linked where it cannot mount but
keeps processes from writing through the link. Copied where neither holds, or where programs have to
write into them, if that is cheap. What is left out is said. Nothing of it enters a patch.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import Bind, Confinement, View
from agentcanvas.sandbox.dependencies import Dependency, Use, leads_back
from agentcanvas.sandbox.generation import Generation, told
from agentcanvas.sandbox.paths import shown
from agentcanvas.sandbox.toolchains import interpreter_folders
from agentcanvas.sandbox.trees import copy_tree, remove_path, shares_blocks

CHEAP_FILES = 20_000
CHEAP_BYTES = 64 * 1024 * 1024
"""What may be copied for every tree; where copies share their blocks, only the files count."""

_IN_THE_WAY = "something else has taken the place of its folder"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Provided:
    """What the view of a tree needs besides, a sentence for what the tree does not have.

    ``unsound`` says why a green check in it may have tested other code than the tree's (D9).
    """

    binds: tuple[Bind, ...] = ()
    notes: tuple[str, ...] = ()
    unsound: str = ""


async def provide(base: Generation, tree: Path, confinement: Confinement) -> Provided:
    """Give a work/ or a copy of ``base`` what lies beside the base; harmless to repeat.

    The agent's processes must be gone. To be called after the tree was filled or taken back.
    """
    return await anyio.to_thread.run_sync(partial(_provide, base, tree, confinement))


async def provide_reading(base: Generation, confinement: Confinement) -> Provided:
    """Give a read-only view of ``base`` what can be mounted; nothing is copied or linked there."""
    return await anyio.to_thread.run_sync(partial(_provide_reading, base, confinement))


def _provide(base: Generation, tree: Path, confinement: Confinement) -> Provided:
    way = _Way(base, tree, confinement)
    try:
        for each in base.beside:
            way.bring(each)
    except OSError as error:
        raise SandboxError(f"The dependencies could not be brought: {told(error)}") from error
    return way.provided()


def _provide_reading(base: Generation, confinement: Confinement) -> Provided:
    way = _Way(base, base.tree, confinement)
    for each in base.beside:
        if way.can_mount:
            way.mount(each)
        else:
            way.leave_out(each, f"{confinement.name} cannot mount it")
    return way.provided()


class _Way:
    """One tree under one confinement, and what was found for it so far."""

    def __init__(self, base: Generation, tree: Path, confinement: Confinement) -> None:
        self._base = base
        self._tree = tree
        self._confinement = confinement
        seen_at = confinement.places(View(base.workspace, tree, tree, tree)).tree
        self.can_mount = seen_at == base.workspace
        self._guards = confinement.name != "unconfined"
        self._binds: list[Bind] = []
        self._notes: list[str] = []
        self._led_through: list[Dependency] = []

    def provided(self) -> Provided:
        """Give what was found."""
        unsound = ""
        if not self.can_mount and (way := leads_back(self._base.workspace, self._led_through)):
            unsound = f"{way}, and {self._confinement.name} cannot put the copy in its place"
        return Provided(tuple(dict.fromkeys(self._binds)), tuple(self._notes), unsound)

    def bring(self, each: Dependency) -> None:
        """Choose the cheapest way that keeps the user's own folder as it is."""
        if not os.path.lexists(each.source):
            self.leave_out(each, "it is gone since the base was taken")
        elif each.use is Use.OWN:
            self._copy(each)
        elif each.use is Use.READ and self.can_mount:
            self.mount(each)
        elif each.use is Use.READ and self._guards:
            self._link(each)
        elif _is_cheap(each, self._tree):
            self._copy(each)
        else:
            self.leave_out(each, "too much to copy for every sandbox; make it with a setup command")

    def mount(self, each: Dependency) -> None:
        """Have it mounted on an empty folder."""
        with _place_for(self._tree, each.path) as place:
            if place is None:
                self.leave_out(each, _IN_THE_WAY)
                return
            folder, name = place
            _clear_link(folder, name)
            if not _exists(folder, name):
                os.mkdir(name, dir_fd=folder)
            elif not _is_folder(folder, name):
                self.leave_out(each, "a file has taken its place")
                return
        self._binds.append(Bind(each.origin, self._base.workspace / os.fsdecode(each.path)))
        self._open_interpreter(each)

    def leave_out(self, each: Dependency, reason: str) -> None:
        """Say why a tree does not have it."""
        self._notes.append(f"{shown(each.path)} is left out: {reason}")

    def _link(self, each: Dependency) -> None:
        with _place_for(self._tree, each.path) as place:
            if place is None:
                self.leave_out(each, _IN_THE_WAY)
                return
            folder, name = place
            _clear_link(folder, name)
            if _exists(folder, name):
                self.leave_out(each, "something has taken its place")
                return
            os.symlink(each.origin, name, dir_fd=folder)
        self._binds.append(Bind(each.origin, each.origin))
        self._open_interpreter(each)

    def _copy(self, each: Dependency) -> None:
        """Copy beside the tree and move in, so that half a copy is never seen."""
        with _place_for(self._tree, each.path) as place:
            if place is None:
                self.leave_out(each, _IN_THE_WAY)
                return
            folder, name = place
            if not _exists(folder, name):
                growing = Path(tempfile.mkdtemp(prefix="copy-", dir=self._tree.parent))
                try:
                    copy_tree(each.origin, growing / "copy")
                    os.rename(growing / "copy", name, dst_dir_fd=folder)
                finally:
                    remove_path(growing)
        self._open_interpreter(each)

    def _open_interpreter(self, each: Dependency) -> None:
        self._led_through.append(each)
        for path in interpreter_folders(each.origin, self._base.workspace):
            self._binds.append(Bind(path, path))


@contextmanager
def _place_for(tree: Path, path: bytes) -> Iterator[tuple[int, str] | None]:
    """Open the folder that a path is in, without following a link that an agent has put there."""
    *folders, name = os.fsdecode(path).split("/")
    opened = os.open(tree, _FOLDER)
    try:
        for folder in folders:
            if not _exists(opened, folder):
                os.mkdir(folder, dir_fd=opened)
            try:
                deeper = os.open(folder, _FOLDER, dir_fd=opened)
            except OSError:
                yield None
                return
            os.close(opened)
            opened = deeper
        yield opened, name
    finally:
        os.close(opened)


def _exists(folder: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)


def _clear_link(folder: int, name: str) -> None:
    """Take away a link of an earlier turn, or one that an agent has put there."""
    if _exists(folder, name) and stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
        os.unlink(name, dir_fd=folder)


def _is_cheap(each: Dependency, tree: Path) -> bool:
    """Count until it is too much."""
    files = size = 0
    most_bytes = CHEAP_BYTES if not shares_blocks(tree) else None
    waiting = [str(each.origin)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                        files += 1
        except OSError:
            continue  # gone meanwhile, or closed to us
        if files > CHEAP_FILES or (most_bytes is not None and size > most_bytes):
            return False
    return True
