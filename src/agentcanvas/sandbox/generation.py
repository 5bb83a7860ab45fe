"""Generations: frozen images of the workspace that sandboxes, evidence and proposals name (D7).

g0 is the workspace as it is, uncommitted edits included; each later one hard-links what did not
change, so that it costs what changed. A generation appears under its name only when it is whole.
Copies to work in are left to ``prepare``.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox import git
from agentcanvas.sandbox.changes import Change, Side, changes_between
from agentcanvas.sandbox.copying import RESTLESS, freeze
from agentcanvas.sandbox.dependencies import Dependency
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.manifest import Manifest, differing, newest_change, settle
from agentcanvas.sandbox.notes import Notes
from agentcanvas.sandbox.paths import generations_folder, shown
from agentcanvas.sandbox.selection import EVERYTHING, Choice, Repository, choice_of, select
from agentcanvas.sandbox.spreading import spread
from agentcanvas.sandbox.trees import make_folders, remove_path, standing_in

_RECORD = "generation.msgpack"
_MADE = "made.msgpack"
_TAGS = "tags"


class _Record(msgspec.Struct, frozen=True):
    """A generation as it is kept on disk, beside its tree."""

    stamps: dict[bytes, tuple[int, int, int, int, int]]
    notes: tuple[str, ...]
    include: tuple[bytes, ...]
    repository: tuple[str | None, str | None, bytes, bytes, str] | None
    only: tuple[bytes, ...] = ()
    bring: tuple[bytes, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    object_format: str = "sha1"


@dataclass(frozen=True)
class Generation:
    """One frozen image; ``seen`` are the stamps of the *workspace's* files when it was taken.

    ``dependencies`` were found beside the files, ``made`` is what the run's setup made; neither is
    part of the image.
    """

    workspace: Path
    run_id: str
    number: int
    seen: Manifest
    repository: Repository | None
    notes: tuple[str, ...] = ()
    choice: Choice = EVERYTHING
    dependencies: tuple[Dependency, ...] = ()
    made: tuple[Dependency, ...] = ()

    @property
    def name(self) -> str:
        """g0, g1, …"""
        return f"g{self.number}"

    @property
    def folder(self) -> Path:
        """Everything that belongs to it."""
        return generations_folder(self.workspace, self.run_id) / self.name

    @property
    def tree(self) -> Path:
        """The frozen files; a read-only view of the workspace (D8)."""
        return frozen_tree(self.workspace, self.run_id, self.number)

    @property
    def index(self) -> Path:
        """The user's git index as it was; missing where there was none."""
        return self.folder / "index"

    @property
    def tags(self) -> Path:
        """The user's tags as they were, as lines of git's ``packed-refs``; missing without any."""
        return self.folder / _TAGS

    @property
    def beside(self) -> tuple[Dependency, ...]:
        """What a sandbox has besides the image: the setup's own where both have a path."""
        made = {each.path for each in self.made}
        return (*(each for each in self.dependencies if each.path not in made), *self.made)

    @property
    def not_compared(self) -> frozenset[bytes]:
        """The paths at and below which nothing is ever part of a patch."""
        return frozenset(each.path for each in self.beside)

    @property
    def git_head(self) -> str | None:
        """``git rev-parse HEAD`` when it was taken, for proposal.json (S4)."""
        return self.repository.head if self.repository else None


def frozen_tree(workspace: Path, run_id: str, number: int) -> Path:
    """Where the frozen files of a generation are, as long as it is kept."""
    return generations_folder(workspace, run_id) / f"g{number}" / "tree"


async def take_generation(
    workspace: Path,
    run_id: str,
    *,
    previous: Generation | None = None,
    only: Sequence[str | bytes] | None = None,
    bring: Sequence[str | bytes] | None = None,
    include: Sequence[str | bytes] | None = None,
) -> Generation:
    """Freeze the workspace as it is now.

    ``previous`` may be a generation of an earlier run; what did not change since is linked from it.
    ``only`` are globs of the files to take, ``bring`` globs of ignored files that belong to the
    base all the same, ``include`` the very names of such files. A choice that is not said is that
    of the previous generation of the same run.
    """
    choice = _next_choice(workspace, run_id, previous)
    said = choice_of(only=only or (), bring=bring or (), include=include or ())
    choice = Choice(
        choice.only if only is None else said.only,
        choice.bring if bring is None else said.bring,
        choice.include if include is None else said.include,
    )
    return await anyio.to_thread.run_sync(partial(_take, workspace, run_id, previous, choice))


