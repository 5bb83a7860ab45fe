"""Which files of a workspace make up a base: git's own list, or a walk where there is no git (D7).

Uncommitted and untracked files belong to it, ignored ones and the internal folders do not (S3).
Copying them is left to ``generation``.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.sandbox import git
from agentcanvas.sandbox.manifest import Manifest, is_patchable, stamp_of
from agentcanvas.sandbox.paths import (
    INTERNAL_ANYWHERE,
    INTERNAL_AT_TOP,
    internal_folder,
    shown,
    workspace_relative,
)


@dataclass(frozen=True)
class Repository:
    """The user's repository around a workspace, as it was when the base was taken."""

    head: str | None
    branch: str | None
    git_dir: Path
    objects: Path
    prefix: str
    """Where the workspace is inside the repository; empty when it is the top."""


@dataclass(frozen=True)
class Selection:
    """The chosen files with their stamps, and a sentence for everything that was left out."""

    stamps: Manifest
    repository: Repository | None
    notes: tuple[str, ...]


def select(workspace: Path, include: Sequence[str | bytes] = ()) -> Selection:
    """Choose the files of a workspace; ``include`` adds ignored ones by name."""
    repository = find_repository(workspace)
    notes: list[str] = []
    listed = _listed_by_git(workspace) if repository else _walked(workspace, notes)
    wanted = _without_internal(listed, notes)
    named = [workspace_relative(path) for path in include]
    stamps = _stamped(workspace, dict.fromkeys([*wanted, *named]), notes)
    for path in named:
        if path not in stamps:
            raise PathRefused(f"'{shown(path)}' is not a file of the workspace; check its name")
    return Selection(stamps, repository, tuple(notes))


def find_repository(workspace: Path) -> Repository | None:
    """Find the repository that the workspace belongs to, if there is one that tracks it."""
    found = git.asked(
        ["rev-parse", "--show-prefix", "--absolute-git-dir", "--git-path", "objects"], workspace
    )
    if found.returncode:
        if (workspace / ".git").exists():
            raise SandboxError(f"git cannot read this repository: {git.complaint(found)}")
        return None
    prefix, git_dir, objects = found.stdout.decode("utf-8", "surrogateescape").split("\n")[:3]
    if prefix and git.asked(["check-ignore", "-q", "."], workspace).returncode == 0:
        return None  # somebody else's repository lies around it, and ignores it
    head = git.answer(["rev-parse", "--verify", "-q", "HEAD^{commit}"], workspace)
    branch = git.answer(["symbolic-ref", "-q", "HEAD"], workspace)
    return Repository(
        head=head.decode() if head else None,
        branch=os.fsdecode(branch) if branch else None,
        git_dir=Path(git_dir),
        objects=(workspace / objects).resolve(),
        prefix=prefix,
    )


def _listed_by_git(workspace: Path) -> list[bytes]:
    done = git.asked(["ls-files", "-z", "-c", "-o", "--exclude-standard"], workspace)
    if done.returncode:
        raise SandboxError(f"git cannot list the workspace: {git.complaint(done)}")
    return [path for path in done.stdout.split(b"\0") if path]


def _walked(workspace: Path, notes: list[str]) -> list[bytes]:
    base = os.fsencode(workspace)
    waiting, found = [b""], []
    while waiting:
        folder = waiting.pop()
        left_out = INTERNAL_ANYWHERE if folder else INTERNAL_AT_TOP
        try:
            with os.scandir(base + b"/" + folder) as entries:
                for entry in entries:
                    if entry.name in left_out:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(folder + entry.name + b"/")
                    else:
                        found.append(folder + entry.name)
        except PermissionError:
            notes.append(f"{shown(folder)} is left out: it cannot be read")
    return found


def _without_internal(paths: Iterable[bytes], notes: list[str]) -> list[bytes]:
    kept, dropped = [], Counter[str]()
    for path in paths:
        # Most paths hold none of the letters; asking them alone keeps large trees fast.
        folder = internal_folder(path) if _may_be_internal(path) else None
        if folder:
            dropped[folder] += 1
        else:
            kept.append(path)
    notes += [f"{folder}/ is left out: internal ({n} files)" for folder, n in dropped.items()]
    return kept


def _may_be_internal(path: bytes) -> bool:
    folded = path.lower()
    return (
        b"git" in folded
        or b".agentcanvas" in folded
        or b"node_modules" in folded
        or folded.startswith(b"dist")
        or not path.isascii()
    )


def _stamped(workspace: Path, paths: Iterable[bytes], notes: list[str]) -> Manifest:
    base = os.fsencode(workspace) + b"/"
    folders: dict[bytes, bool] = {b"": True}
    stamps: Manifest = {}
    for path in paths:
        parent = path.rpartition(b"/")[0]
        if not _is_real_folder(base, parent, folders):
            continue
        try:
            status = os.lstat(base + path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted by the user, not committed yet
        if is_patchable(status.st_mode):
            stamps[path] = stamp_of(status)
        elif stat.S_ISDIR(status.st_mode):
            notes.append(f"{shown(path)} is left out: a repository of its own (submodule)")
        else:
            notes.append(f"{shown(path)} is left out: neither a file nor a link")
    return stamps


def _is_real_folder(base: bytes, folder: bytes, known: dict[bytes, bool]) -> bool:
    """Refuse paths that git still lists below a folder which has become a link to elsewhere."""
    real = known.get(folder)
    if real is None:
        parent = folder.rpartition(b"/")[0]
        try:
            real = stat.S_ISDIR(os.lstat(base + folder).st_mode)
        except OSError:
            real = False
        real = real and _is_real_folder(base, parent, known)
        known[folder] = real
    return real
