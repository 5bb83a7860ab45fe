"""What a run has settled, step by step, so that it can be replayed (D4).

A step is one use of a Stage verb, named by its call path. Its result is recorded once, with the
hash of what was asked; a replay that asks something else under the same name has diverged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from agentcanvas.errors import RunDiverged
from agentcanvas.store import Event, Store, Transaction

STEP = "step"

T = TypeVar("T")


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """A settled step: its name, the hash of its request, and its result."""

    step: str
    request: str
    result: msgspec.Raw


class Journal:
    """The settled steps of one run, in the store and at hand."""

    def __init__(self, store: Store, stream: str, settled: dict[str, Step]) -> None:
        self._store = store
        self._stream = stream
        self._settled = settled

    @classmethod
    async def open(cls, store: Store, stream: str) -> Journal:
        """Read what was settled before."""
        settled: dict[str, Step] = {}
        after = 0
        while rows := await store.events(after=after, stream=stream):
            settled |= {step.step: step for step in map(_read, rows) if step is not None}
            after = rows[-1].seq
        return cls(store, stream, settled)

    def __len__(self) -> int:
        return len(self._settled)

    def recall(self, name: str, request: object, kind: type[T]) -> T | None:
        """The result of a step that was settled before; None when it was not."""
        step = self._settled.get(name)
        if step is None:
            return None
        if step.request != fingerprint(request):
            raise RunDiverged(
                f"The step {name} asks for something else than when it was settled. The flow or "
                "a pattern was changed; start a new run, or go back to what it was."
            )
        return msgspec.json.decode(step.result, type=kind)

    async def settle(
        self,
        name: str,
        request: object,
        result: object,
        also: Callable[[Transaction], object] | None = None,
    ) -> None:
        """Record a result, in one transaction with whatever belongs to it (D3)."""
        step = Step(name, fingerprint(request), msgspec.Raw(msgspec.json.encode(result)))
        body = msgspec.json.encode(step)

        def record(transaction: Transaction) -> None:
            transaction.append(self._stream, STEP, body)
            if also is not None:
                also(transaction)

        await self._store.transact(record)
        self._settled[name] = step


def fingerprint(request: object) -> str:
    """A short name for what was asked; the same for the same request, also tomorrow."""
    return hashlib.sha256(msgspec.json.encode(request, order="deterministic")).hexdigest()[:32]


def _read(row: Event) -> Step | None:
    return msgspec.json.decode(row.body, type=Step) if row.kind == STEP else None
