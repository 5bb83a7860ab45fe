"""Commits and branches of one workspace: made along with the files, taken back, caught up with.

``sealing`` knows how one is made; here is when: which way was asked for, what a crash left behind.
A recovery never moves a ref. It asks whether the ref had moved, and lets the index follow.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import LandingRefused, ValidationError
from agentcanvas.proposals.index_lock import IndexLock
from agentcanvas.proposals.journal import sync_folder
from agentcanvas.proposals.repository import Repository
from agentcanvas.proposals.sealing import (
    Commission,
    dropping,
    has_happened,
    restage,
    reversed_changes,
)
from agentcanvas.proposals.ways import Branch, Commit, Worktree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agentcanvas.clock import Clock
    from agentcanvas.proposals.journal import Journal
    from agentcanvas.proposals.patch import Change
    from agentcanvas.proposals.quarantine import Quarantine
    from agentcanvas.proposals.transaction import Seal
    from agentcanvas.proposals.ways import Way

_LOCKING: Final = ".locking"


class Sealer:
    """``state`` is the folder of the workspace's journals."""

    def __init__(
        self, workspace: Path, state: Path, clock: Clock, step: Callable[[str], None]
    ) -> None:
        self._workspace = workspace
        self._state = state
        self._clock = clock
        self._step = step

    @contextmanager
    def seal(
        self, name: str, way: Way, changes: Sequence[Change], git: Quarantine
    ) -> Iterator[Seal | None]:
        """What has to become true along with the files, ready but for the last step."""
        if isinstance(way, Worktree):
            yield None
            return
        repository = Repository.of(self._workspace)
        who, now = repository.identity(), self._clock.now_ms()
        making = Commission(repository, name, git, self._step)
        if isinstance(way, Branch):
            with making.on_branch(way, changes, who, now) as seal:
                yield seal
        else:
            with self._marked(name), making.on_head(way, changes, who, now) as seal:
                yield seal

    @contextmanager
    def unseal(self, name: str, landed: Journal, git: Quarantine) -> Iterator[Seal | None]:
        """The way back: a commit is reverted by another one, a branch goes."""
        sealed = landed.sealed
        if sealed is None or sealed.new is None:
            yield None
            return
        repository = Repository.of(self._workspace)
        if sealed.is_branch:
            yield dropping(repository, sealed, repository.identity(), self._step)
            return
        changes = reversed_changes(repository, sealed)
        back = Commit(sealed.message.reverting(sealed.new))
        with self.seal(name, back, changes, git) as seal:
            yield seal

    def was_closed(self, journal: Journal) -> bool:
        """Whether a transaction that was cut off had come to its commit."""
        sealed = journal.sealed
        return sealed is not None and has_happened(Repository.of(self._workspace), sealed)

    def catch_up(self, journal: Journal) -> None:
        """The commit is there; let the index follow, if it had no time to."""
        if journal.sealed is None or not journal.sealed.entered:
            return
        repository = Repository.of(self._workspace)
        lock = IndexLock(repository.git_dir, journal.transaction)
        with self._marked(journal.transaction):
            restage(repository, lock, journal.sealed.entered)

    def release_locks(self) -> None:
        """Let go of locks that a crash left on the user's index."""
        for mark in sorted(self._state.glob("*" + _LOCKING)):
            name = mark.name.removesuffix(_LOCKING)
            with suppress(LandingRefused, ValidationError):  # no repository, or no mark of ours
                IndexLock(Repository.of(self._workspace).git_dir, name).release()
            mark.unlink()

    @contextmanager
    def _marked(self, name: str) -> Iterator[None]:
        """A mark by which a recovery knows that the lock of the index may be ours."""
        mark = self._state / (name + _LOCKING)
        mark.touch()
        sync_folder(self._state)
        try:
            yield
        finally:
            mark.unlink()
