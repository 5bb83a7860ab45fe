"""Tokens, principals, scopes and permissions: who gets in, and what they may ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    Disconnected,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    ValidationError,
)
from agentcanvas.hub import guard
from agentcanvas.hub.audit import Trail
from agentcanvas.hub.broker import Receipt
from agentcanvas.hub.guard import Principal, PrincipalKind, Scope
from agentcanvas.hub.redaction import TOKEN
from agentcanvas.hub.tokens import Tokens, signing_key, token_id
from agentcanvas.protocol.envelope import Security
from agentcanvas.protocol.seal import Keyring, sign, verify
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, assign, message

pytestmark = [pytest.mark.anyio, pytest.mark.req("H6", "D26")]


async def test_a_token_is_shown_once_and_kept_only_as_a_hash(
    store: Store, clock: VirtualClock
) -> None:
    tokens = Tokens(store, clock)
    issued = await tokens.issue("worker-1", permissions=["files.read"])
    assert TOKEN.fullmatch(issued.text)
    assert tokens.authenticate(issued.text) == issued.principal
    assert issued.text not in repr(issued)
    rows = await store.read(lambda look: look.query("SELECT * FROM hub_tokens"))
    secret = issued.text.split("_", 2)[2]  # which may have more of them
    assert secret.encode() not in repr(rows).encode()
    assert all(secret.encode() not in line for line in await Trail(store).export())
    (card,) = tokens.cards()
    assert card.principal.permissions == {"files.read"}


async def test_tokens_are_random_and_survive_a_restart(store: Store, clock: VirtualClock) -> None:
    tokens = Tokens(store, clock)
    issued = [await tokens.issue("worker-1") for _ in range(20)]
    assert len({each.text for each in issued}) == 20
    later = Tokens(store, clock)
    with pytest.raises(Unauthenticated):
        later.authenticate(issued[0].text)
    await later.load()
    assert later.authenticate(issued[0].text).id == "worker-1"


async def test_a_revoked_token_opens_nothing_any_more(store: Store, clock: VirtualClock) -> None:
    tokens = Tokens(store, clock)
    first, second = await tokens.issue("worker-1"), await tokens.issue("worker-1")
    await tokens.revoke(first.id)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(first.text)
    assert tokens.authenticate(second.text).id == "worker-1"
    assert len(await tokens.revoke("worker-1")) == 1
    with pytest.raises(NotFound, match="list them"):
        await tokens.revoke("worker-1")
    later = Tokens(store, clock)
    await later.load()
    for issued in (first, second):
        with pytest.raises(Unauthenticated):
            later.authenticate(issued.text)
    statuses = [entry.status for _, entry in await Trail(store).entries()]
    assert statuses == ["made", "made", "revoked", "revoked"]


async def test_whatever_is_wrong_with_a_token_the_answer_is_the_same_and_does_not_repeat_it(
    store: Store, clock: VirtualClock
) -> None:
    tokens = Tokens(store, clock)
    issued = await tokens.issue("worker-1")
    gone = await tokens.issue("worker-2")
    await tokens.revoke(gone.id)
    wrong = issued.text[:-1] + ("A" if issued.text[-1] != "A" else "B")
    sentences = set()
    for shown in (None, "", "x", wrong, gone.text, issued.text + "x", "\udcff", "act_" * 50):
        with pytest.raises(Unauthenticated) as caught:
            tokens.authenticate(shown)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


async def test_a_token_is_for_one_name(store: Store, clock: VirtualClock) -> None:
    tokens = Tokens(store, clock)
    issued = await tokens.issue("worker-1")
    assert tokens.authenticate(issued.text, claimed="worker-1").id == "worker-1"
    with pytest.raises(Unauthenticated, match="not that of 'worker-2'") as caught:
        tokens.authenticate(issued.text, claimed="worker-2")
    assert issued.text not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", PrincipalKind.AGENT),
        ("hub", PrincipalKind.AGENT),
        ("broadcast", PrincipalKind.AGENT),
        ("x" * 201, PrincipalKind.AGENT),
        ("line\nbreak", PrincipalKind.AGENT),
        ("engine:run-1", PrincipalKind.AGENT),
        ("person:ann", PrincipalKind.AGENT),
        ("ann", PrincipalKind.PERSON),
        ("engine:run-1", PrincipalKind.ENGINE),
    ],
)
async def test_nobody_gets_a_token_for_a_name_that_is_not_theirs_to_have(
    store: Store, clock: VirtualClock, name: str, kind: PrincipalKind
) -> None:
    with pytest.raises(ValidationError):
        await Tokens(store, clock).issue(name, kind)


def test_agents_have_their_inbox_doors_their_scopes_and_people_everything() -> None:
    door = Principal("door:mcp", PrincipalKind.DOOR, frozenset({Scope.READ, Scope.RUN}))
    guard.check_scope(door, Scope.RUN)
    for scope in Scope:
        guard.check_scope(Principal("person:ann", PrincipalKind.PERSON), scope)
        with pytest.raises(PermissionDenied, match=f"may not {scope}"):
            guard.check_scope(Principal("worker"), scope)
    with pytest.raises(PermissionDenied, match="may not review"):
        guard.check_scope(door, Scope.REVIEW)


@pytest.mark.req("H11")
async def test_a_message_needs_every_permission_it_names_and_none_if_it_names_none(
    store: Store, clock: VirtualClock
) -> None:
    security = Security(permissions=("files.read", "files.write"))
    async with a_hub(store, clock) as hub:
        for held, allowed in (
            ((), False),
            (("files.read",), False),
            (("files.read", "files.write", "more"), True),
            (("*",), True),
        ):
            sender = Principal("a", permissions=frozenset(held))
            asked = assign("a", "b", f"t/{held}", security=security)
            if allowed:
                assert isinstance(await hub.send(sender, asked), Receipt)
            else:
                with pytest.raises(PermissionDenied, match=r"lacks the permission .*files\.write"):
                    await hub.send(sender, asked)
        await hub.send(Principal("a"), assign("a", "b", "plain"))


async def test_the_signing_key_follows_from_the_token_and_is_known_by_its_id(
    store: Store, clock: VirtualClock
) -> None:
    issued = await Tokens(store, clock).issue("worker-1")
    other = await Tokens(store, clock).issue("worker-1")
    theirs, ours = (signing_key(issued.text, "worker-1") for _ in range(2))
    sent: dict[str, Any] = {
        "message_id": "5a0c7c1e-7d3c-4b7e-9b39-0b7b4b7f6d11",
        "type": "HEARTBEAT",
        "from": "worker-1",
        "to": "hub",
        "timestamp": clock.now(),
        "payload": {"status": "ACTIVE"},
    }
    raw = json.dumps(sign(sent, theirs)).encode()
    assert verify(raw, Keyring([ours]), now_ms=clock.now_ms()).signer == "worker-1"
    assert ours.id == token_id(issued.text) == issued.id
    assert signing_key(other.text, "worker-1").secret_bytes() != ours.secret_bytes()
    with pytest.raises(ValidationError, match="no token"):
        signing_key("act_nonsense", "worker-1")


async def test_whoever_is_expelled_is_disconnected(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        link = await hub.connect(Principal("a"))
        await hub.connect(Principal("b"))
        assert await hub.expel("a") == 1
        with pytest.raises(Disconnected):
            await link.send(message("a", "b"))
        with pytest.raises(Disconnected):
            await link.receive(1)
        assert await hub.expel("a") == 0
