"""The page: the built interface, or plain words without it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from agentcanvas.app.server import serve_beside
from agentcanvas.store import Store
from tests.web.office import FakeOffice, started

pytestmark = [pytest.mark.anyio, pytest.mark.req("D39")]

INDEX = "<!doctype html><title>AgentCanvas</title>"


@pytest.fixture
async def built(
    office: FakeOffice, store: Store, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    static = tmp_path_factory.mktemp("ui")
    (static / "assets").mkdir()
    (static / "index.html").write_text(INDEX)
    (static / "assets" / "index-a1b2.js").write_text("export {}")
    (static.parent / "outside.txt").write_text("secret")
    async with (
        serve_beside(office, store, root, port=0, static=static) as info,
        httpx.AsyncClient(
            base_url=info.url, headers={"authorization": f"Bearer {info.token}"}, trust_env=False
        ) as client,
    ):
        yield client


async def test_without_the_interface_a_page_says_so_and_lists_the_runs(
    client: httpx.AsyncClient, office: FakeOffice, root: Path
) -> None:
    assert "None yet" in (await client.get("/")).text
    await office.write("r1", started("<script>alert(1)</script>"))
    page = await client.get("/runs/r1")
    assert page.status_code == 200
    assert "the interface is not built" in page.text
    assert str(root) in page.text
    assert "/api/v1/runs/r1/report" in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>" not in page.text


async def test_without_the_interface_the_page_says_how_to_get_it(client: httpx.AsyncClient) -> None:
    page = (await client.get("/", headers={"accept": "text/html"})).text
    for word in (
        "make ui",
        "AGENTCANVAS_SKIP_UI",
        "pip install --force-reinstall --no-cache-dir agentcanvas",
        "agentcanvas serve",
    ):
        assert f"<code>{word}</code>" in page


@pytest.mark.parametrize("path", ["/", "/index.html", "/runs/r1", "/runs/r1/board?x=1"])
async def test_every_address_of_the_interface_gives_its_page(
    built: httpx.AsyncClient, path: str
) -> None:
    answer = await built.get(path)
    assert answer.text == INDEX
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


async def test_a_file_with_its_hash_in_its_name_is_kept_for_good(built: httpx.AsyncClient) -> None:
    answer = await built.get("/assets/index-a1b2.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/missing.js", "/assets/gone-1.css", "/..%2foutside.txt", "/%2e%2e/outside.txt"]
)
async def test_a_file_that_is_not_there_is_not_the_page(
    built: httpx.AsyncClient, path: str
) -> None:
    answer = await built.get(path)
    assert answer.status_code == 404
    assert answer.json()["payload"]["error_code"] == "NOT_FOUND"


async def test_the_page_is_only_read(built: httpx.AsyncClient) -> None:
    assert (await built.post("/")).status_code == 405
    assert (await built.head("/")).status_code == 200


async def test_without_the_interface_the_page_is_only_read_too(client: httpx.AsyncClient) -> None:
    assert (await client.post("/")).status_code == 405
