"""What this server offers, said in the languages of tools: OpenAPI and AsyncAPI (M1)."""

from __future__ import annotations

from typing import Any

from agentcanvas.hub import frames
from agentcanvas.protocol import schema
from agentcanvas.protocol.schema import Schema, components
from agentcanvas.web.agent_socket import ConnectQuery
from agentcanvas.web.api import Api
from agentcanvas.web.blobs import BlobsApi
from agentcanvas.web.hub_api import HubApi
from agentcanvas.web.messages import MessagesApi
from agentcanvas.web.metrics import MetricsApi
from agentcanvas.web.openapi import openapi
from agentcanvas.web.operation import Described, Operation, operation
from agentcanvas.web.planning import PlanningApi

PREFIX = "/api/v1"
_APIS: tuple[type[Any], ...] = (Api, PlanningApi, HubApi, MessagesApi, BlobsApi)
_DELIVERY = {
    "delivery": {
        "description": "The hub's own member, always the last; take it off before a signature is "
        "verified.",
        "$ref": "#/components/schemas/frame.Delivery",
    }
}


def documents() -> dict[str, Schema]:
    """Each description by its file name."""
    return {"openapi.json": openapi(described()), "asyncapi.json": asyncapi()}


def described() -> dict[str, list[Described]]:
    """Every operation there is, whichever server offers it, by the prefix of its address."""
    return {"": _operations_of(MetricsApi), PREFIX: _operations_of(*_APIS, DescriptionsApi)}


def _operations_of(*apis: type[Any]) -> list[Described]:
    # Nothing is asked of an API here but which methods it has.
    routes = [route for api in apis for route in object.__new__(api).routes()]
    return [route.described for route in routes if isinstance(route, Operation)]


def asyncapi() -> Schema:
    """The WebSocket of agents: the messages, and what is said about them."""
    document = schema.asyncapi()
    words = {"word": frames.Word, "receipts": frames.Receipts, "settled": frames.Settled}
    types = [*words.values(), frames.Delivery, ConnectQuery]
    references, parts = components(types, "#/components/schemas/frame.{name}")
    found, channel = document["components"], document["channels"]["agent"]
    query = channel["bindings"]["ws"]["query"]
    for name, form in parts.pop(ConnectQuery.__name__)["properties"].items():
        query["properties"].setdefault(name, form)
    found["schemas"] |= {f"frame.{name}": part for name, part in parts.items()}
    for (name, kind), payload in zip(words.items(), references, strict=False):
        found["messages"][f"frame.{name}"] = {
            "name": name,
            "title": name.capitalize(),
            "summary": (kind.__doc__ or "").strip().splitlines()[0],
            "contentType": "application/json",
            "payload": payload,
        }
        channel["messages"][f"frame.{name}"] = {"$ref": f"#/components/messages/frame.{name}"}
    found["messageTraits"] = {
        "delivered": {
            "description": "What the hub delivers has one more member.",
            "headers": {"type": "object", "properties": _DELIVERY},
        }
    }
    document["operations"] |= _operations()
    return document


def _operations() -> Schema:
    def of(name: str, action: str, summary: str) -> Schema:
        return {
            "action": action,
            "channel": {"$ref": "#/channels/agent"},
            "summary": summary,
            "messages": [{"$ref": f"#/channels/agent/messages/frame.{name}"}],
        }

    return {
        "acknowledge": of("word", "receive", "The agent says what became of messages it got."),
        "confirm": of("receipts", "send", "The hub has kept messages; they are on disk."),
        "settle": of("settled", "send", "The hub has heard a word that asked for an answer."),
    }


class DescriptionsApi:
    """Gives the descriptions out; they hold no secret, so that nobody has to show a token."""

    def routes(self) -> list[Operation]:
        """Every document at its address."""
        return [
            operation("GET", "/openapi.json", self.openapi),
            operation("GET", "/asyncapi.json", self.asyncapi),
        ]

    async def openapi(self) -> dict[str, Any]:
        """Every HTTP operation, as OpenAPI."""
        return documents()["openapi.json"]

    async def asyncapi(self) -> dict[str, Any]:
        """The WebSocket of agents, as AsyncAPI."""
        return documents()["asyncapi.json"]
