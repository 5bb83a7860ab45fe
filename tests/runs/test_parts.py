"""A person looks at a proposal in full and lands a part of it, with evidence of its own (D13)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.errors import NotFound, ValidationError
from agentcanvas.proposals.model import Decision, FileChoice, ProposalState
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.protocol.records import ChangeStatus
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.shown import ShownProposal, Side
from agentcanvas.runs.state import RunStatus
from tests.chaos.driving import ask_of, flow, judged, kinds, order, payloads, rests, so_far, tree_of
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D13", "S7")]

LINES = [f"line {number}\n" for number in range(1, 31)]
PICTURE = b"\x89PNG\r\n\x1a\n\x00\xff"
NO_EVIL = {"name": "good", "command": "! grep -q evil story.txt"}


def coder(turn: Turn) -> str:
    """Changes a story at both ends, adds a file and a picture, and brings a secret along."""
    tree = tree_of(turn)
    lines = list(LINES)
    lines[1], lines[27] = "good\n", "evil\n"
    (tree / "story.txt").write_text("".join(lines))
    (tree / "new.txt").write_text("key = 'AKIAIOSFODNN7EXAMPLZ'\n")
    (tree / "dot.png").write_bytes(PICTURE)
    (tree / ".envrc").write_text("echo hello\n")
    return "I changed the story."


CODER = {"coder": coder}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"story.txt": "".join(LINES)})


async def waiting(engine: Engine, **more: Any) -> str:
    """A run whose proposal waits for you."""
    run_id = await engine.start(order(flow(checks=[NO_EVIL], **more)))
    await rests(engine, run_id)
    return run_id


async def apply(engine: Engine, run_id: str, *choose: FileChoice, reason: str = "") -> list[str]:
    """Answer; gives the kinds of what happens then."""
    ask = await ask_of(engine, run_id)
    seen = (await so_far(engine, run_id))[-1].seq
    chosen = [{"path": c.path, **({"hunks": list(c.hunks)} if c.hunks else {})} for c in choose]
    content = {"decision": "apply", "reason": reason, "choose": chosen}
    await engine.answer(ask.ask_id, PersonAnswer(content, "you"))
    return kinds(await rests(engine, run_id, seen))


def files_of(view: ShownProposal) -> dict[str, tuple[ChangeStatus, int, int, bool, int]]:
    return {f.path: (f.status, f.added, f.removed, f.binary, len(f.hunks)) for f in view.files}


async def test_a_proposal_is_shown_with_all_that_speaks_for_and_against_it(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        view = await engine.proposal(run_id, "t1")
        ask = await ask_of(engine, run_id)
        assert (view.proposal_id, view.attempt, view.worker) == ("t1.r0", 1, "coder")
        assert (view.status, view.ask_id) == (ProposalState.WAITING, ask.ask_id)
        assert files_of(view) == {
            ".envrc": (ChangeStatus.ADDED, 1, 0, False, 0),
            "dot.png": (ChangeStatus.ADDED, 0, 0, True, 0),
            "new.txt": (ChangeStatus.ADDED, 1, 0, False, 0),
            "story.txt": (ChangeStatus.MODIFIED, 2, 2, False, 2),
        }
        (_, _, _, story) = view.files
        assert [(hunk.number, hunk.old_start) for hunk in story.hunks] == [(1, 1), (2, 25)]
        assert (view.evidence_status, view.evidence_sentence) == ("failed", "good: green → red")
        assert view.evidence is not None
        (check,) = view.evidence.checks
        assert (check.before is not None and check.before.passed, check.after.passed) == (
            True,
            False,
        )
        assert [(secret.path, secret.line) for secret in view.secrets] == [("new.txt", 1)]
        assert [note.path for note in view.self_running] == [".envrc"]
        assert view.outlook is not None
        assert view.outlook.fitness == "clean"


async def test_what_a_package_runs_is_found_by_comparing_it_with_the_file_as_it_was(
    tmp_path: Path,
) -> None:
    package = '{\n  "name": "x",\n  "scripts": {\n    "test": "jest"\n  }\n}\n'
    root = repository(tmp_path / "repo", {"package.json": package, "web/package.json": package})

    def formats(turn: Turn) -> str:
        tree = tree_of(turn)
        (tree / "package.json").write_text('{"scripts": {"test": "jest"}, "name": "x"}\n')
        (tree / "web" / "package.json").write_text(
            '{"scripts": {"test": "jest; x"}, "name": "x"}\n'
        )
        return "I changed the form of two files."

    async with engine_on(root, functions={"coder": formats}) as engine:
        run_id = await waiting(engine)
        said = "web/package.json changes a script that npm runs, on install too"
        assert [note.sentence for note in (await engine.proposal(run_id, "t1")).self_running] == [
            said
        ]


async def test_a_file_is_given_as_it_was_and_as_it_would_be_also_a_binary_one(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        before = await engine.file(run_id, "t1", "story.txt", Side.BEFORE)
        after = await engine.file(run_id, "t1", "story.txt", Side.AFTER)
        assert before.decode() == "".join(LINES)
        assert after.decode().splitlines()[27] == "evil"
        assert await engine.file(run_id, "t1", "dot.png", Side.AFTER) == PICTURE
        with pytest.raises(NotFound, match=r"no dot\.png before the change"):
            await engine.file(run_id, "t1", "dot.png", Side.BEFORE)
        for path in ("../../etc/passwd", "/etc/passwd", ".git/config", "README.md"):
            with pytest.raises(NotFound, match="does not change"):
                await engine.file(run_id, "t1", path, Side.BEFORE)
        with pytest.raises(NotFound, match="no attempt 2; it has 1 to 1"):
            await engine.patch(run_id, "t1", 2)


async def test_only_the_chosen_hunk_and_file_land_and_the_checks_were_run_on_just_these(
    root: Path,
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        after = await apply(engine, run_id, FileChoice("story.txt", (1,)), FileChoice("new.txt"))
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert after.index("part_chosen") < after.index("checks_run") < after.index("apply_started")
        entries = await so_far(engine, run_id)
        whole, part = payloads(entries, e.ChecksRun)
        assert (whole.status, part.status) == ("failed", "passed")
        (chosen,) = payloads(entries, e.PartChosen)
        assert (chosen.part_of, len(chosen.chosen)) == ("t1.r0", 2)
        (landed,) = payloads(entries, e.ProposalLanded)
        assert set(landed.files) == {"story.txt", "new.txt"}
    told = (root / "story.txt").read_text().splitlines()
    assert (told[1], told[27]) == ("good", "line 28")
    assert not (root / "dot.png").exists()


async def test_a_part_that_fails_its_checks_is_asked_about_again_and_needs_a_reason(
    root: Path,
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        after = await apply(engine, run_id, FileChoice("story.txt", (2,)))
        assert after[-1] == "run_parked"
        ask = await ask_of(engine, run_id)
        assert "checks fail" in ask.problem
        view = await engine.proposal(run_id, "t1")
        assert view.derived_from is not None
        assert view.derived_from.chosen == (FileChoice("story.txt", (2,)),)
        assert ask.proposal != view.proposal_id
        await judged(engine, run_id, decision="apply", reason="it is a dark story")
    assert (root / "story.txt").read_text().splitlines()[1] == "line 2"
    assert (root / "story.txt").read_text().splitlines()[27] == "evil"


async def test_whoever_is_asked_again_may_choose_another_part_of_the_whole(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        await apply(engine, run_id, FileChoice("story.txt", (2,)))
        await apply(engine, run_id, FileChoice("story.txt", (1,)))
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert (root / "story.txt").read_text().splitlines()[1] == "good"


@pytest.mark.parametrize(
    ("choose", "sentence"),
    [
        ([{"path": "other.txt"}], "does not change other.txt"),
        ([{"path": "story.txt", "hunks": [3]}], "has no hunk 3"),
        ([{"path": "new.txt", "hunks": [1]}], "taken whole or not at all"),
        ([{"path": "story.txt"}, {"path": "story.txt"}], "chosen twice"),
        ([{"file": "story.txt"}], "The choice cannot be read"),
        ("story.txt", "The choice cannot be read"),
    ],
)
async def test_an_impossible_choice_is_refused_at_once_and_the_question_stays(
    root: Path, choose: Any, sentence: str
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        ask = await ask_of(engine, run_id)
        with pytest.raises(ValidationError, match=sentence):
            await engine.answer(
                ask.ask_id, PersonAnswer({"decision": "apply", "choose": choose}, "you")
            )
        assert await ask_of(engine, run_id) == ask
    assert (root / "story.txt").read_text() == "".join(LINES)


async def test_everything_chosen_is_the_proposal_itself(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        names = (".envrc", "dot.png", "new.txt", "story.txt")
        after = await apply(engine, run_id, *map(FileChoice, names), reason="as it is")
        assert "part_chosen" not in after
    assert (root / "dot.png").read_bytes() == PICTURE


@pytest.mark.req("D4")
async def test_a_choice_survives_the_end_of_the_process(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        await apply(engine, run_id, FileChoice("story.txt", (2,)))
    async with engine_on(root, functions=CODER) as engine:
        await judged(engine, run_id, decision="apply", reason="dark")
        entries = await so_far(engine, run_id)
        assert len(payloads(entries, e.PartChosen)) == 1
        assert len(payloads(entries, e.ChecksRun)) == 2
    assert (root / "story.txt").read_text().splitlines()[1] == "line 2"


async def test_every_round_is_kept_and_shown_with_what_was_decided(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine)
        await judged(engine, run_id, decision="revise", reason="less evil")
        view = await engine.proposal(run_id, "t1")
        assert [(a.number, a.proposal_id, a.decision, a.reason) for a in view.attempts] == [
            (1, "t1.r0", Decision.REVISE, "less evil"),
            (2, "t1.r1", None, ""),
        ]
        first = await engine.proposal(run_id, "t1", 1)
        assert (first.status, first.ask_id) == (ProposalState.REVISED, None)
        assert [(said.by, said.decision) for said in first.reviews] == [
            ("person:you", Decision.REVISE)
        ]
        assert await engine.patch(run_id, "t1", 1) == await engine.patch(run_id, "t1", 2)


async def test_what_a_reviewer_found_is_shown(root: Path) -> None:
    finding = '{"severity": "major", "description": "the end is evil"}'

    def critic(turn: Turn) -> str:
        del turn
        return f'{{"decision": "reject", "reason": "no", "findings": [{finding}]}}'

    python = {"kind": "python", "call": "tests.chaos.driving:unused"}
    async with engine_on(root, functions={**CODER, "critic": critic}) as engine:
        run_id = await waiting(engine, critic=python)
        view = await engine.proposal(run_id, "t1")
        (said,) = view.reviews
        assert (said.by, said.decision, said.reason) == ("critic", Decision.REJECT, "no")
        assert [found.description for found in said.findings] == ["the end is evil"]
        assert view.status is ProposalState.REJECTED


# -- a base whose checks fail already -------------------------------------------------------------

DARK = [*LINES[:1], "evil\n", *LINES[2:27], "evil\n", *LINES[28:]]
TWO_CHECKS = [
    {"name": "top", "command": "! head -n 5 story.txt | grep -q evil"},
    {"name": "end", "command": "! tail -n 5 story.txt | grep -q evil"},
]


def mender(turn: Turn) -> str:
    """Mends both ends of a story whose base fails at both."""
    (tree_of(turn) / "story.txt").write_text("".join(LINES))
    return "I mended the story."


@pytest.fixture
def dark(tmp_path: Path) -> Path:
    return repository(tmp_path / "dark", {"story.txt": "".join(DARK)})


@pytest.mark.parametrize(
    ("checks", "sentence"),
    [
        ([NO_EVIL], "good: red → red"),
        (TWO_CHECKS, "top: red → green; end: red → red"),
    ],
)
async def test_half_of_what_mends_a_red_suite_lands_only_when_its_red_evidence_was_seen(
    dark: Path, checks: list[dict[str, str]], sentence: str
) -> None:
    async with engine_on(dark, functions={"coder": mender}) as engine:
        run_id = await engine.start(order(flow(checks=checks)))
        await rests(engine, run_id)
        whole = await engine.proposal(run_id, "t1")
        assert whole.evidence_status == "passed"
        after = await apply(engine, run_id, FileChoice("story.txt", (1,)))
        assert after[-1] == "run_parked"
        ask = await ask_of(engine, run_id)
        assert sentence in ask.problem
        _, part = payloads(await so_far(engine, run_id), e.ChecksRun)
        assert (part.status, part.sentence) == ("red_before", sentence)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert "".join(LINES[:20]) in (dark / "story.txt").read_text()
    assert (dark / "story.txt").read_text().splitlines()[27] == "evil"


async def test_whoever_has_seen_the_red_evidence_of_one_half_may_take_the_other(
    dark: Path,
) -> None:
    async with engine_on(dark, functions={"coder": mender}) as engine:
        run_id = await engine.start(order(flow(checks=[NO_EVIL])))
        await rests(engine, run_id)
        for hunk in (1, 2):
            await apply(engine, run_id, FileChoice("story.txt", (hunk,)))
        told = payloads(await so_far(engine, run_id), e.ChecksRun)
        assert [(each.status, each.sentence) for each in told] == [
            ("passed", "good: red → green"),
            ("red_before", "good: red → red"),
            ("red_before", "good: red → red"),
        ]
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert (dark / "story.txt").read_text() == "".join([*DARK[:27], *LINES[27:]])
