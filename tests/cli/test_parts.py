"""Landing a part of a change from the command line, and what is said about it before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from agentcanvas.cli.live.parts import choice_of, parts_table, standing_lines
from agentcanvas.errors import ValidationError
from agentcanvas.proposals.collisions import Collision, CollisionKind
from agentcanvas.proposals.model import FileChoice, ProposalState
from agentcanvas.proposals.radar import Fitness, Outlook
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.protocol.records import ChangeStatus
from agentcanvas.runs.shown import ShownFile, ShownHunk, ShownProposal
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import FakeOffice, Played, judge, propose
from tests.cli.pseudo_terminal import at_terminal

__all__ = ["desk"]

pytestmark = pytest.mark.req("D13")

FILES = (
    ShownFile(
        path="src/a.py",
        status=ChangeStatus.MODIFIED,
        added=3,
        removed=1,
        hunks=(ShownHunk(1, 10, 3, 10, 5, "def one():"), ShownHunk(2, 40, 1, 42, 1)),
    ),
    ShownFile(path="odd#1", status=ChangeStatus.ADDED, added=1),
)


def view(**more: object) -> ShownProposal:
    plain = {
        "run_id": "run_1",
        "task_id": "t1",
        "proposal_id": "t1.r0",
        "attempt": 1,
        "worker": "coder",
        "status": ProposalState.WAITING,
        "generation": 0,
        "created_at": "2026-02-19T10:00:00Z",
        "files": FILES,
    }
    return ShownProposal(**(plain | more))  # type: ignore[arg-type]


def waiting() -> FakeOffice:
    return FakeOffice(propose(Played()), go_on=judge)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["src/a.py"], [FileChoice("src/a.py")]),
        (["src/a.py#2,1"], [FileChoice("src/a.py", (2, 1))]),
        (["1#1", "src/a.py#2"], [FileChoice("src/a.py", (1, 2))]),
        (["2"], [FileChoice("odd#1")]),
        (["odd#1"], [FileChoice("odd#1")]),
    ],
)
def test_files_and_hunks_are_named_as_a_person_would(
    words: Iterable[str], meant: list[FileChoice]
) -> None:
    assert list(choice_of(words, FILES)) == meant


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["src/b.py"], "The change has no file src/b.py; did you mean src/a.py"),
        (["3"], "The change has no file 3"),
        (["src/a.py", "1#2"], "named twice"),
    ],
)
def test_what_is_not_there_is_answered_with_the_next_best(
    words: Iterable[str], sentence: str
) -> None:
    with pytest.raises(ValidationError, match=sentence):
        choice_of(words, FILES)


def test_the_table_numbers_files_and_the_hunks_that_can_be_chosen() -> None:
    assert parts_table(view()).plain.splitlines() == [
        "  1  modified  src/a.py  +3 -1",
        "       #1  lines 10-14  def one():",
        "       #2  line 42",
        "  2  added     odd#1  +1 -0",
    ]


def test_how_it_stands_is_said_before_anybody_decides() -> None:
    met = Collision("a.py", CollisionKind.SAME_LINES, ("run_1/t1.r0", "run_2/t2.r0"), 3, 4)
    outlook = Outlook("run_1/t1.r0", Fitness.CONFLICTS, reason="a.py: you changed it")
    lines = standing_lines(view(outlook=outlook, overlaps=(met,)))
    assert lines[0] == "Now: conflicts: a.py: you changed it"
    assert lines[1] == "Overlaps: a.py, lines 3-4, are also changed by run_2/t2.r0"
    merged = Outlook("run_1/t1.r0", Fitness.MERGES, merged=("a.py",))
    assert standing_lines(view(outlook=merged)) == ["Now: it merges with your edits of a.py"]
    assert standing_lines(view()) == []


def test_an_option_lands_only_what_it_names(desk: Desk) -> None:
    office = waiting()
    result = desk.give(office, "review", "--apply", "--only", "src/parser.py#1", "--reason", "ok")
    assert result.exit_code == 0, result.stderr
    ((_, answer),) = office.answers
    chosen = [{"path": "src/parser.py", "hunks": (1,)}]
    content = {"decision": "apply", "reason": "ok", "choose": chosen}
    assert answer == PersonAnswer(content, "you")


@pytest.mark.parametrize("words", [[], ["--reject", "no"]])
def test_a_part_goes_with_apply_alone(desk: Desk, words: list[str]) -> None:
    office = waiting()
    result = desk.give(office, "review", "--only", "a.py", *words)
    assert (result.exit_code, office.answers) == (2, [])
    assert "--only goes with --apply" in result.stderr


def test_a_file_that_is_not_in_the_change_is_an_error_and_nothing_is_answered(desk: Desk) -> None:
    office = waiting()
    result = desk.give(office, "review", "--apply", "--only", "src/perser.py")
    assert (result.exit_code, office.answers) == (1, [])
    assert "did you mean src/parser.py" in result.stderr


def test_where_nobody_can_be_asked_it_is_printed_how_it_stands(desk: Desk) -> None:
    office = waiting()
    office.outlook = Outlook("x", Fitness.STALE, reason="notes.txt changed since it was checked")
    result = desk.give(office, "review")
    assert "Now: stale: notes.txt changed since it was checked" in result.stdout


def test_a_part_is_picked_from_a_numbered_list(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    with at_terminal("parked", "review", cwd=tmp_path, env={"ANSWERS": str(answers)}) as person:
        person.sees("part (p)")
        person.sees("skip (s)?")
        person.types("p\n")
        person.sees("1  modified  src/parser.py")
        person.sees("empty: back)?")
        person.types("7\n")
        person.sees("The change has no file 7")
        person.sees("empty: back)?")
        person.types("1\n")
        assert person.leaves() == 0
    chosen = "[{'path': 'src/parser.py'}]"
    assert answers.read_text() == f"[{{'decision': 'apply', 'reason': '', 'choose': {chosen}}}]"
