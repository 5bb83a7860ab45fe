"""What a model runtime has to know: which protocol its model speaks, and how far it may go."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agentcanvas.errors import FlowError

_ANTHROPIC_HOST = "api.anthropic.com"


class Api(StrEnum):
    """The protocol of an endpoint."""

    CHAT = "chat"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"

    @property
    def key_env(self) -> str:
        """The variable in which its key is usually kept."""
        return "ANTHROPIC_API_KEY" if self is Api.ANTHROPIC else "OPENAI_API_KEY"

    @property
    def url_env(self) -> str:
        """The variable in which another address than the vendor's is usually kept."""
        return "ANTHROPIC_BASE_URL" if self is Api.ANTHROPIC else "OPENAI_BASE_URL"


class ModelOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``options:`` of a model runtime in a flow."""

    api: Api | None = None
    system: str = ""
    max_steps: Annotated[int, Meta(ge=1, le=1000)] = 60
    """How often the model is asked in one turn."""
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    attempts: Annotated[int, Meta(ge=1, le=10)] = 3
    """How often one call is tried when the endpoint is busy or out of reach."""

    def api_of(self, model: str, url: str | None) -> Api:
        """The protocol that was named, else the one that goes with the address or the model."""
        if self.api is not None:
            return self.api
        if _ANTHROPIC_HOST in (url or "") or (url is None and model.startswith("claude")):
            return Api.ANTHROPIC
        return Api.CHAT


def read_options(given: Mapping[str, Any], agent: str) -> ModelOptions:
    """Read what a flow says; a mistake names the agent and the field."""
    try:
        return msgspec.convert(dict(given), ModelOptions)
    except msgspec.ValidationError as wrong:
        known = ", ".join(ModelOptions.__struct_fields__)
        raise FlowError(
            f"The options of {agent} cannot be used: {wrong}. A model runtime knows {known}."
        ) from None
