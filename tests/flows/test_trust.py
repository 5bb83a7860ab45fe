"""Trust: what comes with a repository does not run until somebody said that it may."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcanvas.errors import FlowError
from agentcanvas.flows.trust import (
    Fingerprint,
    Trusted,
    TrustState,
    decide,
    fingerprint,
    read_trust,
    write_trust,
)
from agentcanvas.sandbox.trees import remove_path
from tests.sandbox.digging import dig

pytestmark = pytest.mark.req("D43")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for name in ("flows/a.yaml", "patterns/p.py", "skills/s/SKILL.md", "hooks/h.sh"):
        file = folder / ".agentcanvas" / name
        file.parent.mkdir(parents=True)
        file.write_text(f"content of {name}")
    (folder / "agentcanvas.yaml").write_text("limits: {}")
    (folder / "src").mkdir()
    (folder / "src" / "code.py").write_text("not our business")
    return folder


def trusted(workspace: Path) -> Trusted:
    return Trusted(fingerprint(workspace).files)


def test_files_that_can_run_something_are_covered_and_no_others(workspace: Path) -> None:
    assert sorted(fingerprint(workspace).files) == [
        ".agentcanvas/flows/a.yaml",
        ".agentcanvas/hooks/h.sh",
        ".agentcanvas/patterns/p.py",
        ".agentcanvas/skills/s/SKILL.md",
        "agentcanvas.yaml",
    ]


def test_a_flow_that_lies_elsewhere_counts_with_its_scripts_where_it_is_named(
    workspace: Path,
) -> None:
    before = trusted(workspace)
    (workspace / "team.yaml").write_text(
        "version: 0.2\nagents: [{id: a, runtime: {kind: script, script: src/s.yaml}}]"
    )
    (workspace / "src" / "s.yaml").write_text("turns: []")
    assert decide(fingerprint(workspace), before).may_run, "nobody names it"
    now = fingerprint(workspace, ["team.yaml"])
    decision = decide(now, before)
    assert decision.state is TrustState.CHANGED
    assert decision.added == ("src/s.yaml", "team.yaml")
    assert decision.sentence_on("my team.yaml") == (
        "Not trusted yet: src/s.yaml, team.yaml; look, then: agentcanvas trust 'my team.yaml'"
    )
    (workspace / "src" / "s.yaml").write_text("turns: [ ]")
    again = decide(fingerprint(workspace, ["team.yaml"]), Trusted(now.files))
    assert again.changed == ("src/s.yaml",)
    (workspace / "team.yaml").unlink()
    assert decide(fingerprint(workspace), Trusted(now.files)).may_run, "nobody names it any more"


def test_a_flow_that_lies_behind_a_link_cannot_be_trusted(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "team.yaml").write_text("version: 0.2")
    (workspace / "link").symlink_to(tmp_path / "theirs")
    (workspace / "team.yaml").symlink_to("link/team.yaml")
    for flow in ("link/team.yaml", "team.yaml", "link"):
        now = fingerprint(workspace, [flow])
        assert decide(now, Trusted(now.files)).state is TrustState.UNFIT
        assert flow in now.unfit[0]


def test_what_was_never_trusted_does_not_run(workspace: Path) -> None:
    decision = decide(fingerprint(workspace), None)
    assert decision.state is TrustState.NEVER_TRUSTED
    assert not decision.may_run
    assert "agentcanvas trust" in decision.sentence


def test_what_was_trusted_runs_until_it_changes(workspace: Path) -> None:
    before = trusted(workspace)
    assert decide(fingerprint(workspace), before).may_run
    (workspace / ".agentcanvas/flows/a.yaml").write_text("other")
    (workspace / ".agentcanvas/flows/b.yaml").write_text("new")
    (workspace / ".agentcanvas/hooks/h.sh").unlink()
    decision = decide(fingerprint(workspace), before)
    assert decision.state is TrustState.CHANGED
    assert not decision.may_run
    assert decision.added == (".agentcanvas/flows/b.yaml",)
    assert decision.changed == (".agentcanvas/flows/a.yaml",)
    assert decision.removed == (".agentcanvas/hooks/h.sh",)
    assert "a.yaml" in decision.sentence


def test_of_many_changed_files_the_first_are_named_and_the_rest_counted(workspace: Path) -> None:
    before = trusted(workspace)
    for number in range(7):
        (workspace / ".agentcanvas" / "flows" / f"new{number}.yaml").write_text("")
    sentence = decide(fingerprint(workspace), before).sentence
    assert "new4.yaml and 2 more; look" in sentence
    assert "new5" not in sentence


def test_taking_a_file_away_is_a_change(workspace: Path) -> None:
    before = trusted(workspace)
    (workspace / ".agentcanvas/hooks/h.sh").unlink()
    assert decide(fingerprint(workspace), before).state is TrustState.CHANGED


def test_making_a_file_executable_is_a_change(workspace: Path) -> None:
    before = trusted(workspace)
    (workspace / ".agentcanvas/hooks/h.sh").chmod(0o755)
    assert decide(fingerprint(workspace), before).changed == (".agentcanvas/hooks/h.sh",)


def test_a_workspace_with_nothing_to_run_needs_no_trust(tmp_path: Path) -> None:
    decision = decide(fingerprint(tmp_path), None)
    assert decision.state is TrustState.NOTHING_TO_TRUST
    assert decision.may_run


def test_links_and_pipes_cannot_be_trusted(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yaml").write_text("x")
    (workspace / ".agentcanvas/flows/link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    os.mkfifo(workspace / ".agentcanvas/hooks/pipe")
    now = fingerprint(workspace)
    decision = decide(now, Trusted(now.files))
    assert decision.state is TrustState.UNFIT
    assert len(decision.unfit) == 2
    with pytest.raises(FlowError, match="link"):
        write_trust(tmp_path / "trust.json", workspace, now, at=1)


def test_a_linked_folder_cannot_be_trusted(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (workspace / ".agentcanvas/hooks/h.sh").unlink()
    (workspace / ".agentcanvas/hooks").rmdir()
    (workspace / ".agentcanvas/hooks").symlink_to(tmp_path / "theirs")
    assert decide(fingerprint(workspace), None).state is TrustState.UNFIT


def test_folders_deeper_than_calls_can_go_are_looked_through(tmp_path: Path) -> None:
    folder = tmp_path / ".agentcanvas" / "skills"
    folder.mkdir(parents=True)
    dig(folder, 1200)
    try:
        assert len(fingerprint(tmp_path).files) == 1200
    finally:
        remove_path(folder)  # pytest could not


def test_two_sets_of_files_never_share_a_digest() -> None:
    assert Fingerprint({"ab": "c"}).digest != Fingerprint({"a": "bc"}).digest
    assert Fingerprint({"a": "1", "b": "2"}).digest == Fingerprint({"b": "2", "a": "1"}).digest


def test_bytes_that_were_read_can_be_held_against_the_fingerprint(workspace: Path) -> None:
    now = fingerprint(workspace)
    assert now.covers(".agentcanvas/flows/a.yaml", b"content of flows/a.yaml")
    assert not now.covers(".agentcanvas/flows/a.yaml", b"exchanged meanwhile")
    assert not now.covers(".agentcanvas/flows/z.yaml", b"")
    (workspace / ".agentcanvas/hooks/h.sh").chmod(0o755)
    assert fingerprint(workspace).covers(".agentcanvas/hooks/h.sh", b"content of hooks/h.sh")


def test_the_record_keeps_each_workspace_apart(workspace: Path, tmp_path: Path) -> None:
    record = tmp_path / "state" / "trust.json"
    assert read_trust(record) == {}
    write_trust(record, workspace, fingerprint(workspace), at=7)
    write_trust(record, tmp_path / "other", Fingerprint({"agentcanvas.yaml": "-1"}), at=8)
    known = read_trust(record)
    assert known[str(workspace)] == Trusted(fingerprint(workspace).files, 7)
    assert len(known) == 2
    assert record.stat().st_mode & 0o777 == 0o600
    (workspace / "team.yaml").write_text("version: 0.2")
    named = fingerprint(workspace, ["team.yaml"])
    write_trust(record, workspace, named, at=9, flows=["team.yaml"])
    write_trust(record, workspace, fingerprint(workspace), at=10)
    assert read_trust(record)[str(workspace)] == Trusted(named.files, 10, ("team.yaml",))
    write_trust(record, workspace, Fingerprint(), at=11)
    assert str(workspace) not in read_trust(record)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1}', b"\xff"])
def test_a_broken_record_trusts_nothing(tmp_path: Path, content: bytes) -> None:
    record = tmp_path / "trust.json"
    record.write_bytes(content)
    assert read_trust(record) == {}
