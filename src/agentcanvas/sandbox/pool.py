"""The pool: trees of sandboxes that are over, waiting to be the trees of new ones (D15).

Making a tree costs a copy of every file; bringing one that is there up to date costs what differs.
Each entry is a folder that holds a work/, its input/ and what is known about them. It appears and
disappears by one rename, so that two never have the same, and half of one is none. When a sandbox
may be given up is the caller's matter.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agentcanvas.sandbox.filling import Contents
from agentcanvas.sandbox.manifest import Manifest, packed, unpacked
from agentcanvas.sandbox.paths import SandboxPaths, own_folder
from agentcanvas.sandbox.trees import remove_path

MOST_TREES = 4
"""As many as agents usually work at once; more would only keep the disk full."""

_RECORD = "tree.msgpack"
_GROWING = ".growing-"


class _Record(msgspec.Struct, frozen=True):
    """What is known, as it is kept on disk: names, and for each of them in order the rest."""

    paths: bytes
    filled: bytes
    came_from: bytes
    folders: tuple[bytes, bytes]
    input_folders: tuple[bytes, bytes]


@dataclass(frozen=True)
class Pooled:
    """What is known about trees: what was put into them, from what, and where input/ is sound."""

    contents: Contents
    came_from: Manifest
    input_folders: Manifest


def pool_folder(workspace: Path) -> Path:
    """Where the pool of a workspace is."""
    return own_folder(workspace, "pool")


def pooled_trees(workspace: Path) -> list[Path]:
    """List the whole entries, the newest first."""
    folder = pool_folder(workspace)
    names = list(folder.iterdir()) if folder.is_dir() else []
    whole = [path for path in names if not path.name.startswith(".")]
    return sorted(whole, key=_age, reverse=True)


def _age(entry: Path) -> int:
    try:
        return (entry / _RECORD).stat().st_mtime_ns
    except OSError:
        return 0  # taken by somebody else just now


def put_into_pool(
    workspace: Path, paths: SandboxPaths, pooled: Pooled, *, most: int = MOST_TREES
) -> bool:
    """Move the trees of a sandbox into the pool; False when it is full.

    The record of the sandbox has to be gone by now: what is half moved must not look whole.
    """
    if len(pooled_trees(workspace)) >= most:
        return False
    folder = pool_folder(workspace)
    folder.mkdir(parents=True, exist_ok=True)
    name = secrets.token_hex(8)
    growing = folder / f"{_GROWING}{name}"
    growing.mkdir()
    paths.work_dir.rename(growing / "work")
    paths.input_dir.rename(growing / "input")
    (growing / _RECORD).write_bytes(_encoded(pooled))
    growing.rename(folder / name)
    return True


def take_from_pool(workspace: Path, paths: SandboxPaths) -> Pooled | None:
    """Move the newest trees into a sandbox that has none; None when the pool has nothing to give.

    A crash in between leaves a sandbox without a record, which is made anew.
    """
    claimed = paths.root / ".recycled"
    remove_path(claimed)
    for entry in pooled_trees(workspace):
        try:
            entry.rename(claimed)
        except FileNotFoundError:
            continue  # somebody else was first
        try:
            pooled = _decoded((claimed / _RECORD).read_bytes())
            (claimed / "work").rename(paths.work_dir)
            (claimed / "input").rename(paths.input_dir)
        except (OSError, ValueError):  # msgspec's errors are ValueErrors
            _drop(paths, claimed)
            continue
        remove_path(claimed)
        return pooled
    return None


def _encoded(pooled: Pooled) -> bytes:
    contents = pooled.contents
    paths = list(contents.files)
    record = _Record(
        _joined(paths),
        packed(contents.files, paths),
        packed(pooled.came_from, paths),
        _with_names(contents.folders),
        _with_names(pooled.input_folders),
    )
    return msgspec.msgpack.encode(record)


def _decoded(data: bytes) -> Pooled:
    record = msgspec.msgpack.decode(data, type=_Record)
    paths = _parted(record.paths)
    folders, input_folders = (
        unpacked(stamps, _parted(names)) for names, stamps in (record.folders, record.input_folders)
    )
    filled, came_from = unpacked(record.filled, paths), unpacked(record.came_from, paths)
    return Pooled(Contents(filled, folders), came_from, input_folders)


def _with_names(manifest: Manifest) -> tuple[bytes, bytes]:
    return _joined(manifest), packed(manifest, manifest)


def _joined(names: Iterable[bytes]) -> bytes:
    return b"\0".join(names)


def _parted(names: bytes) -> list[bytes]:
    return names.split(b"\0") if names else []


def _drop(paths: SandboxPaths, claimed: Path) -> None:
    for path in (claimed, paths.work_dir, paths.input_dir):
        remove_path(path)


def leftovers(workspace: Path) -> Iterator[Path]:
    """Find entries that were never finished."""
    folder = pool_folder(workspace)
    if folder.is_dir():
        names = os.listdir(folder)  # noqa: PTH208 -- names only
        yield from (folder / name for name in names if name.startswith(_GROWING))