def _next_choice(workspace: Path, run_id: str, previous: Generation | None) -> Choice:
    if previous is None or previous.run_id != run_id:
        return Choice()
    there = _still_there(workspace, previous.choice.include)
    return Choice(previous.choice.only, previous.choice.bring, there)


async def load_generation(workspace: Path, run_id: str, number: int) -> Generation:
    """Find a generation again, after a restart for example."""
    return await anyio.to_thread.run_sync(partial(_load, workspace, run_id, number))


async def edits_since(generation: Generation) -> tuple[Change, ...]:
    """Say what the user (or an apply) changed in the workspace since the generation was taken."""
    return await anyio.to_thread.run_sync(partial(_edits_since, generation))


def generation_numbers(workspace: Path, run_id: str) -> list[int]:
    """List the generations that a run has, in order."""
    folder = generations_folder(workspace, run_id)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name[1:]) for name in names if name[0] == "g" and name[1:].isdecimal())


def setup_folder(workspace: Path, run_id: str) -> Path:
    """Where what a run's setup made is kept, beside the run's generations."""
    return generations_folder(workspace, run_id) / "setup"


def note_made(folder: Path, made: Sequence[Dependency]) -> None:
    """Note down what the setup made, in the folder that is to be the run's setup folder."""
    (folder / _MADE).write_bytes(msgspec.msgpack.encode(tuple(made)))


def made_by_setup(workspace: Path, run_id: str) -> tuple[Dependency, ...]:
    """List what the setup of a run made, if there was one."""
    try:
        noted = (setup_folder(workspace, run_id) / _MADE).read_bytes()
    except FileNotFoundError:
        return ()
    return msgspec.msgpack.decode(noted, type=tuple[Dependency, ...])


def _take(workspace: Path, run_id: str, previous: Generation | None, choice: Choice) -> Generation:
    folder = generations_folder(workspace, run_id)
    chosen = select(workspace, choice)
    growing: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = max(generation_numbers(workspace, run_id), default=-1) + 1
        growing = folder / f"g{number}.growing"
        remove_path(growing)
        # From here on an edit of the user shows in the ctime, and the copy below notices it.
        settle(folder, newest_change(chosen.stamps.values()))
        growing.mkdir()
        seen, notes = _freeze(workspace, chosen.stamps, growing / "tree", previous)
        _keep_index(chosen.repository, growing / "index")
        _keep_tags(workspace, chosen.repository, growing / _TAGS)
        generation = Generation(
            workspace=workspace,
            run_id=run_id,
            number=number,
            seen=seen,
            repository=chosen.repository,
            notes=(*chosen.notes, *notes),
            choice=choice,
            dependencies=chosen.dependencies,
            made=made_by_setup(workspace, run_id),
        )
        (growing / _RECORD).write_bytes(_recorded(generation))
        growing.rename(generation.folder)
    except (OSError, SandboxError) as error:
        if growing:
            remove_path(growing)  # a half-made copy must not keep a full disk full
        if isinstance(error, SandboxError):
            raise
        raise SandboxError(f"The workspace could not be copied: {told(error)}") from error
    return generation


def told(error: OSError) -> str:
    """Say what is wrong with the disk, and the next step where there is one."""
    advice = {
        errno.ENOSPC: "; make room, for example with: agentcanvas sandbox clean",
        errno.EDQUOT: "; make room, for example with: agentcanvas sandbox clean",
        errno.EACCES: "; give yourself the right to it",
        errno.EROFS: "; work on a disk that can be written to",
    }
    name = error.filename
    where = f": {os.fsdecode(name)}" if isinstance(name, str | bytes) and name else ""
    return f"{error.strerror or error}{where}{advice.get(error.errno or 0, '')}"


