"""``agentcanvas hub``: processes that know only an address and a token work together (D1, H1)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import agentcanvas
from agentcanvas.app.hub_server import serve_hub
from agentcanvas.app.server import find_server_in
from agentcanvas.errors import ResourceError, StoreBusy
from tests.app.hub_process import hub_beside, hub_process, tokens_for, ws

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1", "H1")]

ROOT = Path(__file__).parents[2]


@contextmanager
def agent_process(url: str, token: str) -> Iterator[None]:
    """Run an agent until the block ends, and give it no chance to say goodbye."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.agent_child", url, token],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )
    try:
        yield
    finally:
        child.kill()
        child.wait()


async def test_two_processes_talk_through_a_third(tmp_path: Path) -> None:
    tokens = await tokens_for(tmp_path, "doubler", "me")
    with hub_process(tmp_path) as (url, hub), agent_process(ws(url), tokens["doubler"]):
        async with agentcanvas.connect(ws(url), agent="me", token=tokens["me"]) as client:
            answer = await client.request("doubler", "double", 21)
            assert answer.output == {"twice": 42}
    assert hub.returncode == 0


async def test_a_hub_says_where_it_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with hub_beside(tmp_path) as (info, _):
        assert await find_server_in(tmp_path) == info
        with pytest.raises(StoreBusy):
            await hub_beside(tmp_path).__aenter__()
    assert await find_server_in(tmp_path) is None


async def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    async with hub_beside(tmp_path / "one") as (info, _):
        port = int(info.url.rpartition(":")[2])
        with pytest.raises(ResourceError, match=f"The port {port} of 127.0.0.1 is in use; name"):
            await serve_hub(tmp_path / "two", port=port).__aenter__()


async def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="name a folder that you may write to"):
        await serve_hub(tmp_path / "file" / "hub").__aenter__()
