"""The thread that keeps projections up to date, behind the commits and never in their way.

What is written where is left to ``projections``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Condition, Thread

from agentcanvas.errors import AgentCanvasError, StoreClosed, StoreError
from agentcanvas.store.projections import Access, Follower, Projection, events_after

_log = logging.getLogger(__name__)

_EVENTS_A_RECORD = 4096
_MOMENT_S = 0.02
"""How many events may have to be written again after a crash; each record costs fsyncs."""


class Projector:
    """Follows the events for all projections, from ``start`` to ``stop``.

    A projection that fails by itself stops, and goes on at the next open. One that the disk or the
    store keeps from writing tries again at the next turn. Others wait for neither.
    """

    def __init__(self, projections: Sequence[Projection], folder: Path, store: Access) -> None:
        self._followers = [Follower(projection, folder, store) for projection in projections]
        self._store = store
        self._stopped: dict[str, str] = {}
        self._hindered: dict[str, str] = {}
        self._changed = Condition()
        self._head = 0
        self._flushes: list[Future[None]] = []
        self._stopping = False
        self._thread = Thread(target=self._run, name="agentcanvas-projector", daemon=True)

    @property
    def complaints(self) -> dict[str, str]:
        """Why each projection is behind that is."""
        return self._hindered | self._stopped

    def start(self, head: int) -> None:
        """Complete the files up to ``head``, then follow."""
        self._head = head
        self._thread.start()

    def follow(self, head: int) -> None:
        """Say, from any thread, that events up to ``head`` are committed."""
        with self._changed:
            self._head = head
            self._changed.notify()

    def flush(self) -> Future[None]:
        """Ask for everything committed so far to be in the files, and these on disk."""
        flushed: Future[None] = Future()
        flushed.set_running_or_notify_cancel()  # whoever stops waiting must not be in our way
        with self._changed:
            if self._stopping:
                raise StoreClosed("The store is closed; its files are complete or will be.")
            self._flushes.append(flushed)
            self._changed.notify()
        return flushed

    def stop(self) -> None:
        """Write what is committed, then end; returns when the thread has ended."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        seen, stopping = -1, False
        while not stopping:
            with self._changed:
                while not (self._head > seen or self._flushes or self._stopping):
                    self._changed.wait()
                # Files are for people: what comes within a moment is written with it, so that a
                # busy store is not held up by them.
                self._changed.wait_for(lambda: self._flushes or self._stopping, _MOMENT_S)
                seen, stopping = self._head, self._stopping
                flushes, self._flushes = self._flushes, []
            self._hindered.clear()
            self._complete()
            self._write_up_to(seen)
            if flushes or stopping or self._much_is_unrecorded():
                self._record()
            for flushed in flushes:
                self._answer(flushed)

    def _able(self) -> list[Follower]:
        complaints = self.complaints
        return [each for each in self._followers if each.name not in complaints]

    def _much_is_unrecorded(self) -> bool:
        return any(each.unrecorded >= _EVENTS_A_RECORD for each in self._able())

    def _complete(self) -> None:
        for each in self._able():
            if not each.ready:
                self._try(each, Follower.complete)

    def _write_up_to(self, head: int) -> None:
        while behind := [each for each in self._able() if each.seq < head]:
            after = min(each.seq for each in behind)
            try:
                events = events_after(self._store, after)
            except AgentCanvasError as error:
                for each in behind:
                    self._complain(self._hindered, each, error)
                return
            if not events:
                return
            for each in behind:
                self._try(each, partial(Follower.follow, events=events))

    def _record(self) -> None:
        for each in self._able():
            self._try(each, Follower.record)

    def _try(self, follower: Follower, work: Callable[[Follower], None]) -> None:
        try:
            work(follower)
        except (AgentCanvasError, OSError) as error:
            self._complain(self._hindered, follower, error)
        except Exception as error:  # noqa: BLE001 - code of others; the thread must live on
            self._complain(self._stopped, follower, error)

    def _complain(self, where: dict[str, str], follower: Follower, error: Exception) -> None:
        where[follower.name] = f"{type(error).__name__}: {error}"
        _log.warning("The files of %s are behind: %s", follower.name, where[follower.name])

    def _answer(self, flushed: Future[None]) -> None:
        if complaints := self.complaints:
            text = "; ".join(f"{name}: {why}" for name, why in sorted(complaints.items()))
            flushed.set_exception(StoreError(f"Files are behind the store. {text}"))
        else:
            flushed.set_result(None)
