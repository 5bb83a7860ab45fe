"""Moving files into the workspace, all or none.

Stage everything, write the journal, then rename file by file; a failure or a crash in between is
rolled back from the journal. Rolling back needs no room on the disk: backups are hard links, and
putting one back is a rename. It compares before it touches: what the user edited since is merged
or left alone, and named (D7).

Other programs can see the files change one after another; POSIX has no swap of many files at once.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from agentcanvas.errors import AgentCanvasError, ApplyConflict, ApplyFailed
from agentcanvas.proposals.journal import (
    BACKUPS,
    STAGING,
    Action,
    Journal,
    JournalState,
    Move,
    Sealed,
    TransactionFolder,
    moves_of,
    sync_folder,
)
from agentcanvas.proposals.tree import Entry, Mode, ObstacleError, Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentcanvas.proposals.merge import Plan, Write
    from agentcanvas.proposals.quarantine import Quarantine


class Ending(StrEnum):
    """How a recovery left a transaction."""

    ROLLED_BACK = "rolled_back"
    COMPLETED = "completed"


class Recovery(msgspec.Struct, frozen=True):
    """``kept`` are files the user edited between crash and recovery, left as the user has them."""

    transaction: str
    ending: Ending
    kept: tuple[str, ...] = ()


class Seal(Protocol):
    """What becomes true together with the files, such as a commit (D16)."""

    record: Sealed

    def close(self) -> None:
        """Make it so; once this is done, a crash no longer rolls the files back."""
        ...

    def reopen(self) -> None:
        """Take back as much of it as was done."""
        ...


class Transaction:
    """One change of the workspace, from staging to the end."""

    def __init__(self, workspace: Tree, files: TransactionFolder) -> None:
        self._workspace = workspace
        self._files = files
        self._step = files.step

    def run(
        self,
        name: str,
        action: Action,
        plan: Plan,
        quarantine: Callable[[], Quarantine],
        seal: Seal | None = None,
    ) -> Journal:
        """Make the plan true; on any failure the workspace is as before."""
        writes = sorted(plan.writes, key=_removals_first)
        self._files.open()
        try:
            journal = self._stage(name, action, writes, plan, seal.record if seal else None)
        except BaseException:
            self._files.remove()
            raise
        try:
            self._commit(writes, journal)
            if seal is not None:
                seal.close()
            done = msgspec.structs.replace(journal, state=JournalState.DONE)
            self._files.write(done)
        except BaseException as problem:
            self._give_up(journal, problem, quarantine, seal)
            raise
        with suppress(OSError):  # it is done; what is left over goes with the next recovery
            self.tidy(done)
        return done

    def _stage(
        self, name: str, action: Action, writes: list[Write], plan: Plan, sealed: Sealed | None
    ) -> Journal:
        """Everything that can fail for want of room or rights happens here, if it can."""
        for index, write in enumerate(writes):
            if write.new is not None:
                self._step(f"stage:{index}")
                _stage(self._files.staged(index), write.new, write.old)
            if write.old is not None:
                self._step(f"backup:{index}")
                self._back_up(write, self._files.backup(index))
        self._files.keep_contents(writes)
        made = dict.fromkeys(
            os.fsdecode(folder)
            for write in writes
            if write.new is not None
            for folder in self._workspace.missing_folders(write.path)
        )
        journal = Journal(
            transaction=name,
            action=action,
            state=JournalState.COMMITTING,
            moves=moves_of(writes),
            made=tuple(made),
            merged=tuple(os.fsdecode(path) for path in plan.merged),
            sealed=sealed,
        )
        for folder in (STAGING, BACKUPS):
            sync_folder(self._files.folder / folder)
        sync_folder(self._files.folder.parent)
        self._files.write(journal)
        return journal

    def _back_up(self, write: Write, backup: Path) -> None:
        assert write.old is not None
        name = write.path.rpartition(b"/")[2]
        with self._folder_of(write.path) as folder:
            try:
                os.link(name, backup, src_dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                raise _changed_meanwhile(write.path) from None
            except OSError:  # a disk without hard links, or a file of another user
                _stage(backup, write.old, write.old)

    def _commit(self, writes: list[Write], journal: Journal) -> None:
        for index, write in enumerate(writes):
            self._step(f"move:{index}")
            self._move(index, write)
        self._step("sync")
        self._sync(journal)

    def _move(self, index: int, write: Write) -> None:
        self._last_look(write)
        name = write.path.rpartition(b"/")[2]
        with self._folder_of(write.path, make=write.new is not None) as folder:
            if write.new is None:
                os.unlink(name, dir_fd=folder)
            else:
                os.replace(self._files.staged(index), name, dst_dir_fd=folder)

    @contextmanager
    def _folder_of(self, path: bytes, *, make: bool = False) -> Iterator[int]:
        """The folder that holds a file, if it is still one and still there."""
        try:
            with self._workspace.parent(path, make=make) as folder:
                if folder is None:
                    raise _changed_meanwhile(path)
                yield folder
        except ObstacleError:
            raise _changed_meanwhile(path) from None

    def _last_look(self, write: Write) -> None:
        """Nobody touched the file since it was read; only microseconds remain after this."""
        try:
            now = self._workspace.look(write.path)
        except ObstacleError as obstacle:
            if not obstacle.is_folder or write.new is None:
                raise _changed_meanwhile(write.path) from None
            # A folder that this transaction has just emptied makes room for a file.
            now = None
            self._drop_empty(write.path)
        if now != write.old:
            raise _changed_meanwhile(write.path)

    def _drop_empty(self, folder: bytes) -> None:
        """Remove a folder that holds nothing but empty folders."""
        if not self._workspace.holds_only(folder, ()):
            raise _changed_meanwhile(folder)
        self._workspace.remove_empty_folders(folder)

    def _sync(self, journal: Journal) -> None:
        folders = {Path(move.path).parent for move in journal.moves}
        folders |= {Path(folder).parent for folder in journal.made}
        for folder in folders:
            # A folder that the moves emptied may be gone already by another hand.
            with suppress(FileNotFoundError, NotADirectoryError):
                sync_folder(self._workspace.root / folder)

    def _give_up(
        self,
        journal: Journal,
        problem: BaseException,
        quarantine: Callable[[], Quarantine],
        seal: Seal | None,
    ) -> None:
        try:
            if seal is not None:
                seal.reopen()
            if self._files.read() != journal:
                # Marked done, but not known to be durable: a crash from here on must roll back.
                self._files.write(journal)
            self.roll_back(journal, quarantine)
        except (OSError, AgentCanvasError) as worse:
            raise ApplyFailed(
                f"Applying failed ({_reason(problem)}) and could not be rolled back yet "
                f"({_reason(worse)}). Make room or restore write access, then run it again: the "
                "journal is kept and the roll-back is taken up first."
            ) from problem

    def roll_back(self, journal: Journal, quarantine: Callable[[], Quarantine]) -> Recovery:
        """Put back what was there, last move first; safe to run again after a crash."""
        kept = []
        for index, move in reversed(list(enumerate(journal.moves))):
            self._step(f"back:{index}")
            if move.new is None:
                self._drop_made(journal)
            if not self._undo_move(index, move, journal, quarantine):
                kept.append(move.path)
        self._drop_made(journal)
        self._sync(journal)
        self._step("void")
        self._files.remove()
        return Recovery(journal.transaction, Ending.ROLLED_BACK, tuple(reversed(kept)))

    def _drop_made(self, journal: Journal) -> None:
        for folder in reversed(journal.made):
            self._workspace.remove_folder_if_empty(os.fsencode(folder))

    def _undo_move(
        self, index: int, move: Move, journal: Journal, quarantine: Callable[[], Quarantine]
    ) -> bool:
        """False if the user has the file otherwise by now and it was left so."""
        path = os.fsencode(move.path)
        moved = move.new is None or not os.path.lexists(self._files.staged(index))
        if not moved:
            return True
        try:
            now = self._workspace.look(path)
            if move.old.fits(now) if move.old else now is None:
                return True
            if move.new.fits(now) if move.new else now is None:
                self._put_back(index, path, restore=move.old is not None)
                return True
            return self._merge_back(index, journal, now, quarantine)
        except ObstacleError:
            return False

    def _put_back(self, index: int, path: bytes, *, restore: bool) -> None:
        name = path.rpartition(b"/")[2]
        with self._workspace.parent(path, make=restore) as folder:
            if restore:
                os.replace(self._files.backup(index), name, dst_dir_fd=folder)
            elif folder is not None:
                os.unlink(name, dir_fd=folder)

    def _merge_back(
        self,
        index: int,
        journal: Journal,
        now: Entry | None,
        quarantine: Callable[[], Quarantine],
    ) -> bool:
        """The user edited our new version: take our part out of it, if git can."""
        move, old, new = list(self._files.contents(journal))[index]
        path = os.fsencode(move.path)
        if now is None or old is None or new is None:
            return False
        with quarantine() as private:
            result, clashing = private.merge({path: new}, {path: now}, {path: old})
        if clashing or path not in result:
            return False
        merged = self._files.folder / "merged"
        merged.unlink(missing_ok=True)
        _stage(merged, result[path], now)
        with self._workspace.parent(path) as folder:
            if folder is None:
                return False
            os.replace(merged, path.rpartition(b"/")[2], dst_dir_fd=folder)
        return True

    def tidy(self, journal: Journal) -> Recovery:
        """After the commit point: drop emptied folders, as git does, and the staging area."""
        for move in journal.moves:
            if move.new is None:
                self._step("tidy:folders")
                self._drop_emptied(os.fsencode(move.path))
        self._files.tidy()
        return Recovery(journal.transaction, Ending.COMPLETED)

    def _drop_emptied(self, path: bytes) -> None:
        folder = path.rpartition(b"/")[0]
        while folder and self._workspace.remove_folder_if_empty(folder):
            folder = folder.rpartition(b"/")[0]


def _removals_first(write: Write) -> tuple[bool, bytes]:
    """A file that makes room for a folder, or the reverse, must be gone before."""
    return (write.new is not None, write.path)


def _stage(target: Path, entry: Entry, like: Entry | None) -> None:
    """Write a file beside its future place; permissions are the user's, but for the x bits."""
    if entry.mode is Mode.LINK:
        target.symlink_to(os.fsdecode(entry.data))
        return
    executable = entry.mode is Mode.EXECUTABLE
    fd = os.open(
        target,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o777 if executable else 0o666,  # the umask takes its part
    )
    with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor
        permissions = like.permissions if like else None
        if permissions is None:
            permissions = entry.permissions
        if permissions is not None:
            os.fchmod(fd, _with_execution(permissions, executable=executable))
        file.write(entry.data)
        file.flush()
        os.fsync(fd)


def _with_execution(permissions: int, *, executable: bool) -> int:
    """Whoever may read may run it, or nobody; never setuid."""
    if not executable:
        return permissions & 0o666
    if permissions & stat.S_IXUSR:
        return permissions & 0o777
    return (permissions | (permissions & 0o444) >> 2) & 0o777


def _changed_meanwhile(path: bytes) -> ApplyConflict:
    shown = path.decode(errors="backslashreplace")
    return ApplyConflict(
        f"{shown} was changed while the proposal was being applied. Nothing was; try again.",
        conflicts={shown: "was changed meanwhile"},
    )


def _reason(problem: BaseException) -> str:
    return (problem.strerror or "") if isinstance(problem, OSError) else str(problem)
