"""Where a file lies that somebody names, whatever way the name takes; and what a flow names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcanvas.flows.named_files import path_within, scripts_in

pytestmark = pytest.mark.req("D43")

FLOW = """\
version: 0.2
agents:
  - {{id: ann, runtime: {{kind: script, script: {first}}}}}
  - {{id: bob, runtime: {{kind: script, script: b.yaml}}}}
  - {{id: cyd, runtime: {{kind: script, script: b.yaml}}}}
interactions: [{{id: i, patternId: {pattern}, roles: {{}}}}]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "sub").mkdir(parents=True)
    for name in ("team.yaml", "sub/team.yaml", "../elsewhere.yaml"):
        (folder / name).touch()
    (folder / "out").symlink_to("..")
    (folder / "out.yaml").symlink_to("../elsewhere.yaml")
    (folder / "in.yaml").symlink_to("team.yaml")
    (tmp_path / "way").symlink_to("workspace")
    (tmp_path / "circle").symlink_to("circle")
    return folder


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("team.yaml", "team.yaml"),
        ("sub/../team.yaml", "team.yaml"),
        ("sub/../sub/./team.yaml", "sub/team.yaml"),
        ("../workspace/team.yaml", "team.yaml"),
        ("../way/sub/team.yaml", "sub/team.yaml"),
        ("gone.yaml", "gone.yaml"),
        ("in.yaml", "in.yaml"),
        ("out.yaml", "out.yaml"),  # a link is a file of the workspace, wherever it leads
        ("out/elsewhere.yaml", "out"),
        ("out/workspace/team.yaml", "out"),
        ("../elsewhere.yaml", ""),
        ("../way/../elsewhere.yaml", ""),
        ("../circle/team.yaml", ""),
        ("..", ""),
        ("../workspace2/team.yaml", ""),
        ("/etc/passwd", ""),
        ("a\0b", "a\0b"),
    ],
)
def test_a_file_has_one_path_in_the_workspace_or_none(
    workspace: Path, named: str, path: str
) -> None:
    assert path_within(workspace, workspace / named) == path


def test_it_is_the_same_from_anywhere_and_by_another_name_of_the_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace / "sub")
    assert path_within(workspace, Path("team.yaml")) == "sub/team.yaml"
    assert path_within(workspace.with_name("way"), workspace / "team.yaml") == "team.yaml"
    assert path_within(workspace, Path(os.devnull)) == ""


@pytest.mark.parametrize("pattern", ["manager_worker", "not_known_yet"])
def test_scripts_of_a_flow_are_found_also_before_its_patterns_are_known(
    workspace: Path, pattern: str
) -> None:
    for first, path in {"sub/../a.yaml": "a.yaml", f"{workspace}/a.yaml": "a.yaml"}.items():
        flow = FLOW.format(first=first, pattern=pattern).encode()
        assert scripts_in(workspace, flow) == (path, "b.yaml")
    assert scripts_in(workspace, FLOW.format(first="/a.yaml", pattern=pattern).encode()) == (
        "b.yaml",
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "a: 1", "version: 0.2\nagents: 7", "\xff"])
def test_what_cannot_be_a_flow_names_nothing(workspace: Path, text: str) -> None:
    assert scripts_in(workspace, text.encode("latin-1")) == ()
