"""The log of a real run shows it when a pattern breaks its rule, for each of the twenty."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.app import office
from agentcanvas.runs.office import RunOrder
from tests.examples.logs import log_of
from tests.examples.scenes import flow_of, team
from tests.patterns.broken import BROKEN
from tests.patterns.properties import breaches
from tests.patterns.scenes import SCENES
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4")]


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_variant_is_seen_in_the_log_of_a_real_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office, "PATTERNS", tuple(BROKEN.values()))
    scene = SCENES[name]
    root = repository(tmp_path / "repo", {"README.md": "# Here\n"})
    flow = tmp_path / "flow.yaml"
    flow.write_text(flow_of(name, scene))
    async with engine_on(root, functions=team(scene)) as engine:
        order = RunOrder(flow=name, flow_text=flow.read_text(), request="Wash up")
        run_id = await engine.start(order)
        async for _ in engine.events(run_id):
            pass
        log = await log_of(engine._with.store, engine._register.stream(run_id), flow)
    assert log.said
    assert breaches(log, name)
