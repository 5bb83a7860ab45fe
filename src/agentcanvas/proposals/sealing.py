"""A commit that lands together with its files, or on a branch of its own (D16).

Everything that can fail is done before: the objects are in the repository, the new index is in its
lock. What is left is to move one ref, which is the commit point, and to rename the lock. The commit
holds the proposal on top of the last commit; edits of the user that are not committed stay so.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import LandingRefused
from agentcanvas.proposals.committed import (
    CommittedTree,
    insist_on,
    refuse_clashes,
    refuse_staged,
)
from agentcanvas.proposals.index_lock import IndexLock
from agentcanvas.proposals.journal import Entered, Listing, Sealed
from agentcanvas.proposals.merge import plan
from agentcanvas.proposals.patch import Change
from agentcanvas.proposals.policy import show
from agentcanvas.proposals.quarantine import PREFIX
from agentcanvas.proposals.tree import Entry, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentcanvas.proposals.quarantine import Quarantine
    from agentcanvas.proposals.repository import Listed, Repository
    from agentcanvas.proposals.ways import Branch, Commit, Identity, Message

BRANCHES: Final = "refs/heads/"
_MODES: Final = frozenset(map(str, Mode))


class Commission:
    """One commit in the making; ``step`` is told before each effect, so that a test can fail it."""

    def __init__(
        self,
        repository: Repository,
        transaction: str,
        quarantine: Quarantine,
        step: Callable[[str], None],
    ) -> None:
        self._repository = repository
        self._lock = IndexLock(repository.git_dir, transaction)
        self._quarantine = quarantine
        self._step = step

    @contextmanager
    def on_head(
        self, way: Commit, changes: Sequence[Change], who: Identity, when_ms: int
    ) -> Iterator[RefSeal | None]:
        """A commit on what is checked out, ready to be sealed; None if HEAD holds it already."""
        repository = self._repository
        repository.refuse_if_under_way()
        self._step("index-lock")
        self._lock.take()
        try:
            with _scratch(repository) as scratch:
                ref, head = repository.head_ref(), repository.head()
                entered = self._write(changes, head, scratch)
                if entered and (commit := self._commit(head, way.message, who, when_ms, scratch)):
                    self._prepare_index(entered, scratch)
                    sealed = Sealed(ref, head, commit, way.message, entered)
                    yield RefSeal(repository, sealed, self._lock, who, self._step)
                else:
                    yield None
        finally:
            self._lock.release()

    @contextmanager
    def on_branch(
        self, way: Branch, changes: Sequence[Change], who: Identity, when_ms: int
    ) -> Iterator[RefSeal | None]:
        """A commit for a new branch, ready to be sealed."""
        repository = self._repository
        ref = checked_branch(repository, way.name)
        with _scratch(repository) as scratch:
            head = repository.head()
            entered = self._write(changes, head, scratch)
            commit = self._commit(head, way.message, who, when_ms, scratch) if entered else None
            if commit is None:
                raise LandingRefused(
                    "Your last commit holds this change already; there is nothing to put on "
                    f"the branch {way.name}."
                )
            sealed = Sealed(ref, None, commit, way.message, is_branch=True)
            yield RefSeal(repository, sealed, None, who, self._step)

    def _write(
        self, changes: Sequence[Change], head: str | None, scratch: Path
    ) -> tuple[Entered, ...]:
        """Find out what the changes are to a commit, and put it into a private index."""
        repository, prefix = self._repository, self._repository.prefix
        listed = repository.fill(scratch / "tree", head)
        known = [listed[prefix + c.path] for c in changes if prefix + c.path in listed]
        contents = repository.load(oid for mode, oid in known if mode in _MODES)
        planned = plan(changes, CommittedTree(listed, prefix, contents), self._quarantine)
        insist_on(planned)
        refuse_clashes(planned, listed, prefix)
        self._step("objects")
        fresh = [write.new.data for write in planned.writes if write.new is not None]
        oids = iter(repository.store(fresh, _made(scratch / "blobs")))
        after = {
            prefix + write.path: None if write.new is None else (str(write.new.mode), next(oids))
            for write in planned.writes
        }
        if after:
            repository.enter(scratch / "tree", after)
        return tuple(
            Entered(os.fsdecode(path), _listing(listed.get(path)), _listing(new))
            for path, new in after.items()
        )

    def _commit(
        self, head: str | None, message: Message, who: Identity, when_ms: int, scratch: Path
    ) -> str | None:
        repository = self._repository
        tree = repository.tree(scratch / "tree")
        if tree == repository.tree_of(head):
            return None
        return repository.commit(tree, head, message.text, who, when_ms)

    def _prepare_index(self, entered: Sequence[Entered], scratch: Path) -> None:
        """The user's index with these paths as the commit has them, and all others as they are."""
        copy = scratch / "index"
        if data := self._lock.read():
            copy.write_bytes(data)
        staged = self._repository.listed(copy) if data else {}
        refuse_staged(entered, staged, self._repository.prefix)
        self._step("index")
        self._repository.enter(copy, _listed_as(entered, new=True))
        self._lock.fill(copy.read_bytes())


