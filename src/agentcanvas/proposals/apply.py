"""Landing a proposal in the workspace, taking it back, and setting right what a crash left.

The one door through which anything reaches the user's files (D8). Each call is a transaction with
a name that the caller chooses: asking twice for the same one does it once (D3). The work is
blocking and runs in a thread; a cancelled caller waits for it, since half of it is of no use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from anyio import to_thread

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import ApplyConflict, ApplyFailed, ValidationError
from agentcanvas.proposals.blame import blamed
from agentcanvas.proposals.chain import UNDO, built_on, named, taken_back_by
from agentcanvas.proposals.journal import (
    STAGING,
    Action,
    Journal,
    JournalState,
    TransactionFolder,
    checked_name,
    journals_in,
    nothing_to_undo,
    state_of,
)
from agentcanvas.proposals.links import leading_others_out
from agentcanvas.proposals.merge import Conflict, Plan, apart, plan
from agentcanvas.proposals.mounts import on_another_mount, refuse_read_only
from agentcanvas.proposals.patch import Change, inspect, links_of
from agentcanvas.proposals.policy import Breach, Policy
from agentcanvas.proposals.quarantine import PREFIX, Quarantine
from agentcanvas.proposals.sealer import Sealer
from agentcanvas.proposals.transaction import Recovery, Seal, Transaction
from agentcanvas.proposals.tree import Entry, Held, Tree, disk_says
from agentcanvas.proposals.ways import Branch, Way, Worktree
from agentcanvas.protocol.records import ChangedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

STATE_FOLDER: Final = ".agentcanvas"
WORKTREE: Final = Worktree()
T = TypeVar("T")


class Receipt(msgspec.Struct, frozen=True):
    """What a transaction did; ``merged`` are the files in which edits of the user were kept.

    ``commit`` is the commit it made, and ``ref`` the branch that holds it, HEAD if none does.
    """

    transaction: str
    action: Action
    changed_files: tuple[ChangedFile, ...]
    merged: tuple[str, ...] = ()
    commit: str | None = None
    ref: str | None = None


class Standing(StrEnum):
    """How a waiting proposal would fare now."""

    CLEAN = "clean"
    MERGES = "merges"
    CONFLICTS = "conflicts"
    UNSAFE = "unsafe"


class Forecast(msgspec.Struct, frozen=True):
    """The answer of ``check``: nothing was changed to find it out."""

    changed_files: tuple[ChangedFile, ...] = ()
    merged: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    breaches: tuple[Breach, ...] = ()

    @property
    def standing(self) -> Standing:
        if self.breaches:
            return Standing.UNSAFE
        if self.conflicts:
            return Standing.CONFLICTS
        return Standing.MERGES if self.merged else Standing.CLEAN


def _no_step(_name: str) -> None:
    """Where nothing is to fail on purpose."""


class Landing:
    """The door to one workspace; ``step`` is told before each effect, for tests to fail it."""

    def __init__(
        self,
        workspace: Path,
        *,
        policy: Policy | None = None,
        clock: Clock | None = None,
        step: Callable[[str], None] = _no_step,
    ) -> None:
        self._workspace = workspace
        self._policy = policy or Policy()
        self._step = step
        self._state = state_of(workspace)
        self._sealer = Sealer(workspace, self._state, clock or SystemClock(), step)

    async def check(self, patch: bytes, base: Path, *, policy: Policy | None = None) -> Forecast:
        """What ``apply`` would do or say: a forecast, for the workspace may change meanwhile."""
        return await self._in_thread(partial(self._check, patch, base, policy or self._policy))

    async def apply(
        self,
        transaction: str,
        patch: bytes,
        base: Path,
        *,
        policy: Policy | None = None,
        way: Way = WORKTREE,
    ) -> Receipt:
        """Land ``patch``, made on the contents of ``base``, or raise and leave all as it is.

        A transaction that landed before gives its receipt, also if it was undone since: to land
        a proposal once more is another transaction.
        """
        name = checked_name(transaction)
        if name.endswith(UNDO):
            raise ValidationError(f"A transaction's name cannot end in {UNDO}: {name}.")
        return await self._in_thread(
            partial(self._apply, name, patch, base, policy or self._policy, way)
        )

    async def undo(self, transaction: str) -> Receipt:
        """Take back what ``transaction`` landed, keeping what was edited since."""
        return await self._in_thread(partial(self._undo, checked_name(transaction)))

    async def recover(self) -> tuple[Recovery, ...]:
        """Settle what a crash left behind; also done before each apply and undo."""
        return await self._in_thread(self._recover)

    async def lookup(self, transaction: str) -> Receipt | None:
        """What became of a transaction; None if it never landed (D3)."""
        return await self._in_thread(partial(self._lookup, checked_name(transaction)))

    async def forget(self, transaction: str) -> None:
        """Drop the record; the transaction cannot be undone any more."""
        return await self._in_thread(partial(self._forget, checked_name(transaction)))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await to_thread.run_sync(work)
        except OSError as problem:
            raise ApplyFailed(
                f"The workspace was left as it was: {disk_says(problem)}."
            ) from problem

    def _check(self, patch: bytes, base: Path, policy: Policy) -> Forecast:
        # Not in the state folder: without the lock, a neighbour would sweep it away.
        fresh = Quarantine(largest_file=policy.max_file_bytes)
        with Tree(self._workspace) as here, Tree(base) as basis, fresh as git:
            inspection = inspect(patch, basis, policy, world=here, quarantine=git)
            if inspection.breaches:
                return Forecast(breaches=inspection.breaches)
            planned = self._blamed(self._plan(inspection.changes, here, git))
        return Forecast(
            changed_files=inspection.changed_files,
            merged=tuple(os.fsdecode(path) for path in planned.merged),
            conflicts=planned.conflicts,
        )

    def _apply(self, name: str, patch: bytes, base: Path, policy: Policy, way: Way) -> Receipt:
        with self._exclusively() as here:
            if (done := self._lookup(name)) is not None:
                return done
            with Tree(base) as basis, self._quarantine(policy) as git:
                changes = inspect(patch, basis, policy, world=here, quarantine=git).insist()
                with self._sealer.seal(name, way, changes, git) as seal:
                    # A branch takes the change without the working tree.
                    here_too = () if isinstance(way, Branch) else changes
                    return self._land(name, Action.APPLY, here_too, here, git, seal=seal)

    def _undo(self, name: str) -> Receipt:
        with self._exclusively() as here:
            if (done := self._lookup(name + UNDO)) is not None:
                return done
            landed = self._files(name).read()
            if landed is None:
                raise nothing_to_undo(name)
            changes = [
                Change(os.fsencode(move.path), before=new, after=old)
                for move, old, new in self._files(name).contents(landed)
            ]
            for led in leading_others_out(links_of(changes), here):
                raise ApplyConflict(
                    f"Nothing was taken back: {led.path} {led.detail}.",
                    conflicts={led.path: led.detail},
                )
            try:
                with (
                    self._quarantine(self._policy) as git,
                    self._sealer.unseal(name + UNDO, landed, git) as seal,
                ):
                    if doers := dict(self._already_back(landed, changes, here, git)):
                        raise taken_back_by(landed, doers)
                    return self._land(name + UNDO, Action.UNDO, changes, here, git, seal=seal)
            except ApplyConflict as conflict:
                with self._fresh_quarantine() as git:
                    later = named(conflict, landed, self._journals(), self._contents, git)
                raise later from None

    def _already_back(
        self, landed: Journal, changes: Sequence[Change], here: Tree, git: Quarantine
    ) -> Iterator[tuple[str, str]]:
        """Paths with nothing left to take back, and the later transaction that has seen to it."""
        planned = plan(changes, here, git)
        busy = {write.path for write in planned.writes}
        idle = [change for change in changes if change.path not in busy]
        if planned.conflicts or not idle:
            return
        later = built_on(landed, self._journals())
        for change in idle:
            path = os.fsdecode(change.path)
            for name in later.get(path, ()):
                if not plan((change,), self._as_left_by(name), git).writes:
                    yield path, name
                    break

    def _as_left_by(self, name: str) -> Held:
        files = self._files(checked_name(name))
        journal = files.read()
        moves = files.contents(journal) if journal else ()
        return Held({os.fsencode(move.path): new for move, _, new in moves if new})

    def _land(
        self,
        name: str,
        action: Action,
        changes: Sequence[Change],
        here: Tree,
        git: Quarantine,
        *,
        seal: Seal | None,
    ) -> Receipt:
        planned = self._plan(changes, here, git)
        if action is Action.APPLY:  # who stands in the way of an undo is told where it is refused
            planned = self._blamed(planned)
        planned.insist(undoing=action is Action.UNDO)
        refuse_read_only([write.path for write in planned.writes], here)
        transaction = Transaction(here, self._files(name))
        return _receipt(transaction.run(name, action, planned, self._fresh_quarantine, seal))

    def _plan(self, changes: Sequence[Change], here: Tree, git: Quarantine) -> Plan:
        planned = plan(changes, here, git)
        paths = [write.path for write in planned.writes]
        conflicts = map(apart, on_another_mount(paths, here, self._state))
        return replace(planned, conflicts=(*planned.conflicts, *conflicts))

    def _recover(self) -> tuple[Recovery, ...]:
        self._refuse_links()
        if not self._state.is_dir():
            return ()
        with self._lock(), Tree(self._workspace) as here:
            return tuple(self._settle(here))

    def _settle(self, here: Tree) -> Iterator[Recovery]:
        """Look for staging areas: a transaction that is settled has none any more."""
        self._sealer.release_locks()
        for folder in sorted(self._state.iterdir()):
            if folder.name.startswith(PREFIX):
                shutil.rmtree(folder, ignore_errors=True)
            if folder.is_symlink() or not (folder / STAGING).is_dir():
                continue
            files = self._files(folder.name)
            journal = files.read()
            if journal is None:
                files.remove()  # it was never more than staged
            elif journal.state is JournalState.COMMITTING and not self._sealer.was_closed(journal):
                yield self._roll_back(Transaction(here, files), journal)
            else:
                yield Transaction(here, files).tidy(self._completed(files, journal))

    def _completed(self, files: TransactionFolder, journal: Journal) -> Journal:
        """The commit is there, so the crash came after the files: let the index follow."""
        if journal.state is JournalState.DONE:
            return journal
        self._sealer.catch_up(journal)
        done = msgspec.structs.replace(journal, state=JournalState.DONE)
        files.write(done)
        return done

    def _blamed(self, planned: Plan) -> Plan:
        if not planned.conflicts:
            return planned
        named = blamed(planned.conflicts, planned.drifted, self._journals())
        return replace(planned, conflicts=tuple(named))

    def _contents(self, name: str, path: str) -> tuple[Entry | None, Entry | None]:
        """A file before and after a transaction."""
        files = self._files(name)
        journal = files.read()
        moves = files.contents(journal) if journal else ()
        return next(((old, new) for move, old, new in moves if move.path == path), (None, None))

    def _journals(self) -> Iterator[Journal]:
        return journals_in(self._state)

    def _roll_back(self, transaction: Transaction, journal: Journal) -> Recovery:
        try:
            return transaction.roll_back(journal, self._fresh_quarantine)
        except OSError as problem:
            raise ApplyFailed(
                f"{journal.transaction} was cut off and cannot be rolled back yet: "
                f"{problem.strerror or problem}. Make room or restore write access, then try again."
            ) from problem

    def _lookup(self, name: str) -> Receipt | None:
        journal = self._files(name).read()
        if journal is None or journal.state is not JournalState.DONE:
            return None
        return _receipt(journal)

    def _forget(self, name: str) -> None:
        with self._exclusively():
            self._files(name + UNDO).remove()
            self._files(name).remove()

    @contextmanager
    def _exclusively(self) -> Iterator[Tree]:
        """The workspace for this call alone, with nothing half done in it."""
        with Tree(self._workspace) as here:
            self._make_state()
            with self._lock():
                for _ in self._settle(here):
                    pass
                yield here

    def _make_state(self) -> None:
        self._refuse_links()
        self._state.parent.mkdir(exist_ok=True)
        self._state.mkdir(mode=0o700, exist_ok=True)  # it keeps copies of what may be private

    def _refuse_links(self) -> None:
        for folder in (self._state.parent, self._state):
            if folder.is_symlink():
                raise ApplyFailed(
                    f"{folder} is a link; what is kept about applies must stay in the workspace. "
                    "Remove the link."
                )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One apply at a time, over threads and processes; freed by the kernel after a crash."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._state / "lock", flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            self._step("locked")
            yield
        finally:
            os.close(fd)

    def _files(self, name: str) -> TransactionFolder:
        return TransactionFolder(self._state / name, self._step)

    def _quarantine(self, policy: Policy) -> Quarantine:
        return Quarantine(largest_file=policy.max_file_bytes, place=self._state)

    def _fresh_quarantine(self) -> Quarantine:
        return self._quarantine(self._policy)


def _receipt(journal: Journal) -> Receipt:
    return Receipt(
        transaction=journal.transaction,
        action=journal.action,
        changed_files=journal.changed_files,
        merged=journal.merged,
        commit=journal.sealed.new if journal.sealed else None,
        ref=journal.sealed.ref if journal.sealed else None,
    )
