"""OpenTelemetry spans of messages and turns, for interactions that ask for them (``traces: true``).

Spans are made from the run's events, after the fact and with their own times, so that tracing can
neither slow a run nor break one. The packages are an extra: ``pip install agentcanvas[traces]``.
Where spans go is said by the usual OTEL_* variables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from msgspec import UNSET

from agentcanvas._version import __version__
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.model import Flow
from agentcanvas.flows.settle import settle
from agentcanvas.runs import events as e
from agentcanvas.store import Store

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NS_A_MS = 1_000_000


def why_no_traces(environ: Mapping[str, str]) -> str:
    """What keeps spans from being sent, with the next step; empty when nothing does."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return "traces: true needs the packages of: pip install 'agentcanvas[traces]'"
    if not any(environ.get(name) for name in ENDPOINTS):
        return f"traces: true sends nothing until {ENDPOINTS[0]} says where"
    return ""


def advice(flow: Flow, environ: Mapping[str, str]) -> list[str]:
    """What the user of a flow that asks for traces should know."""
    asks = any(each.observability.traces for each in settle(flow, CATALOGUE))
    return [why] if asks and (why := why_no_traces(environ)) else []


@asynccontextmanager
async def tracing(store: Store, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Send spans of what happens while the block lasts, if they can go anywhere."""
    if why_no_traces(environ):
        yield
        return
    # Imported when they are wanted: most users have neither the packages nor a use for them.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  # see above
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # see above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # see above

    provider = TracerProvider(resource=Resource.create({"service.name": "agentcanvas"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        async with traced(store, provider.get_tracer("agentcanvas", __version__)):
            yield
    finally:
        await anyio.to_thread.run_sync(provider.shutdown)


@asynccontextmanager
async def traced(store: Store, tracer: Tracer) -> AsyncIterator[None]:
    """Follow the store's events from now on; all that has happened is told before leaving."""
    spans = Spans(tracer)
    cursor = _Cursor(store, spans.take)
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cursor.follow)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again below, outside the task group
            raised = error
        finally:
            tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await cursor.catch_up()
    spans.close()
    if raised is not None:
        raise raised


class _Cursor:
    """Reads run events as they are committed."""

    def __init__(self, store: Store, take: Callable[[e.Recorded], None]) -> None:
        self._store = store
        self._take = take
        self._after = store.head

    async def follow(self) -> None:
        while True:
            await self._store.wait_beyond(self._after)
            await self.catch_up()

    async def catch_up(self) -> None:
        while rows := await self._store.events(after=self._after):
            for row in rows:
                self._after = row.seq
                if row.kind in e.KINDS:
                    self._take(e.from_row(row))


class Spans:
    """Turns events into spans: an interaction, its turns, and the messages of each."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._interactions: dict[tuple[str, str], Span] = {}
        self._turns: dict[tuple[str, str], Span] = {}

    def take(self, entry: e.Recorded) -> None:
        """Begin or end what an event is about."""
        name = entry.event.interaction_id or ""
        match entry.event:
            case e.InteractionStarted(payload=configured) if configured.traces:
                self._interactions[entry.run_id, name] = self._begin(
                    f"interaction {name}",
                    entry,
                    None,
                    {"agentcanvas.pattern": configured.pattern_id},
                )
            case e.TurnStarted(payload=begun) if (entry.run_id, name) in self._interactions:
                self._begin_turn(entry, begun, self._interactions[entry.run_id, name])
            case e.TurnEnded(payload=done):
                self._end_turn(entry, done)
            case e.InteractionEnded(payload=end):
                span = self._interactions.pop((entry.run_id, name), None)
                if span is not None:
                    span.set_attribute("agentcanvas.reason", end.reason)
                    span.end(entry.ts * _NS_A_MS)
            case _:
                pass

    def close(self) -> None:
        """End what is still open; it goes on in another process, if at all."""
        for span in (*self._turns.values(), *self._interactions.values()):
            span.end()
        self._turns.clear()
        self._interactions.clear()

    def _begin_turn(self, entry: e.Recorded, begun: e.TurnBegun, parent: Span) -> None:
        span = self._begin(
            f"invoke_agent {begun.to}",
            entry,
            parent,
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": begun.to,
                "agentcanvas.role": begun.role,
                "agentcanvas.task_id": begun.task_id,
                "agentcanvas.attempt": begun.attempt,
            },
        )
        self._turns[entry.run_id, begun.turn_id] = span
        self._message("send task.assign", entry, span, begun.message_id)

    def _end_turn(self, entry: e.Recorded, done: e.TurnDone) -> None:
        from opentelemetry.trace import StatusCode  # noqa: PLC0415  # an extra; see the docstring

        span = self._turns.pop((entry.run_id, done.turn_id), None)
        if span is None:
            return
        self._message(f"receive task.{'complete' if done.ok else 'fail'}", entry, span, "")
        usage = entry.event.usage
        if usage is not None:
            told = {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.response.model": usage.model,
            }
            span.set_attributes({k: v for k, v in told.items() if v is not UNSET})
        if not done.ok:
            span.set_status(StatusCode.ERROR, done.reason)
        span.end(entry.ts * _NS_A_MS)

    def _message(self, name: str, entry: e.Recorded, parent: Span, message_id: str) -> None:
        attributes: dict[str, str | int] = {"messaging.system": "agentcanvas"}
        if message_id:
            attributes["messaging.message.id"] = message_id
        self._begin(name, entry, parent, attributes).end(entry.ts * _NS_A_MS)

    def _begin(
        self,
        name: str,
        entry: e.Recorded,
        parent: Span | None,
        attributes: Mapping[str, str | int],
    ) -> Span:
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415  # an extra

        return self._tracer.start_span(
            name,
            context=set_span_in_context(parent) if parent is not None else None,
            start_time=entry.ts * _NS_A_MS,
            attributes={"agentcanvas.run_id": entry.run_id, **attributes},
        )
