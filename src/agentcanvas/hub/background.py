"""Work that goes on beside a block, for as long as the block lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio


@asynccontextmanager
async def beside(
    *work: Callable[[], Coroutine[object, object, None]],
    ending: Callable[[], Coroutine[object, object, None]] | None = None,
) -> AsyncIterator[None]:
    """Run ``work`` until the block ends, however it ends; ``ending`` first has its last word.

    What the block raises comes out as it is, not as part of a group.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        for each in work:
            group.start_soon(each)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again below
            raised = error
        finally:
            if ending is not None:
                await ending()
            group.cancel_scope.cancel()
    if raised is not None:
        raise raised
