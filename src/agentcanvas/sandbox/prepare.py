"""Sandboxes: input/ to compare with, work/ to work in, proposal/ to hand in (S1, S3).

A sandbox stands on one generation. Its input/ shares the frozen files, its work/ is a copy of its
own. What runs in it is left to ``process``, what it changed to ``diff``.
"""

# ruff: noqa: PTH108 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.sandbox.generation import Generation, load_generation
from agentcanvas.sandbox.manifest import Manifest, entries_of, newest_change, settle, stamp_of
from agentcanvas.sandbox.paths import (
    SandboxPaths,
    claim_sandbox_paths,
    get_sandbox_paths,
    shown,
    workspace_relative,
)
from agentcanvas.sandbox.trees import (
    copy_file,
    in_parallel,
    link_or_copy,
    make_folders,
    remove_path,
    working_mode,
)


class _Record(msgspec.Struct, frozen=True):
    """A sandbox as it is kept on disk; with it a restart finds the changes of a cut-off turn."""

    base: int
    filled: dict[bytes, tuple[int, int, int, int, int]]


@dataclass(frozen=True)
class Sandbox:
    """A prepared sandbox; ``filled`` are the stamps of work/ right after it was filled."""

    paths: SandboxPaths
    base: Generation
    filled: Manifest

    @property
    def work_dir(self) -> Path:
        """Where the agent works."""
        return self.paths.work_dir


async def prepare_sandbox(
    base: Generation, agent_id: str, files: Sequence[str | bytes] | None = None
) -> Sandbox:
    """Make the sandbox of an agent on a generation, in that generation's workspace and run.

    ``files`` names files or folders of the workspace; without it, all of the generation. One that
    is there already is not touched: find it with ``open_sandbox``, or take it back with
    ``restore_work``.
    """
    return await anyio.to_thread.run_sync(partial(_prepare, base, agent_id, files))


async def open_sandbox(workspace: Path, run_id: str, agent_id: str) -> Sandbox:
    """Find a sandbox again that was prepared before, perhaps by a process that is gone."""
    paths = get_sandbox_paths(workspace, run_id, agent_id)
    try:
        record = msgspec.msgpack.decode(await _bytes_of(paths.record), type=_Record)
    except (OSError, msgspec.DecodeError) as error:
        raise SandboxError(f"Agent '{agent_id}' has no sandbox in {run_id}: {error}") from error
    base = await load_generation(workspace, run_id, record.base)
    return Sandbox(paths, base, record.filled)


async def restore_work(sandbox: Sandbox, base: Generation | None = None) -> Sandbox:
    """Bring work/ back to its base, or on to another; costs what differs, not the tree (D15, D18).

    The agent's processes must be gone.
    """
    return await anyio.to_thread.run_sync(partial(_restore, sandbox, base or sandbox.base))


async def copy_generation(base: Generation, target: Path) -> Manifest:
    """Fill a new folder with the files of a generation, writable; gives their stamps."""
    return await anyio.to_thread.run_sync(partial(_fill, base, sorted(base.seen), target))


async def discard_sandbox(paths: SandboxPaths) -> None:
    """Remove everything but proposal/ (D15)."""
    for folder in (paths.record, paths.work_dir, paths.input_dir, paths.tmp_dir, paths.home_dir):
        await anyio.to_thread.run_sync(remove_path, folder)


async def _bytes_of(path: Path) -> bytes:
    return await anyio.Path(path).read_bytes()


def _prepare(base: Generation, agent_id: str, files: Sequence[str | bytes] | None) -> Sandbox:
    chosen = sorted(base.seen) if files is None else _named(base, files)
    paths = claim_sandbox_paths(base.workspace, base.run_id, agent_id)
    if paths.record.exists():
        raise SandboxError(
            f"Agent '{agent_id}' has a sandbox in {base.run_id} already; open it or restore it"
        )
    try:
        for half_made in (paths.input_dir, paths.work_dir):
            remove_path(half_made)
        for folder in (paths.proposal_dir, paths.home_dir, paths.tmp_dir):
            folder.mkdir(exist_ok=True)
        _link_input(base, chosen, paths.input_dir)
        filled = _fill(base, chosen, paths.work_dir)
        # From here on every edit in work/ shows in a ctime.
        settle(paths.root, newest_change(filled.values()))
        return _recorded(Sandbox(paths, base, filled))
    except OSError as error:
        raise SandboxError(f"The sandbox of '{agent_id}' could not be made: {error}") from error


