"""``agentcanvas review``: deciding by option, and at a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from agentcanvas.proposals.radar import Fitness, Outlook
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from tests.cli import fake_office as fake
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import FakeOffice, Played, judge, land_one, propose, two_reviews
from tests.cli.pseudo_terminal import at_terminal

__all__ = ["desk"]

pytestmark = pytest.mark.req("D24", "R1")

RUN = fake.RUN


def parked(**options: object) -> FakeOffice:
    return FakeOffice(propose(Played()), go_on=judge, **options)  # type: ignore[arg-type]  # passed on as they are


def answered(office: FakeOffice) -> object:
    ((_, answer),) = office.answers
    assert answer.person == "you"
    return answer.content


# By option ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [[], ["task-1"], [RUN], [RUN, "task-1"], ["101500"], ["run_2026"]], ids=" ".join
)
def test_what_waits_is_found_by_run_by_task_by_a_part_or_by_being_the_only_one(
    desk: Desk, words: list[str]
) -> None:
    office = parked()
    result = desk.give(office, "review", *words, "--apply")
    assert result.exit_code == 0, result.output
    assert answered(office) == {"decision": "apply", "reason": ""}
    assert "task-1 applied: src/parser.py" in result.stdout


@pytest.mark.parametrize(("option", "decision"), [("--reject", "reject"), ("--revise", "revise")])
def test_a_reason_goes_along_and_the_exit_code_is_the_runs(
    desk: Desk, option: str, decision: str
) -> None:
    office = parked()
    result = desk.give(office, "review", option, "the tests are missing")
    assert result.exit_code == 4
    assert answered(office) == {"decision": decision, "reason": "the tests are missing"}


@pytest.mark.req("C5", "D24")
def test_what_the_hub_asks_is_pointed_to_and_not_taken_for_a_review(desk: Desk) -> None:
    office = parked()
    (run,) = office.played.values()
    run.asks.append(
        PersonAsk(
            ask_id="a-1",
            person="you",
            run_id="default",
            agent_id="worker",
            scope="approval:m1",
            text="worker wants other to do deploy.",
        )
    )
    result = desk.give(office, "review", "--apply")
    assert result.exit_code == 0, "only one review waits"
    assert "(1): agentcanvas approvals" in result.stderr
    assert "deploy" not in desk.give(office, "review", "--list").stdout


@pytest.mark.req("D25")
def test_the_run_is_waited_for_also_when_it_takes_the_answer_up_late(desk: Desk) -> None:
    office = parked(lag=3)
    result = desk.give(office, "review", "--apply")
    assert result.exit_code == 0
    assert "Done: tests green." in result.stdout


@pytest.mark.req("D25")
@pytest.mark.parametrize("lag", [0, 2])
def test_with_something_else_still_waiting_the_verdict_lands_and_the_exit_code_is_3(
    desk: Desk, lag: int
) -> None:
    office = FakeOffice(two_reviews(Played()), go_on=land_one, lag=lag)
    result = desk.give(office, "review", "task-2", "--apply")
    assert "task-2 applied: task-2.py" in result.stdout
    assert result.exit_code == 3
    assert f"agentcanvas review {RUN} task-1 --apply" in result.stdout


def test_json_tells_what_follows_as_events_from_there_on(desk: Desk) -> None:
    result = desk.give(parked(), "review", "--apply", "--json")
    events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert events == [
        "person_answered",
        "run_resumed",
        "proposal_reviewed",
        "proposal_applied",
        "run_ended",
    ]


def test_with_several_waiting_it_has_to_be_said_which(desk: Desk) -> None:
    office = FakeOffice(two_reviews(Played()), go_on=land_one)
    result = desk.give(office, "review", "--apply")
    assert (result.exit_code, office.answers) == (2, [])
    assert f"agentcanvas review {RUN} task-1" in result.stderr
    assert f"agentcanvas review {RUN} task-2" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--apply", "--reject", "x"], "Say one of --apply and --reject"),
        (["--reject", " "], "--reject needs words"),
        (["--answer", ""], "--answer needs words"),
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_answered(
    desk: Desk, words: list[str], sentence: str
) -> None:
    office = parked()
    result = desk.give(office, "review", *words)
    assert (result.exit_code, office.answers) == (2, [])
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["task-9", "--apply"], "did you mean task-1?"),
        ([RUN, "task-9", "--apply"], f"task-9 does not wait for you in {RUN}"),
        ([RUN, "nothing-like-it", "--apply"], "known here: task-1"),
        (["run_2019", "task-1", "--apply"], "called run_2019"),
    ],
)
def test_a_name_that_nothing_has_is_answered_with_the_next_best(
    desk: Desk, words: list[str], sentence: str
) -> None:
    result = desk.give(parked(), "review", *words)
    assert result.exit_code == 1
    assert sentence in result.stderr


def test_where_nobody_can_be_asked_the_change_is_printed_with_its_commands(desk: Desk) -> None:
    result = desk.give(parked(), "review")
    assert result.exit_code == 3
    assert "+    return [part.strip()" in result.stdout
    assert f"agentcanvas review {RUN} task-1 --apply" in result.stdout


def test_the_list_names_run_task_and_question(desk: Desk) -> None:
    office = FakeOffice(two_reviews(Played()))
    result = desk.give(office, "review", "--list")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{RUN}  task-1  Apply the change of Coder for task-1?",
        f"{RUN}  task-2  Apply the change of Coder for task-2?",
    ]


def test_the_list_is_json_for_programs(desk: Desk) -> None:
    office = FakeOffice(two_reviews(Played()))
    result = desk.give(office, "review", "--list", "--json")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [ask["text"].splitlines()[0] for ask in told] == [
        "Apply the change of Coder for task-1?",
        "Apply the change of Coder for task-2?",
    ]
    assert desk.give(FakeOffice(), "review", "--list", "--json").stdout == ""


@pytest.mark.parametrize("words", [[], ["--list"]])
def test_when_nothing_waits_it_is_said(desk: Desk, words: list[str]) -> None:
    result = desk.give(FakeOffice(), "review", *words)
    assert (result.exit_code, result.stdout) == (0, "Nothing waits for you.\n")


def test_a_verdict_on_nothing_is_an_error(desk: Desk) -> None:
    result = desk.give(FakeOffice(), "review", "--apply")
    assert result.exit_code == 1
    assert "Nothing waits for you." in result.stderr


def plan_waits() -> FakeOffice:
    return FakeOffice(fake.accept_plan(Played()), go_on=fake.carry_out)


def test_a_plan_is_accepted_as_it_is_declined_or_replaced(desk: Desk) -> None:
    office = plan_waits()
    assert desk.give(office, "review", "plan", "--apply").exit_code == 0
    assert answered(office) == fake.PLAN
    office = plan_waits()
    assert desk.give(office, "review", "plan", "--reject", "too long").exit_code == 4
    assert answered(office) is None
    office = plan_waits()
    mine = "tasks: [{task_id: a, agent: coder, description: b}]"
    assert desk.give(office, "review", "plan", "--answer", mine).exit_code == 0
    assert answered(office) == {"tasks": [{"task_id": "a", "agent": "coder", "description": "b"}]}
    assert desk.give(plan_waits(), "review", "plan", "--revise", "x").exit_code == 2


def test_a_question_is_answered_with_text_or_with_data(desk: Desk) -> None:
    def asked(**options: object) -> FakeOffice:
        run = Played().tell(fake.started())
        run.ask(fake.question_ask(**options)).park()  # type: ignore[arg-type]  # passed on as they are
        return FakeOffice(run, go_on=lambda _run, _answer: fake.ending(done=True))

    office = asked()
    assert desk.give(office, "review", "--answer", "a comma").exit_code == 0
    assert answered(office) == "a comma"
    office = asked(schema={"type": "object"})
    assert desk.give(office, "review", "--answer", '{"sign": ","}').exit_code == 0
    assert answered(office) == {"sign": ","}
    result = desk.give(asked(schema={"type": "object"}), "review", "--answer", "{")
    assert result.exit_code == 2
    assert "neither JSON nor YAML" in result.stderr
    assert desk.give(asked(), "review", "--apply").exit_code == 2


def test_an_ask_that_was_answered_elsewhere_meanwhile_is_a_sentence(desk: Desk) -> None:
    class Late(FakeOffice):
        async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
            self._run(RUN).asks.clear()
            await super().answer(ask_id, answer)

    result = desk.give(Late(propose(Played())), "review", "--apply")
    assert result.exit_code == 1
    assert "Nothing waits for an answer" in result.stderr


# At a terminal ------------------------------------------------------------------------------------


def test_a_change_is_looked_at_sent_back_and_the_reason_goes_along(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    env = {"ANSWERS": str(answers)}
    with at_terminal("parked", "review", cwd=tmp_path, env=env) as person:
        person.sees("Review task-1 by Coder")
        person.sees("Checks: tests: 2 failed → all 14 passed")
        person.sees("skip (s)?")
        person.types("t\n")
        person.sees("→ shell pytest -q")
        person.sees("skip (s)?")
        person.types("d\n")
        person.sees("+    return [part.strip()")
        person.sees("skip (s)?")
        person.types("r\n")
        person.sees("What is to be done differently? (empty: back)")
        person.types("\n")
        person.sees("skip (s)?")
        person.types("revise\n")
        person.sees("(empty: back)")
        person.types("strip tabs too\n")
        person.sees("task-1 sent back by you: strip tabs too")
        assert person.leaves() == 4
    assert answers.read_text() == "[{'decision': 'revise', 'reason': 'strip tabs too'}]"


@pytest.mark.req("U2")
def test_notes_on_lines_are_collected_and_may_be_all_there_is_to_say(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    with at_terminal("parked", "review", cwd=tmp_path, env={"ANSWERS": str(answers)}) as person:
        person.sees("skip (s)?")
        person.types("n\n")
        person.sees("FILE:LINE:TEXT")
        person.types("src/nothing.py:1:x\n")
        person.sees("src/nothing.py is not in the change")
        person.sees("skip (s)?")
        person.types("n\n")
        person.sees("FILE:LINE:TEXT")
        person.types("src/parser.py:2:and tabs?\n")
        person.sees("skip (s)?")
        person.types("r\n")
        person.sees("nothing more to say")
        person.types("\n")
        assert person.leaves() == 4
    assert "'text': 'and tabs?', 'line': 2" in answers.read_text()
    assert "'quote': '    return [part.strip()" in answers.read_text()


def test_an_answer_that_is_none_is_asked_for_again(tmp_path: Path) -> None:
    with at_terminal("parked", "review", cwd=tmp_path) as person:
        person.sees("skip (s)?")
        person.types("yes please\n")
        person.sees("yes please is none of: apply (a)")
        person.sees("(s)?")
        person.types("x\n")
        person.sees("Why is it rejected?")
        person.types("no\n")
        assert person.leaves() == 4


@pytest.mark.parametrize("keys", ["s\n", "\x04"], ids=["skip", "end of input"])
def test_what_is_left_for_later_stays_as_it_is(tmp_path: Path, keys: str) -> None:
    answers = tmp_path / "answers"
    with at_terminal("parked", "review", cwd=tmp_path, env={"ANSWERS": str(answers)}) as person:
        person.sees("skip (s)?")
        person.types(keys)
        person.sees("It waits for you.")
        assert person.leaves() == 3
    assert answers.read_text() == "[]"


def test_of_several_one_is_chosen_and_the_others_follow(tmp_path: Path) -> None:
    with at_terminal("two", "review", cwd=tmp_path) as person:
        person.sees("2  run_20260301_101500  task-2")
        person.sees("Which one (1-2)?")
        person.types("7\n")
        person.sees("7 is none of them.")
        person.sees("Which one (1-2)?")
        person.types("2\n")
        person.sees("Review task-2")
        person.sees("skip (s)?")
        person.types("a\n")
        person.sees("task-2 applied")
        person.sees("Review task-1")
        person.sees("skip (s)?")
        person.types("a\n")
        person.sees("Done: tests green.")
        assert person.leaves() == 0


def test_a_long_diff_goes_to_the_pager(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED; cat\n")
    pager.chmod(0o755)
    env = {"PAGER": str(pager)}
    with at_terminal("parked", "review", cwd=tmp_path, rows=10, env=env) as person:
        person.sees("PAGED")
        person.sees("+    return [part.strip()")
        person.sees("skip (s)?")
        person.types("s\n")
        assert person.leaves() == 3


def test_ctrl_c_in_the_pager_is_the_pagers(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\ntrap 'echo HEARD; exit 0' INT\necho PAGED\nread key < /dev/tty\n")
    pager.chmod(0o755)
    env = {"PAGER": str(pager)}
    with at_terminal("parked", "review", cwd=tmp_path, rows=10, env=env) as person:
        person.sees("PAGED")
        person.presses_ctrl_c()
        person.sees("HEARD")
        person.sees("skip (s)?")
        person.types("a\n")
        assert person.leaves() == 0


def test_keys_struck_before_the_question_do_not_answer_it(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    with at_terminal("parked", "review", cwd=tmp_path, env={"ANSWERS": str(answers)}) as person:
        person.types("a\n")
        person.sees("skip (s)?")
        person.types("s\n")
        assert person.leaves() == 3
    assert answers.read_text() == "[]"


# Comments -----------------------------------------------------------------------------------------


@pytest.mark.req("U2")
def test_comments_go_along_with_the_line_that_they_are_about(desk: Desk) -> None:
    office = parked()
    words = ["--comment", "src/parser.py:1:Is it ever empty?", "-c", "src/parser.py:Split it."]
    result = desk.give(office, "review", "--revise", "not yet", *words)
    assert result.exit_code == 4, result.output
    content = answered(office)
    assert isinstance(content, dict)
    assert content["reason"] == "not yet"
    first, second = content["comments"]
    assert (first["path"], first["line"], first["text"]) == (
        "src/parser.py",
        1,
        "Is it ever empty?",
    )
    assert first["quote"]
    assert second == {"path": "src/parser.py", "text": "Split it."}


@pytest.mark.req("U2")
@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["--apply", "-c", "src/parser.py:1:x"], "--revise or --reject"),
        (["--revise", "x", "-c", "src/parser.py"], "FILE:LINE:TEXT"),
        (["--revise", "x", "-c", "src/parsre.py:1:x"], "src/parser.py"),
        (["--reject", "x", "--reason", "y"], "--reason goes with --apply"),
    ],
)
def test_a_comment_that_cannot_be_meant_is_refused_with_advice(
    desk: Desk, words: list[str], advice: str
) -> None:
    office = parked()
    result = desk.give(office, "review", *words)
    assert result.exit_code in {1, 2}
    assert advice in result.output
    assert not office.answers


@pytest.mark.req("C4")
def test_a_reason_to_apply_against_the_checks_goes_along(desk: Desk) -> None:
    office = parked()
    desk.give(office, "review", "--apply", "--reason", "the red test is known")
    assert answered(office) == {"decision": "apply", "reason": "the red test is known"}


@pytest.mark.req("C4")
@pytest.mark.parametrize("reason", [[], ["--reason", " "]])
def test_an_apply_against_a_red_check_is_refused_with_the_words_that_it_takes(
    desk: Desk, reason: list[str]
) -> None:
    office = fake.red(parked())
    result = desk.give(office, "review", "--apply", *reason)
    assert (result.exit_code, office.answers) == (1, [])
    assert "Not applied: t is red with this change (green → red)." in result.stderr
    assert f'agentcanvas review {RUN} task-1 --apply --reason "…"' in result.stderr
    assert desk.give(office, "review", "--apply", "--reason", "because").exit_code == 0
    assert answered(office) == {"decision": "apply", "reason": "because"}


@pytest.mark.req("C4")
def test_a_red_change_is_offered_to_be_applied_with_a_reason(desk: Desk) -> None:
    said = desk.give(fake.red(parked()), "review").stdout
    assert f'agentcanvas review {RUN} task-1 --apply --reason "…"' in said


@pytest.mark.req("D7")
def test_an_apply_of_what_conflicts_is_refused_and_the_change_still_waits(desk: Desk) -> None:
    office = parked()
    why = "n.txt: line 5 has changed since, by you"
    office.outlook = Outlook("x", Fitness.CONFLICTS, reason=why)
    result = desk.give(office, "review", "--apply")
    assert (result.exit_code, office.answers) == (1, [])
    assert f"Not applied: {why}. Take that back or set it aside" in result.stderr
    assert f'agentcanvas review {RUN} task-1 --revise "…"' in result.stderr
    assert "--apply" not in desk.give(office, "review").stdout


@pytest.mark.req("D7")
def test_a_change_that_turned_out_not_to_land_is_an_error_with_the_reason(desk: Desk) -> None:
    def refuse(run: Played, answer: PersonAnswer) -> list[e.RunEvent]:
        del answer
        before = len(run.log)
        run.ask(structs.replace(fake.review_ask(), ask_id="again", problem="n.txt has changed"))
        assert len(run.log) > before
        run.park()
        return []

    result = desk.give(FakeOffice(propose(Played()), go_on=refuse), "review", "--apply")
    assert result.exit_code == 1
    assert "Asked again: n.txt has changed" in result.stdout


def test_an_answer_to_a_change_is_wrong_usage_that_names_the_right_options(desk: Desk) -> None:
    office = parked()
    result = desk.give(office, "review", RUN, "--answer", "no")
    assert (result.exit_code, office.answers) == (2, [])
    assert "task-1 is a change: say --apply, --revise or --reject." in result.stderr


@pytest.mark.req("C4")
def test_at_a_terminal_red_checks_are_answered_for_before_anything_is_applied(
    tmp_path: Path,
) -> None:
    answers = tmp_path / "answers"
    with at_terminal("red", "review", cwd=tmp_path, env={"ANSWERS": str(answers)}) as person:
        person.sees("skip (s)?")
        person.types("a\n")
        person.sees("Checks are red: t. Why should it land all the same? (empty: back)")
        person.types("\n")
        person.sees("skip (s)?")
        person.types("a\n")
        person.sees("(empty: back)")
        person.types("because\n")
        assert person.leaves() == 0
        assert person.screen.count("+    return [part.strip()") == 1
    assert answers.read_text() == "[{'decision': 'apply', 'reason': 'because'}]"


def test_who_is_asked_again_sees_why_and_not_the_whole_diff_once_more(tmp_path: Path) -> None:
    with at_terminal("again", "review", cwd=tmp_path) as person:
        person.sees("Review task-1")
        person.sees("Asked again: the ground has moved")
        person.sees("skip (s)?")
        person.types("d\n")
        person.sees("+    return [part.strip()")
        person.sees("skip (s)?")
        person.types("s\n")
        assert person.leaves() == 3
        assert person.screen.count("+    return [part.strip()") == 1


@pytest.mark.req("U2")
@pytest.mark.parametrize(("line", "taken"), [("40", True), ("41", False), ("-41", False)])
def test_a_comment_on_a_line_that_the_file_does_not_have_is_refused(
    desk: Desk, line: str, *, taken: bool
) -> None:
    class Forty(FakeOffice):
        async def file(self, *_: object) -> bytes:
            return b"x\n" * 40

    office = Forty(propose(Played()), go_on=judge)
    result = desk.give(office, "review", "--revise", "no", "-c", f"src/parser.py:{line}:hm")
    assert bool(office.answers) == taken
    assert ("src/parser.py has 40 lines" in result.stderr) != taken


def test_a_plan_that_waits_is_named_by_its_tasks(desk: Desk) -> None:
    listed = desk.give(plan_waits(), "review", "--list").stdout
    assert "plan  Accept the plan? 2 tasks: parser (coder), docs (docs)" in listed
