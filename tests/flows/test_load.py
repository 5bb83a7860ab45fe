"""Flow files: found, read, started from, and replaced all at once or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcanvas.errors import FlowError
from agentcanvas.flows.axes import Topology
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.edit import with_value
from agentcanvas.flows.load import find_flow, flow_files, load_flow, read_flow, save_flow
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.settle import settle
from agentcanvas.flows.starters import STARTERS, starter
from tests.flows.writing import AC_FLOW

pytestmark = pytest.mark.req("F1")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / ".agentcanvas" / "flows"
    folder.mkdir(parents=True)
    (folder / "demo.yaml").write_bytes(AC_FLOW)
    (folder / "other.yml").write_bytes(AC_FLOW)
    (folder / "notes.txt").write_text("no flow")
    return tmp_path


def test_flows_are_found_by_name_and_by_path(workspace: Path) -> None:
    assert list(flow_files(workspace)) == ["demo", "other"]
    assert find_flow(workspace, "demo").name == "demo.yaml"
    assert find_flow(workspace, ".agentcanvas/flows/other.yml").name == "other.yml"
    with pytest.raises(FlowError, match=r"did you mean demo\?"):
        find_flow(workspace, "dmo")


def test_a_workspace_without_flows_has_none(tmp_path: Path) -> None:
    assert flow_files(tmp_path) == {}
    with pytest.raises(FlowError, match="flow new"):
        find_flow(tmp_path, "demo")


def test_a_file_that_is_not_there_or_no_file_is_one_clear_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"a" * 400_000)
    for name, words in [
        ("gone.yaml", "is not there"),
        ("pipe.yaml", "not a file"),
        ("", "cannot be read: Is a directory"),
        ("huge.yaml", "larger than a flow may be, which is 262,144 bytes"),
    ]:
        with pytest.raises(FlowError, match=words) as raised:
            load_flow(tmp_path / name)
        assert str(tmp_path) in raised.value.problems[0]


def test_a_saved_flow_reads_back_byte_for_byte_and_keeps_its_mode(workspace: Path) -> None:
    path = find_flow(workspace, "demo")
    path.chmod(0o600)
    old = read_flow(path)
    new = with_value(old, "/agents/0/name", "Boss")
    save_flow(path, new, instead_of=old)
    assert path.read_bytes() == AC_FLOW.replace(b'"Planner"', b'"Boss"')
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "demo.yaml",
        "notes.txt",
        "other.yml",
    ]


@pytest.mark.req("I5", "PR5")
def test_a_flow_with_errors_is_not_saved(workspace: Path) -> None:
    path = find_flow(workspace, "demo")
    endless = {"manager_worker": PatternInfo("manager_worker", (Topology.MANAGER_WORKER,))}
    with pytest.raises(FlowError):
        save_flow(path, with_value(read_flow(path), "/agents/0/id", "zz"))
    document = with_value(read_flow(path), "/interactions/0/edges/0/data", {})
    with pytest.raises(FlowError, match="no-end"):
        save_flow(path, document, endless)
    assert path.read_bytes() == AC_FLOW


def test_a_file_that_somebody_else_changed_is_left_alone(workspace: Path) -> None:
    path = find_flow(workspace, "demo")
    old = read_flow(path)
    path.write_bytes(AC_FLOW + b"# mine\n")
    with pytest.raises(FlowError, match="somebody else"):
        save_flow(path, with_value(old, "/land", "commit"), instead_of=old)
    assert path.read_bytes() == AC_FLOW + b"# mine\n"


def test_a_link_stays_a_link(workspace: Path) -> None:
    path = find_flow(workspace, "demo")
    link = path.with_name("link.yaml")
    link.symlink_to(path)
    save_flow(link, with_value(read_flow(link), "/land", "commit"))
    assert link.is_symlink()
    assert b"land: commit" in path.read_bytes()


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_loads_without_a_problem(name: str) -> None:
    assert check(read_document(starter(name))).problems == ()


def test_the_starters_are_the_promised_teams() -> None:
    solo = check(read_document(starter("solo"))).sound()
    assert [agent.id for agent in solo.agents] == ["coder"]
    assert settle(solo, CATALOGUE)[0].review.reviewer == "person"
    team = check(read_document(starter("team"))).sound()
    each = settle(team, CATALOGUE)[0]
    assert each.roles == {"manager": ("planner",), "worker": ("coder_a", "coder_b")}
    assert each.review.reviewer == "reviewer"


def test_an_unknown_starter_is_refused() -> None:
    with pytest.raises(FlowError, match=r"did you mean team\?"):
        starter("teams")
