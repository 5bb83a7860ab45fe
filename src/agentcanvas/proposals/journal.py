"""What one change of the workspace did, kept on disk so that a crash cannot blur it.

Each transaction has a folder of its own::

    journal.json     what moves where, and how far it is; its rename is the commit point
    contents.bin     every file before and after, from which an undo is made
    new/N  old/N     staged files and backups; gone once the transaction is settled

A folder without journal.json never touched the workspace. ``transaction`` makes the moves;
nothing here reads or writes the workspace.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from agentcanvas.errors import ApplyFailed, UnknownTransaction, ValidationError
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.tree import Entry, Mode
from agentcanvas.proposals.ways import Message
from agentcanvas.protocol.records import ChangedFile, ChangeStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agentcanvas.proposals.merge import Write

STAGING: Final = "new"
BACKUPS: Final = "old"
_ANYWHERE: Final = Policy(left_out=())
ObjectId = Annotated[str, msgspec.Meta(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")]
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


class JournalState(StrEnum):
    """COMMITTING is rolled back by a recovery; DONE is kept, and only tidied."""

    COMMITTING = "committing"
    DONE = "done"


class Action(StrEnum):
    APPLY = "apply"
    UNDO = "undo"


class Mark(msgspec.Struct, frozen=True):
    """Enough of a file to recognise it again."""

    mode: Mode
    sha256: str
    permissions: int | None = None

    def fits(self, entry: Entry | None) -> bool:
        return entry is not None and (self.mode, self.sha256) == (entry.mode, _digest(entry.data))


class Move(msgspec.Struct, frozen=True):
    """One file: what was there, what comes."""

    path: str
    old: Mark | None
    new: Mark | None

    @property
    def status(self) -> ChangeStatus:
        if self.old is None:
            return ChangeStatus.ADDED
        return ChangeStatus.DELETED if self.new is None else ChangeStatus.MODIFIED


class Listing(msgspec.Struct, frozen=True):
    """A file as git's index lists it."""

    mode: Annotated[str, msgspec.Meta(pattern=r"^(100644|100755|120000)\Z")]
    oid: ObjectId


class Entered(msgspec.Struct, frozen=True):
    """One path of the user's index, from the top of the repository; None where there is none."""

    path: str
    old: Listing | None
    new: Listing | None


class Sealed(msgspec.Struct, frozen=True):
    """A ref that moves together with the files (D16); its move is the commit point then.

    ``old`` and ``new`` are commits, None where the ref does not exist. ``entered`` are the paths of
    the user's index that follow; a branch that is not checked out has none.
    """

    ref: Annotated[str, msgspec.Meta(pattern=r"^(HEAD|refs/heads/[^\s~^:?*\[\\]+)\Z")]
    old: ObjectId | None
    new: ObjectId | None
    message: Message
    entered: tuple[Entered, ...] = ()
    is_branch: bool = False


class Journal(msgspec.Struct, frozen=True):
    """journal.json; ``made`` are the folders that did not exist before, outermost first."""

    transaction: str
    action: Action
    state: JournalState
    moves: tuple[Move, ...]
    made: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    sealed: Sealed | None = None

    @property
    def changed_files(self) -> tuple[ChangedFile, ...]:
        return tuple(ChangedFile(move.path, move.status) for move in self.moves)


def moves_of(writes: Sequence[Write]) -> tuple[Move, ...]:
    return tuple(Move(os.fsdecode(w.path), mark_of(w.old), mark_of(w.new)) for w in writes)


