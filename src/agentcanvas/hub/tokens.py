"""Tokens: how somebody is recognised at a door (H6, D26).

A token is random, shown once and kept only as a hash. Whoever shows it is its principal. The key an
agent signs with follows from its token (D34), so that the hub can check signatures while the agent
is there and keeps no secret of it at all.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct

from agentcanvas.clock import Clock
from agentcanvas.errors import NotFound, Unauthenticated, ValidationError
from agentcanvas.hub import audit
from agentcanvas.hub.audit import EntryType
from agentcanvas.hub.guard import Principal, PrincipalKind, Scope, is_agent
from agentcanvas.hub.notices import HUB
from agentcanvas.hub.redaction import TOKEN, TOKEN_MARK
from agentcanvas.protocol.envelope import BROADCAST
from agentcanvas.protocol.seal import Algorithm, Key, secret_material
from agentcanvas.store import Snapshot, Store, Transaction

_ID_BYTES = 8
_ID_CHARS = 12
_SECRET_BYTES = 32
_NAME_CHARS = 200
_SIGNING = b"agentcanvas-signing-key-v1"
_WORDS = msgspec.json.Decoder(tuple[str, ...])


class IssuedToken(Struct, frozen=True):
    """A new token; ``text`` is shown once and nowhere kept."""

    id: str
    text: str
    principal: Principal

    def __repr__(self) -> str:
        return f"IssuedToken(id={self.id!r}, principal={self.principal!r})"


class TokenCard(Struct, frozen=True):
    """What is known of a token afterwards."""

    id: str
    principal: Principal
    made_ms: int
    revoked_ms: int | None = None


class _Row(Struct, frozen=True):
    card: TokenCard
    hash: bytes


class Tokens:
    """All tokens of a store. Rows are the truth; memory mirrors them, since every door asks."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rows: dict[str, _Row] = {}

    async def load(self) -> None:
        """Read what there is."""
        self._rows = {row.card.id: row for row in await self._store.read(_load)}

    async def issue(
        self,
        name: str,
        kind: PrincipalKind = PrincipalKind.AGENT,
        *,
        scopes: Iterable[Scope] = (),
        permissions: Iterable[str] = (),
    ) -> IssuedToken:
        """Make a token for an agent, a person or a door."""
        _check_name(name, kind)
        id_ = base64.b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower()[:_ID_CHARS]
        text = f"{TOKEN_MARK}{id_}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        principal = Principal(name, kind, frozenset(scopes), frozenset(permissions))
        row = _Row(TokenCard(id_, principal, self._clock.now_ms()), _hash(text))
        await self._store.transact(lambda transaction: _write(transaction, row))
        self._rows[id_] = row
        return IssuedToken(id_, text, principal)

    def authenticate(self, shown: str | None, *, claimed: str | None = None) -> Principal:
        """Recognise whoever shows a token; ``claimed`` is who it says it is, if it says so.

        Why a token is refused is not said: the reason would help only someone who guesses.
        """
        id_ = token_id(shown)
        row = self._rows.get(id_) if id_ else None
        # Compared also when there is nothing to compare with, so that both take the same time.
        expected = row.hash if row is not None else bytes(sha256().digest_size)
        same = hmac.compare_digest(_hash(shown or ""), expected)
        if row is None or not same or row.card.revoked_ms is not None:
            raise Unauthenticated("The token is missing, wrong or revoked; ask for a new one.")
        principal = row.card.principal
        if claimed is not None and claimed != principal.id:
            raise Unauthenticated(
                f"The token is not that of {claimed[:80]!r}; use the name it was made for."
            )
        return principal

    def is_good(self, id_: str) -> bool:
        """Tell whether there is a token of this id that was not revoked."""
        row = self._rows.get(id_)
        return row is not None and row.card.revoked_ms is None

    def cards(self) -> list[TokenCard]:
        """List all tokens, oldest first; what they open is not kept and cannot be shown."""
        return sorted((row.card for row in self._rows.values()), key=lambda card: card.made_ms)

    async def revoke(self, id_or_name: str) -> list[TokenCard]:
        """Refuse a token, or all of a principal's, from now on."""
        found = [
            row
            for row in self._rows.values()
            if id_or_name in (row.card.id, row.card.principal.id) and row.card.revoked_ms is None
        ]
        if not found:
            raise NotFound(f"There is no token {id_or_name!r} to revoke; list them to see which.")
        now_ms = self._clock.now_ms()
        revoked = [
            _Row(msgspec.structs.replace(row.card, revoked_ms=now_ms), row.hash) for row in found
        ]
        for row in revoked:  # nobody gets in while it is written, and for good when it is not
            self._rows[row.card.id] = row
        await self._store.transact(lambda transaction: _revoke(transaction, revoked))
        return [row.card for row in revoked]


