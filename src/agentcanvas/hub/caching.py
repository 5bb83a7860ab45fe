"""Answers that are still good: only for tasks that their agent declares cacheable (L1).

An agent declares it by the capability ``cacheable:<task type>``. Nobody is given an answer that
somebody else asked for, and only good ones are kept, for an hour unless told otherwise.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.hub.broker import Parcel
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.failures import failure_in
from agentcanvas.hub.journal import Choice, Journal
from agentcanvas.hub.recovery import Asking, Wrapper, recipient_of
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.limits import AcpPerformance

CACHEABLE = "cacheable:"
_ENTRIES = 1_000

Declared: TypeAlias = Callable[[str, str], bool]
"""Whether an agent, by name, declares a task type cacheable."""


class Recalled(Delivery, frozen=True):
    """An answer from memory: there is nothing to acknowledge."""

    async def ack(self) -> bool:
        """Need nothing: it was taken over when it came."""
        return False

    async def nack(self) -> None:
        """Need nothing: it was taken over when it came."""


class ResponseCache:
    """Good answers, each until its time; the one that was used least lately goes first."""

    def __init__(self, *, ttl_s: float, most: int = _ENTRIES) -> None:
        self._ttl_s = ttl_s
        self._most = most
        self._kept: OrderedDict[bytes, tuple[float, Delivery]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes, now: float) -> Delivery | None:
        """Return an answer that is still good."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= now:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return found[1]

    def put(self, key: bytes, answer: Delivery, now: float) -> None:
        """Keep an answer."""
        self._kept[key] = (now + self._ttl_s, answer)
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


_DEFAULTS = AcpPerformance()


class Caching(Wrapper):
    """Recalls answers to the same question."""

    def __init__(
        self,
        asking: Asking,
        declared: Declared,
        clock: Clock,
        *,
        settings: AcpPerformance = _DEFAULTS,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(asking, journal=journal)
        self._declared = declared
        self._clock = clock
        self._enabled = settings.enable_caching
        self.cache = ResponseCache(ttl_s=settings.cache_ttl_s)

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask, unless the answer is known."""
        key = self._key(envelope, on_behalf_of)
        if key is not None and (known := self.cache.get(key, self._clock.monotonic())):
            await self._note(Choice.RECALLED, envelope)
            return _recalled(known, envelope)
        delivery = await self._asking.request(
            envelope, timeout_s=timeout_s, on_behalf_of=on_behalf_of
        )
        answer = delivery.envelope
        good = answer.kind is Kind.TASK_COMPLETE and failure_in(answer, envelope) is None
        if key is not None and good and answer.encrypted is not True:
            self.cache.put(key, delivery, self._clock.monotonic())
        return delivery

    def _key(self, envelope: Envelope, on_behalf_of: OnBehalfOf | UnsetType) -> bytes | None:
        body, to = envelope.body, recipient_of(envelope)
        if not self._enabled or not isinstance(body, TaskAssign):
            return None
        action = body.task_type or body.action
        if not action or not self._declared(to, action):
            return None
        question = (
            envelope.sender,
            to,
            envelope.session,
            envelope.security,
            on_behalf_of,
            msgspec.structs.replace(body, task_id=UNSET, callback_url=UNSET, deadline=UNSET),
        )
        return sha256(msgspec.json.encode([_or_none(each) for each in question])).digest()


def _or_none(value: object) -> object:
    return None if value is UNSET else value


def _recalled(known: Delivery, asked: Envelope) -> Recalled:
    body = known.envelope.body
    if isinstance(body, TaskResult):
        body = msgspec.structs.replace(body, task_id=asked.task_id or UNSET)
    envelope = msgspec.structs.replace(
        known.envelope,
        id=new_id(),
        reply_to=asked.id,
        correlation_id=asked.correlation_id or asked.id,
        body=body,
    )
    return Recalled(Parcel(known.number, known.session, envelope), known.connection)
