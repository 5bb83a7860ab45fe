"""OpenAI's client, as both of its protocols use it here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
from msgspec import UNSET, UnsetType

from agentcanvas.agents.runtimes.model.endpoint import Address
from agentcanvas.agents.runtimes.model.endpoints import failures


def client_for(address: Address) -> openai.AsyncOpenAI:
    """Make a client that does not try again by itself: the runtime does, and says so."""
    return openai.AsyncOpenAI(api_key=address.key, base_url=address.url, max_retries=0)


@contextmanager
def told_apart() -> Iterator[None]:
    """Have whatever goes wrong with a call raised in our words."""
    try:
        yield
    except openai.APIStatusError as error:
        raise failures.of_status(error) from error
    except openai.APIConnectionError as error:
        timed_out = isinstance(error, openai.APITimeoutError)
        raise failures.of_connection(error, timed_out=timed_out) from error
    except (openai.OpenAIError, httpx2.HTTPError, *failures.NOT_UNDERSTOOD) as error:
        raise failures.of_stream(error) from error


def tokens(count: Any) -> int | UnsetType:
    """A count as far as there is one."""
    return count if isinstance(count, int) and count >= 0 else UNSET
