"""Sandboxes: input/ to compare with, work/ to work in, proposal/ to hand in (S1, S3).

A sandbox stands on one generation. Its input/ shares the frozen files, its work/ is a copy of its
own. What runs in it is left to ``process``, what it changed to ``diff``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.sandbox.filling import (
    Contents,
    Renewal,
    fill_sandbox,
    fill_work,
    refill_input,
    refill_work,
    sound_folders,
)
from agentcanvas.sandbox.generation import Generation, load_generation, told
from agentcanvas.sandbox.globs import checked_glob, covered, is_plain
from agentcanvas.sandbox.manifest import Manifest, newest_change, settle
from agentcanvas.sandbox.paths import (
    SandboxPaths,
    claim_sandbox_paths,
    get_sandbox_paths,
    shown,
)
from agentcanvas.sandbox.pool import Pooled, put_into_pool, take_from_pool
from agentcanvas.sandbox.process_tree import marked
from agentcanvas.sandbox.spreading import one_tree
from agentcanvas.sandbox.trees import leads_only_down, remove_path


class _Record(msgspec.Struct, frozen=True):
    """A sandbox as it is kept on disk; with it a restart finds the changes of a cut-off turn."""

    base: int
    filled: dict[bytes, tuple[int, int, int, int, int]]
    folders: dict[bytes, tuple[int, int, int, int, int]] = {}


@dataclass(frozen=True)
class Sandbox:
    """A prepared sandbox; ``filled`` are the stamps of work/ right after it was filled.

    ``folders`` are those of its folders, and empty where the disk does not keep such stamps.
    """

    paths: SandboxPaths
    base: Generation
    filled: Manifest
    folders: Manifest = field(default_factory=dict)

    @property
    def work_dir(self) -> Path:
        """Where the agent works."""
        return self.paths.work_dir

    @property
    def is_whole(self) -> bool:
        """Whether it was given all of its generation."""
        return len(self.filled) == len(self.base.seen)


async def prepare_sandbox(
    base: Generation, agent_id: str, files: Sequence[str | bytes] | None = None
) -> Sandbox:
    """Make the sandbox of an agent on a generation, in that generation's workspace and run.

    ``files`` are names or globs of files or folders of the workspace; without it, all of the
    generation. One that is there already is not touched: find it with ``open_sandbox``, or take it
    back with ``restore_work``. Trees of an ended sandbox are used again where the pool has some.
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
    return Sandbox(paths, base, record.filled, record.folders)


async def restore_work(sandbox: Sandbox, base: Generation | None = None) -> Sandbox:
    """Bring work/ back to its base, or on to another; costs what differs, not the tree (D15, D18).

    The agent's processes must be gone.
    """
    return await anyio.to_thread.run_sync(partial(_restore, sandbox, base or sandbox.base))


async def copy_generation(base: Generation, target: Path) -> Manifest:
    """Fill a new folder with the files of a generation, writable; gives their stamps."""
    return await anyio.to_thread.run_sync(partial(fill_work, base, sorted(base.seen), target))


async def discard_sandbox(paths: SandboxPaths) -> None:
    """Remove everything but proposal/ (D15)."""
    for folder in parts_of(paths):
        await anyio.to_thread.run_sync(remove_path, folder)


def parts_of(paths: SandboxPaths) -> tuple[Path, ...]:
    """List what a sandbox is made of, without proposal/; the record, which makes it one, first."""
    folders = (paths.work_dir, paths.input_dir, paths.tmp_dir, paths.home_dir, paths.sessions_dir)
    return (paths.record, *folders)


async def retire_sandbox(sandbox: Sandbox) -> bool:
    """Give up a sandbox: its trees go to the pool if it has room, proposal/ stays (D15).

    The proposal must be settled and the run ended; that the processes are gone is looked up here.
    Tells whether the trees will be used again.
    """
    return await anyio.to_thread.run_sync(partial(_retire, sandbox))


def is_in_use(folder: Path) -> bool:
    """Tell whether a process of a sandbox lives; ``folder`` is its own, or that of its run."""
    return bool(marked(str(folder)))


async def _bytes_of(path: Path) -> bytes:
    return await anyio.Path(path).read_bytes()


def _prepare(base: Generation, agent_id: str, files: Sequence[str | bytes] | None) -> Sandbox:
    chosen = None if files is None else _named(base, files)
    try:
        paths = claim_sandbox_paths(base.workspace, base.run_id, agent_id)
        if paths.record.exists():
            raise SandboxError(
                f"Agent '{agent_id}' has a sandbox in {base.run_id} already; open it or restore it"
            )
        for folder in (paths.proposal_dir, paths.home_dir, paths.tmp_dir):
            folder.mkdir(exist_ok=True)
        try:
            with one_tree:
                return _recorded(base, paths, _filled(base, paths, chosen))
        except OSError:
            _remove_trees(paths)  # so that half a copy does not keep a full disk full
            raise
    except OSError as error:
        raise SandboxError(
            f"The sandbox of '{agent_id}' could not be made: {told(error)}"
        ) from error