class RefSeal:
    """Moves the ref and installs the index, or takes both back."""

    def __init__(
        self,
        repository: Repository,
        record: Sealed,
        lock: IndexLock | None,
        who: Identity,
        step: Callable[[str], None],
    ) -> None:
        self.record = record
        self._repository = repository
        self._lock = lock
        self._who = who
        self._step = step
        self._moved = self._installed = False

    def close(self) -> None:
        self._step("ref")
        record = self.record
        why = f"agentcanvas: {record.message.subject}"
        if record.new != record.old:
            self._repository.move(record.ref, record.new, record.old, who=self._who, why=why)
            self._moved = True
        self._step("ref:moved")
        if self._lock is not None:
            self._lock.install()
            self._installed = True
        self._step("sealed")

    def reopen(self) -> None:
        record = self.record
        if self._installed and self._lock is not None:
            restage(self._repository, self._lock, record.entered, back=True)
            self._installed = False
        if self._moved:
            why = "agentcanvas: taken back"
            self._repository.move(record.ref, record.old, record.new, who=self._who, why=why)
            self._moved = False


def has_happened(repository: Repository, sealed: Sealed) -> bool:
    """Whether the ref was moved before the crash; the user may have gone on from there."""
    if sealed.new is None:
        return repository.value_of(sealed.ref) is None
    return repository.holds(sealed.ref, sealed.new)


def restage(
    repository: Repository, lock: IndexLock, entered: Sequence[Entered], *, back: bool = False
) -> None:
    """Let the index follow a commit that is there; a path that is staged otherwise is left."""
    if not entered:
        return
    lock.take()
    try:
        with _scratch(repository) as scratch:
            copy = scratch / "index"
            if data := lock.read():
                copy.write_bytes(data)
            staged = repository.listed(copy) if data else {}
            was = _listed_as(entered, new=back)
            will = _listed_as(entered, new=not back)
            due = {path: will[path] for path in will if staged.get(path) == was[path]}
            if due:
                repository.enter(copy, due)
                lock.fill(copy.read_bytes())
                lock.install()
    finally:
        lock.release()


def reversed_changes(repository: Repository, sealed: Sealed) -> tuple[Change, ...]:
    """What takes a commit back, by content; the user may have rebased it since."""
    sides = [side for entry in sealed.entered for side in (entry.old, entry.new) if side]
    contents = repository.load(side.oid for side in sides)

    def entry(listing: Listing | None) -> Entry | None:
        return Entry(Mode(listing.mode), contents[listing.oid]) if listing else None

    return tuple(
        Change(
            os.fsencode(each.path)[len(repository.prefix) :],
            before=entry(each.new),
            after=entry(each.old),
        )
        for each in sealed.entered
    )


def dropping(
    repository: Repository, sealed: Sealed, who: Identity, step: Callable[[str], None]
) -> RefSeal:
    """The way back from a branch: delete it, if it is as it was made."""
    name, ref = sealed.ref.removeprefix(BRANCHES), sealed.ref
    now = repository.value_of(ref)
    if now is not None and now != sealed.new:
        raise LandingRefused(f"The branch {name} holds more by now; delete it yourself.")
    where = repository.git("for-each-ref", "--format=%(worktreepath)", ref).strip()
    if where:
        raise LandingRefused(f"The branch {name} is checked out at {show(where)}; switch first.")
    undone = Sealed(ref, now, None, sealed.message, is_branch=True)
    return RefSeal(repository, undone, None, who, step)


def checked_branch(repository: Repository, name: str) -> str:
    """The ref of a branch that can be made."""
    said = repository.run("check-ref-format", "--branch", name)
    if said.returncode or said.stdout.decode().strip() != name or name.startswith("-"):
        raise LandingRefused(f"{name!r} is not a name that git allows for a branch.")
    ref = BRANCHES + name
    if repository.value_of(ref) is not None:
        raise LandingRefused(f"There is a branch {name} already; name another one.")
    return ref


def _listed_as(entered: Sequence[Entered], *, new: bool) -> dict[bytes, Listed | None]:
    sides = ((each.path, each.new if new else each.old) for each in entered)
    return {os.fsencode(path): (side.mode, side.oid) if side else None for path, side in sides}


def _listing(listed: Listed | None) -> Listing | None:
    return None if listed is None else Listing(*listed)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextmanager
def _scratch(repository: Repository) -> Iterator[Path]:
    """A folder for private indexes and contents, swept like any quarantine after a crash."""
    place = repository.workspace / ".agentcanvas" / "apply"
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place) as folder:
        yield Path(folder)
