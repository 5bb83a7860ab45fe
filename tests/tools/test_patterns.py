"""Templates and the reference in the patterns' docs are what the declarations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.app.patterns import KNOWN
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.emit import lines
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.subgraph import flow_of, subgraph, template
from tools.patterns import BEGIN, END, files

pytestmark = pytest.mark.req("I3")


@pytest.mark.parametrize(
    ("path", "text"), list(files()), ids=lambda each: getattr(each, "name", "")
)
def test_it_is_fresh(path: Path, text: str) -> None:
    assert path.exists(), "make schema writes it"
    assert path.read_text("utf-8") == text, "it is out of date; make schema writes it anew"


@pytest.mark.req("I5")
@pytest.mark.parametrize("name", KNOWN)
def test_what_a_pattern_inserts_is_a_sound_flow(name: str) -> None:
    text = lines(flow_of(KNOWN[name]), 0)
    found = check(read_document(text.encode(), f"{name}.yaml"), KNOWN)
    assert found.problems == ()


@pytest.mark.parametrize("name", KNOWN)
def test_every_edge_on_the_canvas_is_labelled_and_says_everything(name: str) -> None:
    made = template(KNOWN[name])
    assert made["interaction"]["edges"]
    for edge in made["interaction"]["edges"]:
        assert edge["label"] == made["label"]
        assert {"patternId", "topology", "messageForm", "sync", "termination"} <= set(edge["data"])


def test_a_debate_is_labelled_by_its_rounds() -> None:
    info: PatternInfo = KNOWN["debate_judge"]
    assert subgraph(info).label == "debate_judge (3r)"


def test_prose_around_the_reference_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.patterns.DOCS", tmp_path)
    page = tmp_path / "manager_worker.md"
    begin = BEGIN.format("reference")
    page.write_text(f"# Mine\n\nBefore.\n\n{begin}\nold\n{END}\n\nAfter.\n", "utf-8")
    (text,) = [text for path, text in files() if path == page]
    assert text.startswith("# Mine\n\nBefore.\n\n" + begin)
    assert text.endswith(f"{END}\n\nAfter.\n")
    assert "old" not in text
