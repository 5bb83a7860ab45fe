"""How runs stand, at the price of what happened since somebody last looked.

A state is a fold over events (``state``). Of a long run it is kept as a row of its own now and
then, and the fold goes on from there. Such a row is only a shortcut: one that is damaged, or was
made by another version of the fold, is passed over, and everything is folded again.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, partial

import msgspec

from agentcanvas.errors import AgentCanvasError, StoreDamaged
from agentcanvas.runs import events as e
from agentcanvas.runs import payloads
from agentcanvas.runs import state as folding_rules
from agentcanvas.runs.state import Folding, RunState
from agentcanvas.store import Snapshot, Store, Transaction

KIND = "snapshot"
EVERY = 5000
WORTH_KEEPING = 200
"""So many events of a run that has ended are worth a row of their own."""

_PREFIX = "snapshots/"
_PAGE = 1000
_PART = 100_000
"""In characters: an event has a largest size, and a run may have any number of tasks."""


class Account(msgspec.Struct, frozen=True):
    """How a run stands, with what the list of runs tells about it; times in milliseconds."""

    state: RunState = RunState()
    started_ms: int = 0
    last_ms: int = 0
    tokens: int = 0
    cost: float = 0.0
    is_estimate: bool = False
    """Whether some of what was used is guessed, since its agent did not say it."""


class _Kept(msgspec.Struct, frozen=True):
    version: str
    account: Account


_decoder = msgspec.json.Decoder(_Kept)
_text = msgspec.json.Decoder(str)


def stream_of(run_stream: str) -> str:
    """Where the snapshot of a run is kept."""
    return _PREFIX + run_stream


class Snapshots:
    """The accounts of all runs of a store."""

    def __init__(self, store: Store, *, every: int = EVERY) -> None:
        self._store = store
        self._every = every

    async def account(self, stream: str, *, keep_after: int | None = None) -> Account:
        """How a run stands; kept if more than so many events had to be read for it."""
        account, read = await self._store.read(partial(account_in, stream=stream))
        if read >= (self._every if keep_after is None else keep_after):
            with suppress(AgentCanvasError):  # it can be made again at any time
                await self._store.transact(partial(_keep, stream=stream, account=account))
        return account

    async def state(self, stream: str) -> RunState:
        """The state alone."""
        return (await self.account(stream)).state


def account_in(look: Snapshot, stream: str) -> tuple[Account, int]:
    """The account of a run, and how many events had to be read for it."""
    making = _Making(_kept(look, stream) or Account())
    after, read = making.seq, 0
    while page := look.events(after=after, stream=stream, limit=_PAGE):
        making.add(e.from_row(row) for row in page if row.kind in e.KINDS)
        after = page[-1].seq
        read += len(page)
        if len(page) < _PAGE:
            break
    return making.account(), read


class _Making:
    """An account that events are added to."""

    def __init__(self, account: Account) -> None:
        self.seq = account.state.seq
        self._folding = Folding(account.state)
        self._started_ms = account.started_ms if self.seq else None
        self._last_ms = account.last_ms
        self._tokens = account.tokens
        self._cost = account.cost
        self._is_estimate = account.is_estimate

    def add(self, entries: Iterable[e.Recorded]) -> None:
        add = self._folding.add
        for entry in entries:
            add(entry)
            if self._started_ms is None:
                self._started_ms = entry.ts
            self._last_ms = entry.ts
            event = entry.event
            if isinstance(event, e.TurnEnded) and event.payload.charge is not None:
                self._tokens += event.payload.charge.tokens
                self._cost += event.payload.charge.cost
                self._is_estimate |= event.payload.charge.estimated

    def account(self) -> Account:
        return Account(
            self._folding.state(),
            self._started_ms or 0,
            self._last_ms,
            self._tokens,
            self._cost,
            self._is_estimate,
        )


def _kept(look: Snapshot, stream: str) -> Account | None:
    try:
        parts = [_text.decode(row.body) for row in look.events(stream=stream_of(stream))]
        kept = _decoder.decode("".join(parts)) if parts else None
    except (StoreDamaged, msgspec.MsgspecError):
        return None
    _, _, run_id = stream.rpartition("/")
    if kept is None or kept.version != _version() or kept.account.state.run_id != run_id:
        return None
    return kept.account


def _keep(transaction: Transaction, stream: str, account: Account) -> None:
    """Keep an account instead of the one before; nobody else has an interest in that."""
    name = stream_of(stream)
    transaction.execute("DELETE FROM events WHERE stream = ?", (name,))
    whole = msgspec.json.encode(_Kept(_version(), account)).decode()
    parts = [whole[start : start + _PART] for start in range(0, len(whole), _PART)]
    transaction.append_many([(name, KIND, msgspec.json.encode(part)) for part in parts])


@cache
def _version() -> str:
    """What a snapshot is good for only: the text of the rules it was folded by."""
    makers = (folding_rules, e, payloads, Account)
    rules = "".join(inspect.getsource(maker) for maker in makers)
    return hashlib.sha256(rules.encode()).hexdigest()[:16]