def _filled(base: Generation, paths: SandboxPaths, chosen: list[bytes] | None) -> Contents:
    """Put input/ and work/ there, from used trees where all files are wanted."""
    _remove_trees(paths)  # a half-made one
    contents = _recycled(base, paths) if chosen is None else None
    if contents is None:
        chosen = sorted(base.seen) if chosen is None else chosen
        contents = fill_sandbox(base, chosen, paths.work_dir, paths.input_dir)
    return contents


def _remove_trees(paths: SandboxPaths) -> None:
    for folder in (paths.input_dir, paths.work_dir):
        remove_path(folder)


def _recycled(base: Generation, paths: SandboxPaths) -> Contents | None:
    """Bring trees of the pool up to date; None when there are none, or none that are of use."""
    pooled = take_from_pool(base.workspace, paths)
    if pooled is None:
        return None
    held = pooled.contents.files.keys()
    renewal = Renewal.of(base, base.seen.keys(), held, pooled.came_from)
    try:
        refill_input(renewal, paths.input_dir, pooled.input_folders)
        return refill_work(renewal, paths.work_dir, pooled.contents)
    except OSError:
        _remove_trees(paths)
        return None


def _retire(sandbox: Sandbox) -> bool:
    paths, base = sandbox.paths, sandbox.base
    if is_in_use(paths.root):
        raise SandboxError(f"Processes of {paths.root.name} still run; end them first")
    try:
        paths.record.unlink(missing_ok=True)  # from here on it is no sandbox any more
        kept = False
        if sandbox.is_whole and paths.work_dir.is_dir() and paths.input_dir.is_dir():
            for path in (b".git", *base.not_compared):
                # A folder above it may have become a link of the agent's, which leads elsewhere.
                if leads_only_down(paths.work_dir, path):
                    remove_path(paths.work_dir / os.fsdecode(path))
            sound = sound_folders(base, paths.input_dir)
            contents = Contents(sandbox.filled, sandbox.folders)
            pooled = Pooled(contents, base.seen, sound)
            kept = put_into_pool(base.workspace, paths, pooled)
        for part in parts_of(paths):
            remove_path(part)
    except OSError as error:
        raise SandboxError(f"{paths.root.name} could not be given up: {told(error)}") from error
    return kept


def _named(base: Generation, files: Sequence[str | bytes]) -> list[bytes]:
    """Resolve names and globs of files and folders to the files of the generation."""
    chosen: set[bytes] = set()
    for name in files:
        glob = checked_glob(name)
        below = {glob} & base.seen.keys()  # a name that looks like a pattern is a name first
        below = below or {path for path in base.seen if covered(path, (glob,))}
        if not below:
            advice = "check the name" if is_plain(glob) else "check the pattern"
            raise PathRefused(
                f"'{shown(glob)}' is not in {base.name}: it does not exist or git ignores it; "
                f"{advice}, or bring it along when the generation is taken"
            )
        chosen |= below
    return sorted(chosen)


def _recorded(base: Generation, paths: SandboxPaths, contents: Contents) -> Sandbox:
    """Wait until every edit in work/ from here on shows in a ctime, and note down what is in it."""
    files, folders = contents.files, contents.folders
    newest = max(newest_change(files.values()), newest_change(folders.values()))
    if not settle(paths.root, newest):
        folders = {}
    growing = paths.record.with_suffix(".growing")
    growing.write_bytes(msgspec.msgpack.encode(_Record(base.number, files, folders)))
    growing.rename(paths.record)
    return Sandbox(paths, base, files, folders)


def _restore(sandbox: Sandbox, base: Generation) -> Sandbox:
    """Sweep out what does not belong, replace what was touched or is otherwise in the new base."""
    whole = base.seen.keys()
    wanted: Set[bytes] = whole if sandbox.is_whole else whole & sandbox.filled.keys()
    paths = sandbox.paths
    renewal = Renewal.of(base, wanted, sandbox.filled.keys(), sandbox.base.seen)
    try:
        paths.record.unlink(missing_ok=True)  # until it is whole again
        before = Contents(sandbox.filled, sandbox.folders)
        contents = refill_work(renewal, paths.work_dir, before)
        if base is not sandbox.base:
            sound = sound_folders(sandbox.base, paths.input_dir)
            refill_input(renewal, paths.input_dir, sound)
        return _recorded(base, paths, contents)
    except OSError as error:
        raise SandboxError(f"work/ could not be taken back: {told(error)}") from error
