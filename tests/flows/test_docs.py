"""The document on flows: its examples work, and every rule is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentcanvas.flows.axes import Termination
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.load import load_flow
from agentcanvas.flows.model import EdgeData, Flow, Interaction
from agentcanvas.flows.problem import Rule

DOCUMENT = (Path(__file__).parents[2] / "docs" / "flows.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
YAML = [text for language, text in BLOCKS if language == "yaml"]

pytestmark = pytest.mark.req("F1")


@pytest.mark.parametrize("text", YAML)
def test_each_flow_in_the_document_is_sound(text: str) -> None:
    assert check(read_document(text)).problems == ()


def test_the_python_in_the_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(".agentcanvas/flows/build.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(YAML[0].replace("{id: planner,", "{id: planner, name: Chief,"))
    (code,) = [text for language, text in BLOCKS if language == "python"]
    exec(compile(code, "flows.md", "exec"), {})
    assert load_flow(path).agents[0].name == "Boss"


def test_every_rule_and_every_key_is_explained() -> None:
    prose = re.sub(r"^```.*?^```", "", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    words = set(re.findall(r"`([^`]+)`", prose))
    ends = [end.__struct_config__.tag for end in Termination.__args__]
    keys = [key for part in (Flow, Interaction, EdgeData) for key in part.__struct_encode_fields__]
    known = {word.split(".")[0] for word in words} | {"patternId"}
    assert [rule for rule in Rule if rule not in words] == []
    assert [key for key in [*keys, *ends] if key not in known] == []
