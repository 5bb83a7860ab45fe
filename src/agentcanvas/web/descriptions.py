"""What this server offers, said in the languages of tools: OpenAPI and AsyncAPI (M1)."""

from __future__ import annotations

from typing import Any

from agentcanvas.protocol.schema import Schema
from agentcanvas.web.api import Api
from agentcanvas.web.asyncapi import asyncapi
from agentcanvas.web.blobs import BlobsApi
from agentcanvas.web.hub_api import HubApi
from agentcanvas.web.messages import MessagesApi
from agentcanvas.web.metrics import MetricsApi
from agentcanvas.web.openapi import openapi
from agentcanvas.web.operation import Described, Operation, operation
from agentcanvas.web.planning import PlanningApi

PREFIX = "/api/v1"
_APIS: tuple[type[Any], ...] = (Api, PlanningApi, HubApi, MessagesApi, BlobsApi)


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
