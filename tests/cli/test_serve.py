"""``agentcanvas serve`` as a person uses it, with an office that only reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from agentcanvas.app.server import info_path

ROOT = Path(__file__).parents[2]

# The real command, server and store; only the office is a stand-in.
PROGRAM = """
import sys, types
from contextlib import asynccontextmanager
from agentcanvas.app.server import serve_beside
from agentcanvas.app.workspace import ensure_folder, store_path
from agentcanvas.store import Store
from tests.web.office import FakeOffice

@asynccontextmanager
async def open_office(root, *, serve, port, resume, use):
    assert serve
    ensure_folder(root)
    async with await Store.open(store_path(root)) as store:
        office = FakeOffice(store)
        async with serve_beside(office, store, root, port=port, use=use):
            yield office

sys.modules["agentcanvas.app.office"] = types.SimpleNamespace(open_office=open_office)
from agentcanvas.cli import main
main()
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-u", "-c", PROGRAM, "serve", "--no-browser", *words]


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the link it prints."""
    with subprocess.Popen(
        command("--port", "0"),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            assert first.startswith("AgentCanvas is at http://127.0.0.1:"), first
            assert "Ctrl-C" in process.stdout.readline()
            yield process, first.split()[-1]
        finally:
            process.kill()


@pytest.mark.req("D1")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_it_prints_a_link_that_works_and_ends_in_good_order(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    with serving(tmp_path) as (process, link):
        page = httpx.get(link, follow_redirects=True, trust_env=False)
        assert page.status_code == 200
        assert "token" not in str(page.url)
        process.send_signal(sent)
        _, said = process.communicate()
        assert process.returncode == code
        assert "Traceback" not in said
    assert not info_path(tmp_path).exists()


@pytest.mark.req("D1")
def test_a_second_one_shows_the_first_and_leaves(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, link):
        second = subprocess.run(
            command(),
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 0, second.stderr
        assert f"Process {process.pid} serves this workspace already." in second.stdout
        assert link in second.stdout


def test_a_server_that_nobody_needs_ends_by_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--port", "0", "--idle-minutes", "0"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "AgentCanvas is at" in done.stdout
    assert not info_path(tmp_path).exists()
