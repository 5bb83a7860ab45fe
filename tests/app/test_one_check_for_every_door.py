"""What is wrong with a flow is said by one function, whichever door it comes to (I5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentcanvas.app.patterns import KNOWN
from agentcanvas.cli import app
from agentcanvas.errors import FlowError
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.load import save_flow
from tests.runs.workspaces import engine_on, order, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I5", "I2")]

NO_JUDGE = """\
version: 0.2
agents: [{id: ann}, {id: bob}]
interactions:
  - {id: i1, patternId: debate_judge, roles: {debater: [ann, bob]}}
"""
NOT_ASYNC = """\
version: 0.2
agents: [{id: ann}, {id: bob}]
interactions:
  - {id: i1, patternId: role_play_pair, roles: {user: ann, assistant: bob}, data: {sync: async}}
"""
NO_LIMIT = """\
version: 0.2
agents: [{id: ann}, {id: bob}]
interactions:
  - id: i1
    patternId: router_targeted
    roles: {agent: [ann, bob]}
    data: {params: {rate_limit_per_min: 0}}
"""


@pytest.mark.parametrize("text", [NO_JUDGE, NOT_ASYNC, NO_LIMIT], ids=["judge", "sync", "rate"])
async def test_a_flow_is_refused_with_the_same_rule_and_the_same_way_out(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo", {"README.md": "# Hi\n"})
    (problem,) = check(read_document(text.encode()), KNOWN).errors
    assert problem.suggestion
    ways = (problem.sentence, problem.suggestion, f"[{problem.rule}]")

    with pytest.raises(FlowError) as saved:  # the canvas, which writes a whole document
        save_flow(root / "flow.yaml", read_document(text.encode()), KNOWN)
    assert all(words in str(saved.value) for words in ways)

    async with engine_on(root) as engine:  # the API, which starts runs
        with pytest.raises(FlowError) as started:
            await engine.start(order(text))
    assert all(words in str(started.value) for words in ways)

    (root / "flow.yaml").write_text(text)  # a person, with an editor
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "400")
    result = CliRunner().invoke(app, ["flow", "check", "flow.yaml"])
    assert result.exit_code == 1
    said = " ".join((result.output + result.stderr).split())
    assert problem.sentence in said
    assert problem.suggestion in said
