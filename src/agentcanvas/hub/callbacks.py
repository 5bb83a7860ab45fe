"""Calls to the address that a task names, once it has ended (H8, C10).

The message that ended the task is sent there by POST, in the words of MAC and signed by the hub, to
permitted hosts only. Each call is a row, written with the end of the task, so that it outlives the
hub; it is made at least once, and an id tells a repeat. The form is that of Standard Webhooks: a
receiver needs no token of ours, only the hub's public key.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import anyio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, StoreDamaged, StoreError
from agentcanvas.hub import audit, mailbox
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.audit import EntryType
from agentcanvas.hub.events import CallbackEnded, CallOutcome, EventKind, encode, stream_of
from agentcanvas.hub.notices import HUB
from agentcanvas.hub.router import key_of
from agentcanvas.protocol.dialects import MAC
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.limits import Limits
from agentcanvas.store import Snapshot, Store, Transaction

Calling: TypeAlias = Callable[[str, dict[str, str], bytes], Awaitable[int]]
"""Send a body to an address; give the status of the answer, or raise ``OSError`` without one."""

PUBLIC_MARK = "whpk_"
_KEY = "callback_key"
_AT_ONCE = 8
_LOOKS_EVERY_S = 0.25
"""No more often, however much is said in the hub."""

_A_SECOND_MS = 1_000
_OK, _REDIRECTS, _BAD, _SERVERS_FAULT = 200, 300, 400, 500
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429})


class _Row(NamedTuple):
    session: str
    message: str
    ending: str
    url: str
    tries: int


class Verdict(NamedTuple):
    """What is to be written about a try; without an outcome there will be another."""

    outcome: CallOutcome | None
    reason: str = ""


class Signer:
    """The hub's own key; the private half is in the store and nowhere else."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    async def load(cls, store: Store) -> Signer:
        """Read it, made when it is first needed."""
        seed = await store.transact(_seed)
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public(self) -> str:
        """What a receiver checks signatures with."""
        raw = self._key.public_key().public_bytes_raw()
        return PUBLIC_MARK + base64.b64encode(raw).decode()

    def headers(self, id_: str, at_s: int, body: bytes) -> dict[str, str]:
        """Say which call it is, and sign it."""
        signature = self._key.sign(b"%b.%d.%b" % (id_.encode(), at_s, body))
        return {
            "content-type": "application/json",
            "webhook-id": id_,
            "webhook-timestamp": str(at_s),
            "webhook-signature": f"v1a,{base64.b64encode(signature).decode()}",
        }


class Callbacks:
    """Makes the calls of one hub."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, call: Calling) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits.callback
        self._pauses = limits.acp.retry
        self._hosts = tuple(limits.callback.hosts.replace(",", " ").lower().split())
        self._call = call
        self._signer: Signer | None = None

    async def run(self) -> None:
        """Make calls until cancelled."""
        while True:
            head = self._store.head
            due, next_ms = await self._store.read(partial(_due, now_ms=self._clock.now_ms()))
            if due:
                async with anyio.create_task_group() as group:
                    for row in due:
                        group.start_soon(self._make, row)
                continue
            await self._clock.sleep(_LOOKS_EVERY_S)
            await self._wait(head, next_ms)

    async def _wait(self, head: int, next_ms: int | None) -> None:
        """Return when something was said, or when a call is due again."""
        if next_ms is None:
            await self._store.wait_beyond(head)
            return
        pause_s = max(0.0, (next_ms - self._clock.now_ms()) / 1000)
        with anyio.CancelScope() as scope:
            limit = ring_at(self._clock, self._clock.monotonic() + pause_s, scope.cancel)
            try:
                await self._store.wait_beyond(head)
            finally:
                limit.cancel()

    async def _make(self, row: _Row) -> None:
        """Make one call, and write down what came of it."""
        refused = why_not(row.url, self._hosts)
        if refused:
            verdict = Verdict(CallOutcome.SKIPPED, refused)
        else:
            verdict = await self._tried(row)
        tries = row.tries + (verdict.outcome is not CallOutcome.SKIPPED)
        if verdict.outcome is None and tries >= self._limits.attempts:
            verdict = Verdict(CallOutcome.FAILED, verdict.reason)
        pause_ms = self._pauses.pause_ms(max(1, tries))
        try:
            await self._store.transact(
                lambda transaction: _write(transaction, row, verdict, tries, pause_ms)
            )
        except StoreError:  # a full disk: it is made again, but not at once
            await self._clock.sleep(max(pause_ms, _A_SECOND_MS) / 1000)

    async def _tried(self, row: _Row) -> Verdict:
        envelope = await self._store.read(lambda look: _ending(look, row))
        if envelope is None:
            return Verdict(CallOutcome.FAILED, "the message that ended the task was forgotten")
        try:
            body = MAC.encode(envelope)
        except AgentCanvasError as wrong:
            return Verdict(CallOutcome.FAILED, f"it cannot be said in MAC: {wrong}")
        if self._signer is None:
            self._signer = await Signer.load(self._store)
        headers = self._signer.headers(row.ending, self._clock.now_ms() // 1000, body)
        try:
            return judge(await self._call(row.url, headers, body))
        except OSError as wrong:
            return Verdict(None, f"nobody answered: {type(wrong).__name__}")


def judge(status: int) -> Verdict:
    """Say what an answer means."""
    if _OK <= status < _REDIRECTS:
        return Verdict(CallOutcome.CALLED)
    said = f"the answer was {status}"
    if status >= _SERVERS_FAULT or status in _WORTH_ANOTHER_TRY:
        return Verdict(None, said)
    if _REDIRECTS <= status < _BAD:
        return Verdict(CallOutcome.FAILED, f"{said}, and redirects are not followed")
    return Verdict(CallOutcome.FAILED, said)


def why_not(url: str, hosts: Sequence[str]) -> str:
    """Say why an address is not called; empty when it is.

    A host is named as it stands in the address; ``host:port`` permits one port, ``*.domain`` what
    is below a domain.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "it is no address"
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        return "it is no address of http or https"
    if "@" in parts.netloc:
        return "it holds a name or a password"
    shown = f"[{host}]" if ":" in host else host
    names = {shown, f"{shown}:{port or (443 if parts.scheme == 'https' else 80)}"}
    for allowed in hosts:
        if allowed in names or (allowed.startswith("*.") and host.endswith(allowed[1:])):
            return ""
    return f"{shown} is not among the hosts that may be called (callback.hosts)"