def _named(base: Generation, files: Sequence[str | bytes]) -> list[bytes]:
    """Resolve names of files and folders to the files of the generation."""
    chosen: set[bytes] = set()
    for name in files:
        path = workspace_relative(name)
        below = [path] if path in base.seen else []
        below += [known for known in base.seen if known.startswith(path + b"/")]
        if not below:
            raise PathRefused(
                f"'{shown(path)}' is not in {base.name}: it does not exist or git ignores it; "
                "check the name, or include it when the generation is taken"
            )
        chosen.update(below)
    return sorted(chosen)


def _link_input(base: Generation, paths: Sequence[bytes], target: Path) -> None:
    source, folder = os.fsencode(base.tree) + b"/", os.fsencode(target) + b"/"
    make_folders(folder[:-1], paths)
    in_parallel(lambda path: link_or_copy(source + path, folder + path), paths)


def _fill(base: Generation, paths: Sequence[bytes], target: Path) -> Manifest:
    source, folder = os.fsencode(base.tree) + b"/", os.fsencode(target) + b"/"
    seen = base.seen
    make_folders(folder[:-1], paths)
    stamps = in_parallel(
        lambda path: copy_file(
            source + path, folder + path, seen[path], working_mode(seen[path][0])
        ),
        paths,
    )
    return dict(zip(paths, stamps, strict=True))


def _recorded(sandbox: Sandbox) -> Sandbox:
    base = sandbox.base
    record = msgspec.msgpack.encode(_Record(base.number, sandbox.filled))
    growing = sandbox.paths.record.with_suffix(".growing")
    growing.write_bytes(record)
    growing.rename(sandbox.paths.record)
    return sandbox


def _restore(sandbox: Sandbox, base: Generation) -> Sandbox:
    """Sweep out what does not belong, replace what was touched or is otherwise in the new base."""
    whole = len(sandbox.filled) == len(sandbox.base.seen)
    wanted = set(base.seen) if whole else set(base.seen) & set(sandbox.filled)
    work = os.fsencode(sandbox.work_dir) + b"/"
    sandbox.paths.record.unlink(missing_ok=True)  # until it is whole again
    left = _swept(work, wanted)
    filled = {path: stamp for path, stamp in left.items() if sandbox.filled.get(path) == stamp}
    if base is not sandbox.base:
        same = partial(_same_frozen_file, sandbox.base, base)
        filled = {path: stamp for path, stamp in filled.items() if same(path)}
    for path in left.keys() - filled.keys():
        os.unlink(work + path)
    filled |= _fill(base, sorted(wanted - filled.keys()), sandbox.work_dir)
    if base is not sandbox.base:
        remove_path(sandbox.paths.input_dir)
        _link_input(base, sorted(filled), sandbox.paths.input_dir)
    settle(sandbox.paths.root, newest_change(filled.values()))
    return _recorded(replace(sandbox, base=base, filled=filled))


def _swept(work: bytes, wanted: Set[bytes]) -> Manifest:
    """Remove everything but the wanted files and the private git; gives the stamps of the rest."""
    folders = {path[:end] for path in wanted for end in _slashes(path)}
    stamps: Manifest = {}
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        for entry in list(entries_of(work + folder)):
            path = folder + os.fsencode(entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if path in folders and is_folder:
                waiting.append(path + b"/")
            elif path in wanted and not is_folder:
                stamps[path] = stamp_of(os.lstat(work + path))
            elif path != b".git":
                remove_path(Path(os.fsdecode(work + path)))
    return stamps


def _slashes(path: bytes) -> Iterator[int]:
    end = path.find(b"/")
    while end > 0:
        yield end
        end = path.find(b"/", end + 1)


def _same_frozen_file(one: Generation, other: Generation, path: bytes) -> bool:
    """Generations share the files that did not change: the same inode is the same content."""
    if path not in one.seen:
        return False
    left = os.lstat(os.fsencode(one.tree) + b"/" + path)
    right = os.lstat(os.fsencode(other.tree) + b"/" + path)
    same_mode = one.seen[path][0] == other.seen[path][0]
    return same_mode and (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino)
