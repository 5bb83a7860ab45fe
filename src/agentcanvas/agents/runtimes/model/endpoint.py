"""The seam to an endpoint: a conversation in, a reply out, its words heard as they come."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from agentcanvas.agents.runtimes.model.conversation import Entry, Reply
from agentcanvas.agents.runtimes.model.options import Api
from agentcanvas.agents.tools import Tool
from agentcanvas.errors import FlowError
from agentcanvas.protocol.records import FailureClass

ENOUGH_OUTPUT_TOKENS = 16_384
"""Where an endpoint has to be told a limit and the flow names none."""


class Hear(Protocol):
    """Hears words while they are said."""

    def text(self, words: str) -> None:
        """Hear words of the answer."""
        ...

    def thinking(self, words: str) -> None:
        """Hear words the model says to itself."""
        ...


class Request(Struct, frozen=True, kw_only=True):
    """One call of a model."""

    model: str
    entries: Sequence[Entry]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None


class Endpoint(Protocol):
    """Where a model is called; ``CallFailed`` is all that comes out of it but replies."""

    async def reply(self, request: Request, hear: Hear) -> Reply:
        """Have the model answer."""
        ...

    async def close(self) -> None:
        """Let go of its connections."""
        ...


class CallFailed(Exception):
    """A call that brought no reply, and what may be done about it."""

    def __init__(
        self,
        error_class: FailureClass,
        message: str,
        *,
        again: bool = False,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.again = again
        """Whether the same call may go well in a moment."""
        self.wait_s = wait_s
        """How long the endpoint asked to be left alone."""


class Address(Struct, frozen=True, kw_only=True):
    """Where an endpoint is; None is the vendor's own place."""

    url: str | None
    key: str


OpenEndpoint = Callable[[Api, Address], Endpoint]


_MODULES = {
    Api.CHAT: ("openai_chat", "Chat"),
    Api.RESPONSES: ("openai_responses", "Responses"),
    Api.ANTHROPIC: ("anthropic_messages", "Messages"),
}


def open_endpoint(api: Api, address: Address) -> Endpoint:
    """Connect by the vendor's client; it is an extra, because not every team has such a member."""
    module, name = _MODULES[api]
    try:
        made = importlib.import_module(f"{__package__}.endpoints.{module}")
    except ImportError as missing:
        raise FlowError(
            f"A model over the {api} protocol needs the package '{missing.name}'; install it with: "
            "pip install 'agentcanvas[models]'"
        ) from missing
    endpoint: Endpoint = getattr(made, name)(address)
    return endpoint