def host_of(url: str) -> str:
    """Where an address leads; what is behind the host may be a secret."""
    try:
        parts = urlsplit(url)
        shown = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return f"{parts.scheme}://{shown}"[:200] if parts.scheme.isascii() and shown else ""


# -- rows ------------------------------------------------------------------------------------------


def _due(look: Snapshot, now_ms: int) -> tuple[list[_Row], int | None]:
    """Read which calls are due, and when the next one is."""
    rows = look.query(
        "SELECT session, message, ending, url, tries FROM hub_callbacks "
        "INDEXED BY hub_callbacks_due WHERE state = 'due' AND next_ms <= ? "
        "ORDER BY next_ms LIMIT ?",
        (now_ms, _AT_ONCE),
    )
    later = look.one(
        "SELECT min(next_ms) FROM hub_callbacks INDEXED BY hub_callbacks_due WHERE state = 'due'"
    )
    return [_Row(*row) for row in rows], later[0] if later else None


def _ending(look: Snapshot, row: _Row) -> Envelope | None:
    found = look.one(
        "SELECT seq FROM hub_letters WHERE key = ? AND id = ? AND session = ? ORDER BY seq",
        (key_of(row.ending), row.ending, row.session),
    )
    try:
        return mailbox.content(look, found[0])[0] if found else None
    except StoreDamaged:  # kept no longer
        return None


def _write(
    transaction: Transaction, row: _Row, verdict: Verdict, tries: int, pause_ms: int
) -> None:
    """Keep what came of a try; what is settled is put on record."""
    settled = verdict.outcome
    transaction.execute(
        "UPDATE hub_callbacks SET state = ?, tries = ?, next_ms = ? "
        "WHERE session = ? AND message = ?",
        (
            settled.value if settled else "due",
            tries,
            transaction.at_ms + pause_ms,
            row.session,
            row.message,
        ),
    )
    if settled is not None:
        event = CallbackEnded(row.message, host_of(row.url), settled, tries, verdict.reason)
        transaction.append(stream_of(row.session), EventKind.CALLBACK, encode(event))
        audit.note(
            transaction,
            EntryType.CALLBACK,
            subject=row.message,
            sender=HUB,
            recipient=event.host,
            status=settled.value,
            session=row.session,
        )


def _seed(transaction: Transaction) -> bytes:
    row = transaction.one("SELECT value FROM meta WHERE key = ?", (_KEY,))
    if row is None:
        seed = Ed25519PrivateKey.generate().private_bytes_raw()
        value = base64.b64encode(seed).decode()
        transaction.execute("INSERT INTO meta VALUES (?, ?)", (_KEY, value))
        return seed
    return base64.b64decode(row[0])
