"""Blobs: what is too large for a message travels by the hash of its content (D35)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest

from agentcanvas.hub.office import TokenOrder
from tests.app.hub_process import hub_beside

pytestmark = [pytest.mark.anyio, pytest.mark.req("D35")]

CONTENT = b"\x00\x01 a patch, an image, a transcript " * 1000


class Keeper:
    """An agent with blobs."""

    def __init__(self, client: httpx.AsyncClient, token: str) -> None:
        self.client = client
        self.headers = {"authorization": f"Bearer {token}"}

    async def put(self, content: bytes, name: str = "") -> httpx.Response:
        name = name or hashlib.sha256(content).hexdigest()
        return await self.client.put(f"/api/v1/blobs/{name}", content=content, headers=self.headers)

    async def call(self, method: str, name: str) -> httpx.Response:
        return await self.client.request(method, f"/api/v1/blobs/{name}", headers=self.headers)


@pytest.fixture
async def keepers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Keeper, Keeper]]:
    monkeypatch.setenv("AGENTCANVAS_BLOB_SIZE_BYTES", "64kB")
    monkeypatch.setenv("AGENTCANVAS_BLOB_QUOTA_BYTES", "100kB")
    async with (
        hub_beside(tmp_path) as (info, hub),
        httpx.AsyncClient(base_url=info.url, trust_env=False) as client,
    ):
        a, b = [
            Keeper(client, (await hub.keeper.new_token(TokenOrder(name=name))).text)
            for name in ("a", "b")
        ]
        yield a, b


NAME = hashlib.sha256(CONTENT).hexdigest()


async def test_what_one_agent_puts_another_gets_by_its_hash(
    keepers: tuple[Keeper, Keeper], tmp_path: Path
) -> None:
    a, b = keepers
    answer = await a.put(CONTENT)
    assert answer.status_code == 201
    assert answer.json() == {"sha256": NAME, "size": len(CONTENT), "free": 102_400 - len(CONTENT)}
    assert (await a.put(CONTENT)).json() == answer.json()
    got = await b.call("GET", NAME)
    assert got.content == CONTENT
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment")
    assert list((tmp_path / "blobs").glob("coming.*")) == []


async def test_content_that_is_not_what_its_address_says_is_refused_and_leaves_nothing(
    keepers: tuple[Keeper, Keeper], tmp_path: Path
) -> None:
    a, _ = keepers
    answer = await a.put(CONTENT[:-1], NAME)
    assert answer.status_code == 422
    assert "it was damaged on the way" in answer.text
    assert (await a.call("GET", NAME)).status_code == 404
    assert list((tmp_path / "blobs").glob("coming.*")) == []


@pytest.mark.parametrize("name", ["..%2f..%2fserver.json", NAME.upper(), "0" * 63, "x" * 64])
async def test_an_address_that_is_no_hash_is_refused(
    keepers: tuple[Keeper, Keeper], name: str
) -> None:
    a, _ = keepers
    for method in ("GET", "DELETE"):
        answer = await a.call(method, name)
        assert answer.status_code in (404, 422)
        assert answer.json()["type"] == "ERROR"


async def test_an_agent_keeps_no_more_than_its_quota(keepers: tuple[Keeper, Keeper]) -> None:
    a, b = keepers
    assert (await a.put(b"1" * 60_000)).status_code == 201
    refused = await a.put(b"2" * 60_000)
    assert refused.status_code == 507
    assert "delete some" in refused.text
    assert (await b.put(b"2" * 60_000)).status_code == 201
    one = hashlib.sha256(b"1" * 60_000).hexdigest()
    assert (await a.call("DELETE", one)).status_code == 204
    assert (await a.put(b"2" * 60_000)).status_code == 201


async def test_two_at_once_share_one_quota(keepers: tuple[Keeper, Keeper]) -> None:
    a, _ = keepers
    statuses = []

    async def put(content: bytes) -> None:
        statuses.append((await a.put(content)).status_code)

    async with anyio.create_task_group() as group:
        for digit in b"1234":
            group.start_soon(put, bytes([digit]) * 40_000)
    assert statuses.count(201) <= 2
    assert set(statuses) <= {201, 507}


async def test_a_blob_that_is_too_large_is_refused(keepers: tuple[Keeper, Keeper]) -> None:
    answer = await keepers[0].put(b"x" * 70_000)
    assert answer.status_code == 413


async def test_what_nobody_keeps_is_gone_and_what_somebody_keeps_is_not(
    keepers: tuple[Keeper, Keeper],
) -> None:
    a, b = keepers
    await a.put(CONTENT)
    await b.put(CONTENT)
    assert (await a.call("DELETE", NAME)).status_code == 204
    assert (await a.call("DELETE", NAME)).status_code == 404
    assert (await a.call("GET", NAME)).status_code == 200
    assert (await b.call("DELETE", NAME)).status_code == 204
    assert (await a.call("GET", NAME)).status_code == 404


async def test_without_a_token_there_is_nothing(keepers: tuple[Keeper, Keeper]) -> None:
    a, _ = keepers
    await a.put(CONTENT)
    answer = await a.client.get(f"/api/v1/blobs/{NAME}")
    assert answer.status_code == 401
