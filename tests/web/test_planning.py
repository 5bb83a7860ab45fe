"""Before a run: flows, the worst case of an order, and what a clean-up would remove."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from agentcanvas.app.office import open_office
from agentcanvas.app.server import read_info
from tests.runs.workspaces import repository, solo

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("AGENTCANVAS_COMMAND", "my-agent --flag")
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    flows = root / ".agentcanvas" / "flows"
    flows.mkdir(parents=True)
    (flows / "broken.yaml").write_text("agents: [")
    (flows / "strange.yaml").write_text(solo("true"))
    async with open_office(root, serve=True, port=0):
        info = read_info(root)
        assert info is not None
        headers = {"authorization": f"Bearer {info.token}"}
        async with httpx.AsyncClient(
            base_url=f"{info.url}/api/v1", headers=headers, trust_env=False
        ) as client:
            yield client


async def test_a_flow_that_cannot_start_is_listed_with_the_reason(
    client: httpx.AsyncClient,
) -> None:
    told = (await client.get("/flows")).json()
    assert told["command"] == "my-agent --flag"
    flows = {flow["name"]: flow for flow in told["flows"]}
    assert "agentcanvas trust" in flows["broken"]["problem"]
    assert "agentcanvas trust" in flows["strange"]["problem"]


async def test_an_order_comes_with_the_most_it_can_need_and_can_be_given_as_it_is(
    client: httpx.AsyncClient,
) -> None:
    planned = (await client.post("/plans", json={"request": "Greet", "command": "true"})).json()
    assert planned["order"]["request"] == "Greet"
    assert planned["order"].get("approvePlan", False) is False
    total = planned["bounds"][-1]
    assert (total["name"], total["turns"]) == ("total", 12)
    assert "12 turns" in planned["limits"]
    started = await client.post("/runs", json=planned["order"])
    assert started.status_code == 201
    run_id = started.json()["runId"]
    order = (await client.get(f"/runs/{run_id}/order")).json()
    assert order["flowText"] == planned["order"]["flowText"]
    budget = (await client.get(f"/runs/{run_id}/budget")).json()
    assert (budget["turns"], budget["minutes"]) == (12, 120)
    assert (await client.get("/runs/none/budget")).status_code == 404


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"request": " "}, "the request is empty"),
        ({"request": "x", "flow": "nowhere"}, "there is: broken, strange"),
        ({"request": "x", "flow": "../../../etc/passwd"}, "There is no flow"),
        ({"request": "x", "flow": "strange"}, "agentcanvas trust"),
        ({"request": "x" * 600_000}, "does not fit"),
        ({"request": 3}, "does not fit"),
    ],
)
async def test_what_could_not_start_is_refused_with_the_next_step(
    client: httpx.AsyncClient, wish: dict[str, object], sentence: str
) -> None:
    answer = await client.post("/plans", json=wish)
    assert answer.status_code in {403, 422}
    assert sentence in answer.json()["payload"]["error_message"]


async def test_a_clean_up_says_what_it_would_remove_and_then_removes_it(
    client: httpx.AsyncClient,
) -> None:
    assert (await client.get("/clean-up")).json() == {"going": [], "staying": [], "frees": 0}
    assert (await client.post("/clean-up", json={"keep": 0})).json()["frees"] == 0
    assert (await client.post("/clean-up", json={"keep": -1})).status_code == 422


@pytest.mark.req("F5")
async def test_an_image_is_kept_and_its_reference_goes_into_an_order(
    client: httpx.AsyncClient,
) -> None:
    kept = await client.post("/images", content=b"\x89PNG\r\n\x1a\npixels")
    assert kept.status_code == 201
    assert (kept.json()["media"], kept.json()["size"]) == ("image/png", 14)
    planned = (await client.post("/plans", json={"request": "Greet", "command": "true"})).json()
    started = await client.post("/runs", json={**planned["order"], "images": [kept.json()]})
    assert started.status_code == 201
    order = (await client.get(f"/runs/{started.json()['runId']}/order")).json()
    assert order["images"] == [kept.json()]
    refused = await client.post("/images", content=b"<svg/>")
    assert refused.status_code == 422
    assert "use PNG, JPEG, GIF or WebP" in refused.text
    assert (await client.post("/images", content=b"\0" * (20 * 1024 * 1024 + 1))).status_code == 413
    unknown = {**kept.json(), "sha256": "0" * 64}
    lost = await client.post("/runs", json={**planned["order"], "images": [unknown]})
    assert lost.status_code == 404
