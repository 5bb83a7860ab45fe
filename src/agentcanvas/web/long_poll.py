"""An answer that may take a while, and is not worked out for somebody who has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentcanvas.web.operation import JSON


class LongPoll(Response):
    """Sends the JSON that ``work`` comes to; its errors are answered like those of any handler."""

    def __init__(self, work: Callable[[], Awaitable[bytes]]) -> None:
        super().__init__(media_type=JSON)
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the work, or for the asker to leave."""
        working = asyncio.ensure_future(self._work())
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await Response(working.result(), media_type=JSON)(scope, receive, send)
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.wait({working, leaving})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
