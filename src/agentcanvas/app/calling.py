"""Calling an address of somebody else over HTTP: a POST, and of the answer only its status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from agentcanvas.hub.callbacks import Calling


@asynccontextmanager
async def caller(timeout_s: float) -> AsyncIterator[Calling]:
    """Have calls made until the block ends; redirects are answers like others."""
    # No proxy, no credentials of this machine's files: only what is said here goes out.
    async with httpx.AsyncClient(
        timeout=timeout_s, follow_redirects=False, trust_env=False
    ) as client:

        async def call(url: str, headers: dict[str, str], body: bytes) -> int:
            try:
                # Not read: an answer may be as long as somebody likes.
                async with (
                    asyncio.timeout(timeout_s),
                    client.stream("POST", url, headers=headers, content=body) as answer,
                ):
                    return answer.status_code
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as wrong:
                raise ConnectionError(type(wrong).__name__) from wrong

        yield call
