"""One hub for all tests of a file: each has a session of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.app.hub_process import hub_beside
from tests.interaction.floor import Floor


@pytest.fixture(scope="module")
async def floor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Floor]:
    """Give a hub that serves its doors, and does not wait long before it tries again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTCANVAS_ACP_RETRY_BACKOFF_MS", "20ms")
        async with hub_beside(tmp_path_factory.mktemp("hub")) as (info, hub):
            yield Floor(info.url, hub)
