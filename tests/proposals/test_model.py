from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import IllegalTransition, ProposalMalformed
from agentcanvas.proposals.model import (
    TRANSITIONS,
    AnnounceMessage,
    Base,
    Proposal,
    ProposalReview,
    ProposalState,
    SandboxPaths,
    TestsRun,
    Wire,
    WorkStatus,
    announce,
    brief,
    decode_proposal,
    encode,
)
from agentcanvas.proposals.shelf import ProposalFolder, load
from agentcanvas.protocol.records import ChangedFile, ChangeStatus

EXAMPLES = Path(__file__).parent.parent / "protocol" / "examples"


def proposal(*paths: str, head: str | None = "abc123") -> Proposal:
    return Proposal(
        version="1",
        run_id="run_20260219_100000",
        agent_id="custom:coder-1",
        created_at="2026-02-19T00:00:00.000Z",
        base=Base(head),
        paths=SandboxPaths(),
        changed_files=tuple(ChangedFile(path, ChangeStatus.MODIFIED) for path in paths),
    )


@pytest.mark.req("S4", "R1", "R4")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ac_proposal", Proposal),
        ("av_proposal_review", ProposalReview),
        ("av_announce", AnnounceMessage),
    ],
)
def test_an_example_of_the_documents_is_read_and_written_back_unchanged(
    name: str, kind: type[Wire]
) -> None:
    text = (EXAMPLES / f"{name}.json").read_bytes()
    written = encode(msgspec.json.decode(text, type=kind))
    assert json.loads(written) == json.loads(text)
    assert list(json.loads(written)) == list(json.loads(text)), "the order of fields is kept too"


@pytest.mark.req("S4")
def test_the_defaults_of_a_proposal_are_the_paths_the_document_names() -> None:
    document = json.loads((EXAMPLES / "ac_proposal.json").read_bytes())
    assert json.loads(encode(SandboxPaths())) == document["paths"]


@pytest.mark.req("S4")
def test_outside_git_the_head_is_null_and_not_left_out() -> None:
    assert json.loads(encode(proposal(head=None)))["base"] == {"gitHead": None}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": "2"}, "$.version"),
        ({"createdAt": "yesterday"}, "$.createdAt"),
        ({"changedFiles": [{"path": "a", "status": "renamed"}]}, "$.changedFiles[0].status"),
        ({"base": None}, "$.base"),
    ],
)
def test_a_broken_proposal_is_refused_with_the_field_named(
    change: dict[str, object], named: str
) -> None:
    document = json.loads((EXAMPLES / "ac_proposal.json").read_bytes()) | change
    with pytest.raises(ProposalMalformed) as refused:
        decode_proposal(json.dumps(document).encode())
    assert named in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_proposal_or_one_clear_error(data: bytes) -> None:
    with pytest.raises(ProposalMalformed):
        decode_proposal(data)


@pytest.mark.req("S6")
def test_a_moved_head_gives_a_warning_and_the_same_head_none() -> None:
    assert proposal(head="a" * 40).head_warning("a" * 40) is None
    warning = proposal(head="a" * 40).head_warning("b" * 40)
    assert warning is not None
    assert "a" * 12 in warning
    assert "b" * 12 in warning
    assert "no commit" in (proposal(head=None).head_warning("b" * 40) or "")


@pytest.mark.req("R4")
@pytest.mark.parametrize(
    ("made", "timed_out", "status"),
    [
        (proposal("src/api.ts"), False, WorkStatus.OK),
        (proposal(), False, WorkStatus.ERROR),
        (None, False, WorkStatus.ERROR),
        (proposal("src/api.ts"), True, WorkStatus.TIMEOUT),
    ],
)
def test_an_announcement_is_ok_only_with_a_change_in_time(
    made: Proposal | None, timed_out: bool, status: WorkStatus
) -> None:
    said = announce(
        run_id="run_1",
        worker_id="coder",
        worker_name="Coder",
        duration_ms=5,
        summary="# Summary\n\none\ntwo\nthree",
        proposal=made,
        proposal_path="p",
        tests_run=TestsRun(1, 0),
        timed_out=timed_out,
    )
    assert said.status is status
    assert said.summary == "Summary\none\ntwo"
    assert said.touched_files == (("src/api.ts",) if made and made.changed_files else ())


@given(st.text())
def test_a_brief_summary_has_at_most_three_lines(text: str) -> None:
    assert len(brief(text).splitlines()) <= 3


def test_every_state_has_its_moves_and_all_but_the_ends_lead_on() -> None:
    assert set(TRANSITIONS) == set(ProposalState)
    reached = {ProposalState.CREATED}
    while more := set().union(*(TRANSITIONS[state] for state in reached)) - reached:
        reached |= more
    assert reached == set(ProposalState), "every state can be reached"
    ends = {state for state, moves in TRANSITIONS.items() if not moves}
    assert ends == {ProposalState.REJECTED, ProposalState.REVISED, ProposalState.DISCARDED}
    for state in ends:
        assert state.settled


@pytest.mark.req("R1")
def test_nothing_is_applied_that_did_not_wait_for_its_verdict() -> None:
    assert [s for s, moves in TRANSITIONS.items() if ProposalState.APPLYING in moves] == [
        ProposalState.WAITING
    ]
    assert [s for s, moves in TRANSITIONS.items() if ProposalState.APPLIED in moves] == [
        ProposalState.APPLYING
    ]


def test_an_illegal_move_names_the_legal_ones() -> None:
    assert ProposalState.CREATED.to(ProposalState.EVIDENCE) is ProposalState.EVIDENCE
    with pytest.raises(IllegalTransition, match="can become conflicts, discarded"):
        ProposalState.STALE.to(ProposalState.APPLIED)


@pytest.mark.req("S4")
@pytest.mark.parametrize("log", [None, "2 passed"])
def test_a_proposal_folder_comes_back_as_it_was_saved(tmp_path: Path, log: str | None) -> None:
    folder = ProposalFolder(proposal("a.py"), b"\x00patch", "What and why", log)
    folder.save(tmp_path / "proposal")
    assert load(tmp_path / "proposal") == folder
    names = {path.name for path in (tmp_path / "proposal").iterdir()}
    logged = {"test.log"} if log else set()
    assert names == {"proposal.json", "changes.patch", "summary.md"} | logged


def test_a_missing_patch_is_one_clear_error(tmp_path: Path) -> None:
    ProposalFolder(proposal("a.py"), b"", "").save(tmp_path)
    (tmp_path / "changes.patch").unlink()
    with pytest.raises(ProposalMalformed, match=r"changes\.patch is missing"):
        load(tmp_path)
