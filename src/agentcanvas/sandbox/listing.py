"""What is in a workspace: git's own list, or a walk where there is no git.

Repositories inside the workspace - submodules, and others that lie there - are asked for their own
lists. Which of the listed files make up a base is decided in ``selection``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox import git
from agentcanvas.sandbox.dependencies import FIRST_NAMES, is_dependency_folder
from agentcanvas.sandbox.notes import Notes
from agentcanvas.sandbox.paths import INTERNAL_ANYWHERE, INTERNAL_AT_TOP, shown


@dataclass
class Listing:
    """Paths relative to the workspace, in the order they were found."""

    tracked: list[bytes] = field(default_factory=list)
    untracked: list[bytes] = field(default_factory=list)
    not_checked_out: int = 0


def listed_by_git(folder: Path, prefix: bytes = b"") -> Listing:
    """Ask git for what it tracks and for what it neither tracks nor ignores.

    What a sparse checkout leaves out is counted, and is not a file of the workspace.
    """
    done = git.asked(["ls-files", "-z", "-t", "-c", "-o", "--exclude-standard"], folder)
    if done.returncode:
        raise SandboxError(f"git cannot list {folder}: {git.complaint(done)}")
    listing = Listing()
    for line in done.stdout.split(b"\0"):
        tag, path = line[:2], prefix + line[2:]
        if tag == b"? ":
            listing.untracked.append(path)
        elif tag == b"S ":
            listing.not_checked_out += 1
        elif tag:
            listing.tracked.append(path)
    return listing


def listed_in(workspace: Path, folder: bytes, common_dir: Path | None, notes: Notes) -> Listing:
    """List a repository inside the workspace; its files go along, its own git does not."""
    path = folder.rstrip(b"/")
    place = workspace / os.fsdecode(path)
    if not os.path.lexists(place / ".git"):
        if not any(place.iterdir()):
            notes.left_out(path, "a submodule that is not checked out")
        return Listing()  # a file of the repository that has become a folder; listed as such
    if common_dir and _is_worktree_of(place, common_dir):
        notes.left_out(path, "another working tree of this repository")
        return Listing()
    try:
        listing = listed_by_git(place, path + b"/")
    except SandboxError:
        notes.left_out(path, "a repository of its own that git cannot read")
        return Listing()
    notes.say(f"{shown(path)} is a repository of its own: its files go along, its commit does not")
    return listing


def _is_worktree_of(place: Path, common_dir: Path) -> bool:
    """Tell a linked worktree by its .git file, which names the repository it belongs to."""
    try:
        told = (place / ".git").read_text("utf-8", "surrogateescape")
    except OSError:
        return False  # a folder: a repository by itself
    named = Path(place, told.removeprefix("gitdir:").strip()).resolve()
    return named.is_relative_to(common_dir.resolve() / "worktrees")


def walked(workspace: Path, notes: Notes, start: bytes = b"") -> Iterator[bytes]:
    """Walk the folder ``start``; internal and dependency folders are left out."""
    base = os.fsencode(workspace)
    waiting = [start + b"/" if start else b""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(base + b"/" + folder) as entries:
                found = list(entries)
        except PermissionError:
            notes.left_out(folder.rstrip(b"/"), "it cannot be read")
            continue
        except (FileNotFoundError, NotADirectoryError):
            continue  # it went away since its parent was read
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            notes.left_out(folder[:60] + b"...", "its path is too long")
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if not _is_left_out(base, folder, entry.name):
                    waiting.append(folder + entry.name + b"/")
            elif entry.name not in (INTERNAL_ANYWHERE if folder else INTERNAL_AT_TOP):
                yield folder + entry.name


def _is_left_out(base: bytes, folder: bytes, name: bytes) -> bool:
    if name in (INTERNAL_ANYWHERE if folder else INTERNAL_AT_TOP):
        return True
    may_be = name in FIRST_NAMES or name == b"bundle"
    return may_be and is_dependency_folder((base + b"/" + folder).rstrip(b"/"), name)