def mark_of(entry: Entry | None) -> Mark | None:
    """What a file is recognised by."""
    return None if entry is None else Mark(entry.mode, _digest(entry.data), entry.permissions)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class TransactionFolder:
    """One transaction on disk. ``step`` is told before each effect, so that a test can fail it."""

    def __init__(self, folder: Path, step: Callable[[str], None]) -> None:
        self.folder = folder
        self.step = step

    def staged(self, index: int) -> Path:
        return self.folder / STAGING / str(index)

    def backup(self, index: int) -> Path:
        return self.folder / BACKUPS / str(index)

    def open(self) -> None:
        """Start afresh; what an earlier try left here never touched the workspace."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in (self.folder / STAGING, self.folder / BACKUPS):
            part.mkdir(parents=True)

    def write(self, journal: Journal) -> None:
        """Durable once this returns."""
        self.step(f"journal:{journal.state}")
        fresh = self.folder / "journal.part"
        write_durably(fresh, msgspec.json.encode(journal))
        self.step(f"journal:{journal.state}:rename")
        fresh.replace(self.folder / "journal.json")
        sync_folder(self.folder)

    def read(self) -> Journal | None:
        """None if there is none; a journal that came with a repository gets no way out of it."""
        try:
            data = (self.folder / "journal.json").read_bytes()
        except FileNotFoundError:
            return None
        try:
            journal = msgspec.json.decode(data, type=Journal)
        except msgspec.DecodeError as problem:
            raise self._damaged(str(problem)) from problem
        entered = journal.sealed.entered if journal.sealed else ()
        paths = [*(move.path for move in journal.moves), *(each.path for each in entered)]
        for path in (*paths, *journal.made):
            if breach := _ANYWHERE.path_breach(os.fsencode(path)):
                raise self._damaged(breach.sentence)
        return journal

    def _damaged(self, why: str) -> ApplyFailed:
        return ApplyFailed(
            f"The journal {self.folder / 'journal.json'} was not written by AgentCanvas ({why}). "
            "Look at the folder and remove it."
        )

    def keep_contents(self, writes: Sequence[Write]) -> None:
        both = [(write.old and write.old.data, write.new and write.new.data) for write in writes]
        self.step("contents")
        write_durably(self.folder / "contents.bin", msgspec.msgpack.encode(both))

    def contents(self, journal: Journal) -> Iterator[tuple[Move, Entry | None, Entry | None]]:
        """Each move with the file before and after."""
        both = msgspec.msgpack.decode(
            (self.folder / "contents.bin").read_bytes(),
            type=list[tuple[bytes | None, bytes | None]],
        )
        for move, (old, new) in zip(journal.moves, both, strict=True):
            yield move, _entry(move.old, old), _entry(move.new, new)

    def tidy(self) -> None:
        """Only journal and contents are of use once it is settled; the staging area goes last,
        for by it a recovery knows that there is something left to do."""
        for part in (BACKUPS, STAGING):
            self.step(f"tidy:{part}")
            shutil.rmtree(self.folder / part, ignore_errors=True)

    def remove(self) -> None:
        """Journal first, for a folder without one is known to be void."""
        (self.folder / "journal.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def state_of(workspace: Path) -> Path:
    """Where the transactions of a workspace are kept."""
    return workspace / ".agentcanvas" / "apply"


def journals_in(state: Path) -> Iterator[Journal]:
    """All that can be read; a damaged one says nothing about the others."""
    for file in sorted(state.glob("*/journal.json")):
        with suppress(ApplyFailed):
            if (journal := TransactionFolder(file.parent, lambda _: None).read()) is not None:
                yield journal


def _entry(mark: Mark | None, data: bytes | None) -> Entry | None:
    return None if mark is None or data is None else Entry(mark.mode, data, mark.permissions)


def checked_name(transaction: str) -> str:
    """A transaction's name is also its folder's."""
    if _NAME.fullmatch(transaction) is None:
        raise ValidationError(
            f"The transaction name {transaction!r} may hold letters, digits, '.', '_' and '-', "
            "and does not start with a dot."
        )
    return transaction


def nothing_to_undo(transaction: str) -> UnknownTransaction:
    return UnknownTransaction(
        f"Nothing was applied under the name {transaction}, or its record was cleaned up."
    )


def write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
