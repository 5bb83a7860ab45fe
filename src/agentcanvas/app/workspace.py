"""Where a workspace is, and where it keeps what belongs to AgentCanvas (D42).

What a user keeps for all workspaces together lies outside of them, where no clone brings it (D43).
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentcanvas.app.made_here import refuse_gifts
from agentcanvas.app.too_wide import refuse_no_project
from agentcanvas.errors import ResourceError

FOLDER = ".agentcanvas"

IGNORED: Final = """\
# Made by AgentCanvas, and made again where it is missing. What a team shares is kept in version
# control; the store, sandboxes, logs and this file are not. Your own ignore files are not touched.
/*
!/flows/
!/skills/
!/patterns/
!/prompts/
!/MEMORY.md
!/memory/
!/cassettes/
"""


def find_root(start: Path) -> Path:
    """The nearest parent that is a workspace already, else the git top level, else ``start``."""
    start = start.resolve()
    parents = [start, *start.parents]
    for mark in (FOLDER, ".git"):
        for parent in parents:
            # A worktree and a submodule have a .git file, a repository a folder.
            if (parent / mark).exists():
                return parent
    return start


def store_path(root: Path) -> Path:
    """The one file that holds what must survive (D2)."""
    return store_path_in(root / FOLDER)


def store_path_in(folder: Path) -> Path:
    """The same by the folder that it is in."""
    return folder / "agentcanvas.db"


def ensure_folder(root: Path, *, is_named: bool = False) -> Path:
    """The workspace's own folder, made if need be; git sees only what a team shares of it.

    Harmless to repeat, also by several processes at once. Until there is a store in it, others on
    the machine are kept out of it, also where it came with a repository. An ignore file that is
    there already is the user's and stays as it is. ``is_named`` says that somebody chose this very
    folder, which makes a workspace even of a home folder.
    """
    folder = root / FOLDER
    if not os.path.lexists(folder):
        refuse_no_project(root, os.environ, is_named=is_named)
    try:
        folder.mkdir(exist_ok=True)
        # A link could lead anywhere, and what is trusted must lie in the workspace itself.
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise _in_the_way(folder)
        refuse_gifts(root)
        if not store_path_in(folder).exists():
            # What agents see and say is the user's alone; who opens the folder later has reasons.
            folder.chmod(stat.S_IMODE(folder.lstat().st_mode) & ~0o077)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ResourceError(f"{folder} cannot be written to; {how_to_write(root)}.")
        if not os.path.lexists(folder / ".gitignore"):
            _put_once(folder / ".gitignore", IGNORED.encode())
    except FileExistsError:
        raise _in_the_way(folder) from None
    except OSError as wrong:
        raise unmade(folder, wrong, "work in a folder that you may write to.") from None
    return folder


def unmade(folder: Path, wrong: OSError, otherwise: str) -> ResourceError:
    """Say why a folder for records cannot be made and what to do, which may be ``otherwise``."""
    step = otherwise
    if wrong.errno in (errno.ENOSPC, errno.EDQUOT):
        step = "make room on the disk, then try again; nothing is lost or damaged."
    elif wrong.errno == errno.EROFS:
        step = f"mount the disk for writing, or {otherwise}"
    return ResourceError(
        f"{folder} cannot be made: {wrong.strerror}. AgentCanvas keeps its records there; {step}"
    )


def user_data_folder(environ: Mapping[str, str]) -> Path:
    """Where a user keeps what concerns all workspaces, by the XDG rules."""
    base = environ.get("XDG_DATA_HOME", "")
    if not Path(base).is_absolute():  # the XDG rules say to ignore a relative one
        home = environ.get("HOME", "")
        if not Path(home).is_absolute():
            raise ResourceError(
                "Neither XDG_DATA_HOME nor HOME names a folder, so there is no place for what is "
                "yours; set HOME."
            )
        base = f"{home}/.local/share"
    return Path(base) / "agentcanvas"


def how_to_write(root: Path) -> str:
    """What to do about a folder that is there and cannot be written to."""
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        return "its file system is read-only: mount it for writing, or work on a copy"
    return "give yourself the right to write there"


def _in_the_way(folder: Path) -> ResourceError:
    what = "a link" if folder.is_symlink() else "not a folder"
    return ResourceError(
        f"{folder} is {what}, and AgentCanvas needs a folder of that name; move it away."
    )


def _put_once(path: Path, content: bytes) -> None:
    """The whole file or none, and never in the place of one that came meanwhile."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    fresh = Path(name)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no Path
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        try:
            path.hardlink_to(fresh)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
