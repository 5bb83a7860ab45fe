"""How a hub is doing, as Prometheus text at ``/metrics``: counts and times, never content.

Numbers are read when they are asked for; what has to be gathered on the way is ``latency``'s.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.responses import Response

from agentcanvas.hub.guard import Scope, check_scope
from agentcanvas.hub.presence import AgentState
from agentcanvas.store import Snapshot, Store
from agentcanvas.web.doors import Doors
from agentcanvas.web.messages import AgentHeaders, AgentQuery
from agentcanvas.web.operation import Operation, operation

PATH = "/metrics"
_INBOXES_NAMED = 100
"""The fullest; a series for each of thousands would be a burden to whoever gathers them."""


class MetricsApi:
    """``GET /metrics``, for the server's token or a door that may read."""

    def __init__(self, doors: Doors, store: Store, token: str) -> None:
        self._doors = doors
        self._store = store
        self._token = token

    def routes(self) -> list[Operation]:
        """The one operation."""
        return [operation("GET", PATH, self.metrics)]

    async def metrics(self, query: AgentQuery, headers: AgentHeaders) -> Response:
        """How the hub is doing."""
        shown = query.shown(headers).token or ""
        if not hmac.compare_digest(shown.encode(), self._token.encode()):
            check_scope(self._doors.tokens.authenticate(shown), Scope.READ)
        inboxes = await self._store.read(_fullest)
        registry = CollectorRegistry()
        registry.register(_Families([*self._counts(), *_depths(inboxes), *self._others()]))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    def _counts(self) -> Iterator[Metric]:
        counts = self._doors.hub.broker.statistics()
        kept = CounterMetricFamily(
            "agentcanvas_messages",
            "Messages handed in, by what became of them.",
            labels=["outcome"],
        )
        for outcome, number in (
            ("kept", counts.posted),
            ("repeated", counts.repeated),
            ("refused", counts.refused),
        ):
            kept.add_metric([outcome], number)
        yield kept
        for name, about, number in (
            ("delivered", "Messages handed out, every time counted.", counts.delivered),
            ("redelivered", "Messages handed out once more: retries.", counts.redelivered),
            ("taken", "Messages acknowledged.", counts.taken),
            ("dead_letters", "Messages given up since the start.", counts.dead),
        ):
            yield CounterMetricFamily(f"agentcanvas_{name}", about, value=number)
        in_hand = "Messages in their recipients' hands."
        yield GaugeMetricFamily("agentcanvas_in_flight", in_hand, value=counts.in_flight)

    def _others(self) -> Iterator[Metric]:
        about = "Open connections, by the door they came through."
        connections = GaugeMetricFamily("agentcanvas_connections", about, labels=["door"])
        for door, number in self._doors.connections.items():
            connections.add_metric([door], number)
        yield connections
        agents = GaugeMetricFamily("agentcanvas_agents", "Known agents.", labels=["state"])
        states = [card.state for card in self._doors.hub.presence.cards()]
        for state in AgentState:
            agents.add_metric([state.value], states.count(state))
        yield agents
        latency = self._doors.latency
        yield HistogramMetricFamily(
            "agentcanvas_hand_in_seconds",
            "From the arrival of a message to its receipt, on disk or refused.",
            buckets=latency.buckets(),
            sum_value=latency.sum,
        )


class _Families(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._found = families

    def collect(self) -> Iterable[Metric]:
        """Give what was gathered."""
        return self._found


def _depths(inboxes: list[tuple[str, int]]) -> Iterator[Metric]:
    total, *named = inboxes
    yield GaugeMetricFamily(
        "agentcanvas_queue_depth", "Messages that wait in all inboxes.", value=total[1]
    )
    depth = GaugeMetricFamily(
        "agentcanvas_inbox_depth",
        f"Messages that wait in the {_INBOXES_NAMED} fullest inboxes.",
        labels=["agent"],
    )
    for agent, waiting in named:
        depth.add_metric([agent], waiting)
    yield depth


def _fullest(look: Snapshot) -> list[tuple[str, int]]:
    total = look.one("SELECT coalesce(sum(waiting), 0) FROM hub_inboxes")
    rows = look.query(
        "SELECT agent, waiting FROM hub_inboxes WHERE waiting > 0 ORDER BY waiting DESC LIMIT ?",
        (_INBOXES_NAMED,),
    )
    return [("", total[0] if total else 0), *((agent, waiting) for agent, waiting in rows)]
