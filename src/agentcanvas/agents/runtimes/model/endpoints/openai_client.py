"""OpenAI's client, as both of its protocols use it here."""

from __future__ import annotations

from typing import Any

import openai
from msgspec import UNSET, UnsetType

from agentcanvas.agents.runtimes.model.endpoint import Address


def client_for(address: Address) -> openai.AsyncOpenAI:
    """Make a client that does not try again by itself: the runtime does, and says so."""
    return openai.AsyncOpenAI(api_key=address.key, base_url=address.url, max_retries=0)


def tokens(count: Any) -> int | UnsetType:
    """A count as far as there is one."""
    return count if isinstance(count, int) and count >= 0 else UNSET
