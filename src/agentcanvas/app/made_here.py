"""What only AgentCanvas makes in a workspace's folder, and how such a thing is told from a gift.

Records, keys, sandboxes and the journals of applies are believed, followed and cleaned away because
they were made here. A repository that brings its own would be obeyed like the user, and a link in
the place of a folder would have the files behind it removed. So neither is ever used.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentcanvas.errors import ResourceError, SandboxError
from agentcanvas.sandbox import git

_FOLDER: Final = ".agentcanvas"
_STORE: Final = "agentcanvas.db"  # with what SQLite, locks and back-ups put beside it
_MADE: Final = frozenset(
    {"apply", "blobs", "generations", "logs", "pool", "proposals", "runs", "sandboxes", "trash"}
    | {"browser.key", "server.json", "server.lock"}
)


def refuse_gifts(root: Path) -> None:
    """Raise if something that only AgentCanvas makes is a link, or is tracked by git."""
    folder = root / _FOLDER
    made = [name for name in _names(folder) if _is_made(name)]
    for name in made:
        if (folder / name).is_symlink():
            raise ResourceError(
                f"{folder / name} is a link, and what AgentCanvas makes must lie in the workspace "
                "itself. If you did not make the link, somebody else wanted you to follow it. "
                "Remove it."
            )
    if made and (gift := _tracked(root)):
        raise ResourceError(
            f"git tracks {gift}, which only AgentCanvas itself makes, so it may have come with the "
            f"repository, and nothing of it is used. Remove it: git rm -r {gift}"
        )


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 -- names only
    except OSError:
        return []


def _is_made(name: str) -> bool:
    plain = name.casefold()
    return plain in _MADE or plain.startswith(_STORE)


def _tracked(root: Path) -> str:
    """The first such thing that git tracks; also the folder itself, as a submodule.

    In whatever letters: on some disks ``.AgentCanvas`` is the same folder.
    """
    with suppress(SandboxError):  # no git, no gifts by it
        told = git.asked(["ls-files", "-z", "--", f":(icase){_FOLDER}"], root).stdout
        for path in told.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            folder, _, below = path.partition("/")
            name = below.partition("/")[0]
            if not name or _is_made(name):
                return f"{folder}/{name}".rstrip("/")
    return ""