def _freeze(
    workspace: Path, stamps: Manifest, tree: Path, previous: Generation | None
) -> tuple[Manifest, tuple[str, ...]]:
    """Fill the tree; gives the stamps of what is in it, and why something is not."""
    make_folders(tree, folders_of(stamps))
    paths = sorted(stamps)
    known = previous.seen if previous and previous.tree.is_dir() else {}
    folders = (workspace, tree, *([previous.tree] if previous and known else []))
    same = (stamps[path] if known.get(path) == stamps[path] else None for path in paths)
    with standing_in(*folders) as descriptors:
        outcomes = spread(freeze, descriptors, list(zip(paths, same, strict=True)))
    seen: Manifest = {}
    notes = Notes()
    for path, outcome in zip(paths, outcomes, strict=True):
        if outcome == RESTLESS:
            raise SandboxError(
                f"'{shown(path)}' keeps changing; stop what writes to it and try again"
            )
        if isinstance(outcome, str):
            notes.left_out(path, outcome)
        elif outcome:
            seen[path] = outcome
    return seen, notes.sentences()


def _keep_index(repository: Repository | None, target: Path) -> None:
    """Keep the user's index with its mtime, by which git knows which entries to trust."""
    if not repository or repository.prefix:
        return
    index = repository.git_dir / "index"
    shared = any(repository.git_dir.glob("sharedindex.*"))
    if index.is_file() and not shared:  # a split index is not whole without its other half
        shutil.copy2(index, target)


def _keep_tags(workspace: Path, repository: Repository | None, target: Path) -> None:
    """Keep the user's tags, by which tools know their version; each turn has them from here."""
    if not repository or repository.prefix:
        return
    told = git.answer(["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"], workspace)
    if told:
        target.write_bytes(told + b"\n")


def _edits_since(generation: Generation) -> tuple[Change, ...]:
    chosen = generation.choice
    there = _still_there(generation.workspace, chosen.include)
    now = select(generation.workspace, Choice(chosen.only, chosen.bring, there))
    suspects = differing(generation.seen, now.stamps)
    frozen, living = Side(generation.tree, generation.seen), Side(generation.workspace, now.stamps)
    return changes_between(frozen, living, suspects)


def _still_there(workspace: Path, names: Sequence[bytes]) -> tuple[bytes, ...]:
    base = os.fsencode(workspace)
    return tuple(path for path in names if os.path.lexists(base + b"/" + path))


def _recorded(generation: Generation) -> bytes:
    found = generation.repository
    repository = None
    if found:
        places = (os.fsencode(found.git_dir), os.fsencode(found.objects))
        repository = (found.head, found.branch, *places, found.prefix)
    choice = generation.choice
    record = _Record(
        stamps=generation.seen,
        notes=generation.notes,
        include=choice.include,
        repository=repository,
        only=choice.only,
        bring=choice.bring,
        dependencies=generation.dependencies,
        object_format=found.object_format if found else "sha1",
    )
    return msgspec.msgpack.encode(record)


def _load(workspace: Path, run_id: str, number: int) -> Generation:
    folder = generations_folder(workspace, run_id) / f"g{number}"
    try:
        record = msgspec.msgpack.decode((folder / _RECORD).read_bytes(), type=_Record)
        made = made_by_setup(workspace, run_id)
    except (OSError, msgspec.DecodeError) as error:
        raise SandboxError(f"Generation g{number} of {run_id} cannot be read: {error}") from error
    repository = None
    if record.repository:
        head, branch, git_dir, objects, prefix = record.repository
        repository = Repository(
            head,
            branch,
            Path(os.fsdecode(git_dir)),
            Path(os.fsdecode(objects)),
            prefix,
            record.object_format,
        )
    return Generation(
        workspace=workspace,
        run_id=run_id,
        number=number,
        seen=record.stamps,
        repository=repository,
        notes=record.notes,
        choice=Choice(record.only, record.bring, record.include),
        dependencies=record.dependencies,
        made=made,
    )
