"""Messages, and a hub on a store, as the tests of the hub need them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.broker import Broker, Inbox, Parcel, Post, Receipt, Settlement
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.events import EventKind, stream_of
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.router import to_one
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import (
    AgentStatus,
    Body,
    Heartbeat,
    Kind,
    StatusQuery,
    TaskAssign,
    TaskProgress,
    TaskResult,
)
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Store

TIME = "2026-01-28T10:00:00Z"
ENGINE = Principal("engine:run-1", PrincipalKind.ENGINE)


def message(sender: str, recipient: str | None, text: str = "hello", **fields: Any) -> Envelope:
    """Make a plain message; it opens and ends no task."""
    return of_kind(Kind.STATUS_QUERY, sender, recipient, StatusQuery(query_type=text), **fields)


def of_kind(kind: Kind, sender: str, recipient: str | None, body: Body, **fields: Any) -> Envelope:
    """Make a message of any kind."""
    if recipient is not None:
        fields["recipient"] = AgentRef(recipient)
    fields.setdefault("id", new_id())
    return Envelope(kind=kind, time=TIME, sender=AgentRef(sender), body=body, **fields)


def assign(sender: str, recipient: str, task: str, **fields: Any) -> Envelope:
    """Give somebody a task."""
    body = TaskAssign(task_id=task, input=freeze("do it"))
    return of_kind(Kind.TASK_ASSIGN, sender, recipient, body, **fields)


def complete(sender: str, recipient: str | None, task: str, **fields: Any) -> Envelope:
    """Say that a task is done."""
    body = TaskResult(task_id=task, summary="done")
    return of_kind(Kind.TASK_COMPLETE, sender, recipient, body, **fields)


def progress(sender: str, recipient: str, task: str, **fields: Any) -> Envelope:
    """Say how far a task is."""
    return of_kind(Kind.TASK_PROGRESS, sender, recipient, TaskProgress(task_id=task), **fields)


def heartbeat(sender: str, **fields: Any) -> Envelope:
    """Say that one lives."""
    return of_kind(Kind.HEARTBEAT, sender, "hub", Heartbeat(status=AgentStatus.ACTIVE, **fields))


def text_of(envelope: Envelope) -> str:
    """Read a plain message."""
    assert isinstance(envelope.body, StatusQuery)
    assert isinstance(envelope.body.query_type, str)
    return envelope.body.query_type


def texts(parcels: Iterable[Parcel]) -> list[str]:
    """Read plain messages."""
    return [text_of(parcel.envelope) for parcel in parcels]


def post(sender: str, recipient: str, text: str = "hello", **fields: Any) -> Post:
    """Make a message that is ready for a broker."""
    session = fields.pop("in_session", "default")
    return to_one(message(sender, recipient, text, **fields), session, recipient)


async def send(broker: Broker, *texts: str, to: str = "b", **fields: Any) -> None:
    """Send plain messages from ``a``, all of which must be kept."""
    for outcome in await broker.post([post("a", to, text, **fields) for text in texts]):
        assert isinstance(outcome, Receipt), outcome


async def take_all(inbox: Inbox, number: int) -> list[Parcel]:
    """Take and acknowledge so many parcels."""
    taken: list[Parcel] = []
    while len(taken) < number:
        parcels = await inbox.take(number - len(taken))
        await inbox.settle([parcel.number for parcel in parcels], Settlement.TAKEN)
        taken += parcels
    return taken


@asynccontextmanager
async def a_broker(
    store: Store, clock: VirtualClock, rules: DeliveryRules | None = None
) -> AsyncIterator[EmbeddedBroker]:
    """Open a broker whose chance is always the same."""
    async with EmbeddedBroker.open(
        store, clock=clock, rules=rules or DeliveryRules(jitter=0), chance=Random(7)
    ) as broker:
        yield broker


@asynccontextmanager
async def a_hub(
    store: Store,
    clock: VirtualClock,
    members: Sequence[str] = ("a", "b", "c"),
    rules: DeliveryRules | None = None,
) -> AsyncIterator[Hub]:
    """Open a hub whose default session has these members."""
    async with a_broker(store, clock, rules) as broker, Hub.open(broker, store, clock=clock) as hub:
        await hub.sessions.open("default", members=members)
        yield hub


async def events(store: Store, kind: EventKind, session: str = "default") -> list[dict[str, Any]]:
    """Read what is on record in a session."""
    return await events_in(store, stream_of(session), kind)


async def events_in(store: Store, stream: str, kind: EventKind) -> list[dict[str, Any]]:
    """Read what is on record in a stream."""
    found = await store.events(stream=stream, limit=100_000)
    return [msgspec.json.decode(event.body) for event in found if event.kind == kind]
