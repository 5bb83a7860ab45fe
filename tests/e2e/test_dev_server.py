"""``make dev``: Vite serves the page from its sources, over the API of a running server."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import anyio
import pytest

from agentcanvas.app.office import open_office
from agentcanvas.app.server import read_info
from hatch_build import Page as Toolchain
from hatch_build import PageNotBuilt, npm_command
from tests.e2e.browser import Page
from tests.e2e.conftest import do_without
from tests.runs.workspaces import repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("U5")]

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


@asynccontextmanager
async def dev_server(server: str) -> AsyncIterator[str]:
    """What ``make dev`` starts, at a port of its own; gives its address."""
    toolchain = Toolchain(ROOT)
    try:
        command, environment = npm_command()
    except PageNotBuilt:
        do_without("there is no Node here, so nobody tried make dev: make ui")
    if not (toolchain.modules / "vite").exists():
        do_without("the packages of the page are not here, so nobody tried make dev: make ui")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await anyio.open_process(
        [*command, "run", "dev", "--", "--port", str(port), "--strictPort"],
        cwd=toolchain.source,
        env={**environment, "AGENTCANVAS_SERVER": server, "NO_COLOR": "1"},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,  # npm leaves its child behind
    )
    try:
        assert process.stdout is not None
        said = ""
        with anyio.fail_after(PATIENCE_S):
            while (found := re.search(r"Local: +(\S+)", said)) is None:
                said += (await process.stdout.receive()).decode()
        yield found[1]
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself, which the test has noticed
            os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()


async def test_the_page_of_the_sources_is_live_over_a_running_server(
    page: Page, tmp_path: Path
) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    async with open_office(root, serve=True, port=0) as office:
        info = read_info(root)
        assert info is not None
        async with dev_server(info.url) as address:
            await page.goto(info.link)  # its cookie is for every port of this machine
            page.complaints.clear()
            await page.goto(f"{address}#/runs")
            assert await page.look("!!document.querySelector('script[src*=\"@vite/client\"]')")
            await page.wait_for_text(".connection", "Live")
            await page.role("button", "New run").first.click()
            await page.tab.get_by_label("What should be done?").fill("Add a greeting")
            await page.tab.get_by_placeholder("my-agent").fill("echo hi > hi.txt; echo done")
            await page.role("button", "Start").click()
            await page.wait_for_text(".waiting", "Waiting for you")
            await page.wait_for_text(".collab-card", "1 file changed")
            (run,) = await office.runs()
            assert run.request == "Add a greeting"
            assert page.complaints == []