def token_id(shown: str | None) -> str | None:
    """Tell which token this is, from its own text."""
    if shown is None or TOKEN.fullmatch(shown) is None:
        return None
    return shown[len(TOKEN_MARK) : len(TOKEN_MARK) + _ID_CHARS]


def signing_key(token: str, owner: str) -> Key:
    """Return the key that the holder of a token signs with; its id is the token's."""
    id_ = token_id(token)
    if id_ is None:
        raise ValidationError("This is no token; take the whole line that was shown.")
    material = hmac.digest(token.encode(), _SIGNING, "sha256")
    algorithm = Algorithm.HMAC_SHA256
    return Key(
        owner=owner, id=id_, algorithm=algorithm, material=secret_material(algorithm, material)
    )


def _check_name(name: str, kind: PrincipalKind) -> None:
    if not name or len(name) > _NAME_CHARS or not name.isprintable() or name in (HUB, BROADCAST):
        raise ValidationError(
            f"{name[:40]!r} cannot be a name; use 1 to {_NAME_CHARS} printable characters, but not "
            f"{HUB!r} or {BROADCAST!r}."
        )
    if kind is PrincipalKind.ENGINE:
        raise ValidationError("The engine needs no token; it works inside the hub's process.")
    fits = is_agent(name) if kind is PrincipalKind.AGENT else name.startswith(f"{kind}:")
    if not fits:
        wanted = "no prefix" if kind is PrincipalKind.AGENT else f"the prefix {kind}:"
        raise ValidationError(f"The name of a {kind} has {wanted}; {name[:40]!r} has not.")


def _hash(token: str) -> bytes:
    # Plain SHA-256: 256 random bits cannot be guessed, so nothing is gained by a slow hash.
    return sha256(token.encode(errors="replace")).digest()


def _write(transaction: Transaction, row: _Row) -> None:
    card, principal = row.card, row.card.principal
    transaction.execute(
        "INSERT INTO hub_tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
        (
            card.id,
            row.hash,
            principal.id,
            principal.kind.value,
            msgspec.json.encode(sorted(principal.scopes)).decode(),
            msgspec.json.encode(sorted(principal.permissions)).decode(),
            card.made_ms,
        ),
    )
    _note(transaction, card, "made")


def _revoke(transaction: Transaction, rows: Iterable[_Row]) -> None:
    for row in rows:
        transaction.execute(
            "UPDATE hub_tokens SET revoked_ms = ? WHERE id = ?", (row.card.revoked_ms, row.card.id)
        )
        _note(transaction, row.card, "revoked")


def _note(transaction: Transaction, card: TokenCard, status: str) -> None:
    audit.note(
        transaction,
        EntryType.TOKEN,
        subject=card.id,
        sender=HUB,
        recipient=card.principal.id,
        status=status,
    )


def _load(look: Snapshot) -> list[_Row]:
    rows = look.query(
        "SELECT id, hash, principal, kind, scopes, permissions, made_ms, revoked_ms FROM hub_tokens"
    )
    return [
        _Row(
            TokenCard(
                id_,
                Principal(
                    name,
                    PrincipalKind(kind),
                    frozenset(Scope(each) for each in _WORDS.decode(scopes)),
                    frozenset(_WORDS.decode(permissions)),
                ),
                made_ms,
                revoked_ms,
            ),
            bytes(hash_),
        )
        for id_, hash_, name, kind, scopes, permissions, made_ms, revoked_ms in rows
    ]
