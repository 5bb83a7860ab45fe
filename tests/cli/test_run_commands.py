"""The commands that look at runs, end them, take them up again and take them back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from msgspec import structs

from agentcanvas.cli.offices import pick
from agentcanvas.errors import ValidationError
from agentcanvas.proposals.model import Decision
from agentcanvas.protocol.records import ResultEvent, TextEvent, TranscriptEvent
from agentcanvas.runs import events as e
from agentcanvas.runs.office import TranscriptEntry
from tests.cli import fake_office as fake
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import FakeOffice, Played
from tests.cli.pseudo_terminal import at_terminal

__all__ = ["desk"]

RUN = fake.RUN
HOSTILE = "\x1b[2J[red]\u202e" + "x" * 3000


def done(run_id: str = RUN) -> Played:
    return fake.finished(Played(run_id))


def interrupted() -> Played:
    cut = e.RunInterrupted(actor="engine", provenance=fake.SYSTEM)
    return fake.at_work(Played()).tell(cut)


# Which run ----------------------------------------------------------------------------------------


def test_a_run_is_found_by_its_id_its_beginning_or_its_end_and_the_newest_by_nothing() -> None:
    runs = [done(run_id).summary for run_id in ("run_2026_b2", "run_2026_a1", "run_2025_a2")]
    assert pick(runs, None).run_id == "run_2026_b2"
    assert pick(runs, "run_2026_a1").run_id == "run_2026_a1"
    assert pick(runs, "run_2025").run_id == "run_2025_a2"
    assert pick(runs, "b2").run_id == "run_2026_b2"


def test_a_part_that_several_runs_have_is_answered_with_all_of_them() -> None:
    runs = [done(run_id).summary for run_id in ("run_2026_b2", "run_2026_a1")]
    with pytest.raises(ValidationError, match=r"(?s)any of these.*run_2026_b2.*run_2026_a1"):
        pick(runs, "run_2026")


def test_a_run_that_is_not_there_is_answered_with_the_next_best() -> None:
    with pytest.raises(ValidationError, match="did you mean run_20260301_101500"):
        pick([done().summary], "run_20260301_101501x")


@pytest.mark.parametrize("command", ["show", "stop", "resume", "retry", "undo", "report"])
def test_without_any_run_every_command_says_how_to_start_one(desk: Desk, command: str) -> None:
    result = desk.give(FakeOffice(), command)
    assert result.exit_code == 1
    assert result.stderr == (
        'agentcanvas: No runs yet. Start one with: agentcanvas run "what is to be done"\n'
    )


# runs ---------------------------------------------------------------------------------------------


def test_an_empty_list_of_runs_says_how_to_start_one(desk: Desk) -> None:
    result = desk.give(FakeOffice(), "runs")
    assert result.exit_code == 0
    assert result.stdout.startswith("No runs yet. Start one with: agentcanvas run")


def test_runs_are_listed_with_what_they_wait_for(desk: Desk) -> None:
    result = desk.give(FakeOffice(done("run_1"), fake.propose(Played("run_2"))), "runs")
    first, second, waits = result.stdout.splitlines()[1:]
    assert first.split()[:2] == ["run_2", "parked"]
    assert waits.startswith("Waits for you: Apply the change of Coder")
    assert waits.endswith("agentcanvas review run_2")
    assert second.split()[:2] == ["run_1", "done"]
    assert "1/1" in second


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_list_fits_any_window_and_is_harmless(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    run = Played().tell(fake.started(HOSTILE))
    result = desk.give(FakeOffice(run), "runs")
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert all(len(line) <= int(columns) for line in result.stdout.splitlines())


def test_runs_as_json_are_one_object_a_line(desk: Desk) -> None:
    result = desk.give(FakeOffice(done("run_1"), done("run_2")), "runs", "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [run["runId"] for run in found] == ["run_2", "run_1"]
    assert desk.give(FakeOffice(), "runs", "--json").stdout == ""


# show ---------------------------------------------------------------------------------------------


@pytest.mark.req("V1")
def test_show_says_how_each_task_stands_and_what_speaks_for_it(desk: Desk) -> None:
    said = desk.give(FakeOffice(done()), "show").stdout
    for part in (
        "run_20260301_101500  done",
        "✓ task-1  Coder  applied",
        "checks   tests: 2 failed → all 14 passed",
        "verdict  apply by you",
        "files    src/parser.py",
        "Done: tests green.",
        "agentcanvas undo",
    ):
        assert part in said


def test_show_says_whom_a_parked_run_waits_for_and_how_to_answer(desk: Desk) -> None:
    said = desk.give(FakeOffice(fake.propose(Played())), "show", "101500").stdout
    assert "It waits for you." in said
    assert f"agentcanvas review {RUN} task-1 --apply" in said


def test_show_as_json_is_one_object_with_evidence_and_verdicts(desk: Desk) -> None:
    found = json.loads(desk.give(FakeOffice(done()), "show", "--json").stdout)
    task = found["tasks"]["task-1"]
    assert (found["status"], task["status"]) == ("done", "applied")
    assert task["evidence"] == "tests: 2 failed → all 14 passed"
    assert task["verdicts"] == [{"decision": "apply", "by": "you", "reason": ""}]


def test_what_agents_write_cannot_take_over_the_terminal(desk: Desk) -> None:
    run = Played().tell(
        fake.started(HOSTILE),
        fake.dispatched(what=HOSTILE),
        fake.checked(sentence=HOSTILE),
        fake.reviewed(Decision.REJECT, HOSTILE),
        fake.warned(HOSTILE),
        *fake.ending(done=False, reason=HOSTILE),
    )
    for words in (["show"], ["show", "--json"], ["report"], ["review", "--list"]):
        result = desk.give(FakeOffice(run), *words)
        assert result.exit_code == 0
        assert "\x1b" not in result.output
        assert "\u202e" not in result.output
        assert "[red]" in result.stdout or "Nothing" in result.stdout


# transcript and attach ----------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["coder"], ["Coder"], [RUN, "coder"]])
def test_a_transcript_is_what_the_agent_said_and_did(desk: Desk, words: list[str]) -> None:
    result = desk.give(FakeOffice(done()), "transcript", *words)
    assert result.stdout.splitlines() == [
        "I look at the parser.",
        "→ shell pytest -q",
        "  2 failed",
        "  failed (exit code 1)",
        "parse() strips each part",
    ]


def test_a_transcript_as_json_is_one_event_a_line(desk: Desk) -> None:
    result = desk.give(FakeOffice(done()), "transcript", "coder", "--json", "--follow")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["type"] for each in found] == ["text", "tool_call", "tool_result", "result"]
    assert found[1]["input"] == {"command": "pytest -q"}


def test_an_agent_that_is_not_in_the_team_is_answered_with_those_who_are(desk: Desk) -> None:
    result = desk.give(FakeOffice(done()), "transcript", "codre")
    assert result.exit_code == 1
    assert "did you mean coder?" in result.stderr
    assert desk.give(FakeOffice(done()), "transcript", "a", "b", "c").exit_code == 2


def test_an_agent_that_has_said_nothing_is_called_silent(desk: Desk) -> None:
    assert (
        "Writer has said nothing yet." in desk.give(FakeOffice(done()), "transcript", "docs").stdout
    )


@pytest.mark.parametrize("words", [["coder"], [RUN, "coder"]])
def test_attach_says_when_an_agent_is_not_at_work(desk: Desk, words: list[str]) -> None:
    result = desk.give(FakeOffice(done()), "attach", *words)
    assert result.exit_code == 0
    assert result.stdout == (
        f"Coder is not at work. What it said: agentcanvas transcript {RUN} coder\n"
    )


class Talking(FakeOffice):
    """Its followers hear the last words too late; the turn has ended by then."""

    async def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[e.Recorded]:
        if follow:
            await self.heard.wait()
            run = self._run(run_id)
            run.said.append(_said(2, "I am done."))
            run.tell(fake.turn_done())
        async for entry in super().events(run_id, after=after, follow=False):
            yield entry

    async def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        if follow:
            yield _said(1, "I think.")
            self.heard.set()
            await anyio.sleep_forever()
        async for entry in super().transcript(run_id, agent, after=after):
            yield entry

    def __init__(self, *runs: Played) -> None:
        super().__init__(*runs)
        self.heard = anyio.Event()


def _said(number: int, words: str) -> TranscriptEntry:
    return TranscriptEntry(number, "coder", TextEvent(ts=0, seq=number, text=words))


def test_attach_follows_an_agent_until_its_turn_ends_and_misses_no_word(desk: Desk) -> None:
    result = desk.give(Talking(fake.at_work(Played())), "attach", "coder")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "I think.",
        "I am done.",
        "The turn of Coder has ended.",
    ]


@pytest.mark.parametrize("command", ["runs", "show"])
def test_a_pipe_gets_every_line_whole(
    desk: Desk, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    request = "strip the blanks " * 7 + "around each part"
    said = desk.give(FakeOffice(Played().tell(fake.started(request))), command).stdout
    assert request in said
    assert max(len(line) for line in said.splitlines()) < 400


# tell ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("use tabs",), ("use", "tabs")])
def test_what_is_told_needs_no_quotes(desk: Desk, words: tuple[str, ...]) -> None:
    office = FakeOffice(fake.at_work(Played()))
    result = desk.give(office, "tell", "coder", *words)
    assert (result.exit_code, office.calls) == (0, [f"tell {RUN} coder use tabs"])
    assert "next turn" in result.stdout


# stop, resume, retry ------------------------------------------------------------------------------


def test_stop_ends_a_run_and_says_that_what_is_there_is_kept(desk: Desk) -> None:
    office = FakeOffice(fake.at_work(Played()))
    result = desk.give(office, "stop")
    assert (result.exit_code, office.calls) == (0, [f"stop {RUN}: stopped by you"])
    assert "is kept" in result.stdout


def test_stopping_what_has_ended_says_so_and_does_nothing(desk: Desk) -> None:
    office = FakeOffice(done())
    result = desk.give(office, "stop")
    assert (result.exit_code, office.calls) == (0, [])
    assert "had already ended: quality_gate" in result.stdout


@pytest.mark.req("D25")
@pytest.mark.parametrize("lag", [0, 2])
def test_resume_goes_on_and_shows_only_what_is_new(desk: Desk, lag: int) -> None:
    office = FakeOffice(interrupted(), lag=lag)
    result = desk.give(office, "resume")
    assert (result.exit_code, office.calls) == (0, [f"resume {RUN}"])
    assert result.stdout.splitlines()[0].endswith("Resumed")
    assert "task-1 → Coder" not in result.stdout


@pytest.mark.req("D25")
def test_resuming_a_run_that_waits_for_an_answer_says_what_it_waits_for(desk: Desk) -> None:
    office = FakeOffice(fake.propose(Played()))
    result = desk.give(office, "resume")
    assert (result.exit_code, office.calls) == (3, [])
    assert "--apply" in result.stdout


def test_resuming_what_is_done_is_refused_with_the_way_to_repeat_it(desk: Desk) -> None:
    result = desk.give(FakeOffice(done()), "resume")
    assert result.exit_code == 1
    assert f"agentcanvas retry {RUN}" in result.stderr


def test_a_run_that_is_interrupted_while_it_is_watched_ends_with_1(desk: Desk) -> None:
    office = FakeOffice(begin=lambda run: run.tell(*[x.event for x in interrupted().log]))
    result = desk.give(office, "run", "x y")
    assert result.exit_code == 1
    assert "Resume:  agentcanvas resume" in result.stdout


def test_retry_begins_the_same_as_a_new_run_and_watches_it(desk: Desk) -> None:
    office = FakeOffice(done(), begin=lambda run: run.tell(fake.started(), *fake.ending(done=True)))
    result = desk.give(office, "retry")
    assert (result.exit_code, office.calls) == (0, [f"retry {RUN}"])
    assert f"Run {RUN}1 (one-off)" in result.stdout


# undo ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ([], f"undo {RUN} all"),
        ([RUN], f"undo {RUN} all"),
        (["task-1"], f"undo {RUN} task-1"),
        ([RUN, "task-1"], f"undo {RUN} task-1"),
    ],
)
def test_undo_says_what_it_takes_back_before_it_does(
    desk: Desk, words: list[str], call: str
) -> None:
    office = FakeOffice(done())
    result = desk.give(office, "undo", *words, "--yes")
    assert (result.exit_code, office.calls) == (0, [call])
    assert result.stdout.splitlines() == [
        f"This takes back what {RUN} landed, the latest first:",
        "  task-1  src/parser.py",
        "✓ task-1 taken back: src/parser.py",
    ]


def test_undo_without_a_run_takes_the_newest_that_landed_something(desk: Desk) -> None:
    newer = Played("run_20260301_111500")
    office = FakeOffice(done(), fake.propose(newer))
    result = desk.give(office, "undo", "--yes")
    assert (result.exit_code, office.calls) == (0, [f"undo {RUN} all"])


@pytest.mark.parametrize("words", [[], [RUN], [RUN, "task-1"]], ids=" ".join)
def test_undo_without_a_terminal_wants_to_hear_that_just_this_is_meant(
    desk: Desk, words: list[str]
) -> None:
    office = FakeOffice(done())
    result = desk.give(office, "undo", *words)
    assert (result.exit_code, office.calls) == (2, [])
    again = " ".join(["agentcanvas undo", *words, "--yes"])
    assert result.stderr.strip().endswith(f"Say that you mean it: {again}")


def test_what_cannot_be_taken_back_is_refused_by_name(desk: Desk) -> None:
    office = FakeOffice(done(), refuses={"task-1": "src/parser.py was edited since."})
    result = desk.give(office, "undo", "--yes")
    assert result.exit_code == 1
    assert "task-1 was not: src/parser.py was edited since." in result.stderr


def test_undo_of_a_run_that_landed_nothing_is_a_sentence(desk: Desk) -> None:
    result = desk.give(FakeOffice(fake.propose(Played())), "undo", "--yes")
    assert result.exit_code == 1
    assert "has nothing in your files to take back" in result.stderr
    result = desk.give(FakeOffice(done()), "undo", RUN, "task-2", "--yes")
    assert "did you mean task-1?" in result.stderr


@pytest.mark.parametrize(("typed", "said"), [("y\n", "✓ task-1 taken back"), ("\n", "Nothing was")])
def test_at_a_terminal_undo_asks_first(tmp_path: Path, typed: str, said: str) -> None:
    with at_terminal("done", "undo", cwd=tmp_path) as person:
        person.sees("Take this back? (y/N)")
        person.types(typed)
        person.sees(said)
        assert person.leaves() == 0


# report -------------------------------------------------------------------------------------------


@pytest.mark.req("V6")
def test_the_report_is_printed_as_markdown_json_or_a_page(desk: Desk) -> None:
    assert desk.give(FakeOffice(done()), "report").stdout.startswith("# Run Report: one-off / ")
    as_json = desk.give(FakeOffice(done()), "report", "--format", "json").stdout
    assert json.loads(as_json)["run"]["id"] == RUN
    assert "<html" in desk.give(FakeOffice(done()), "report", "--format", "html").stdout


@pytest.mark.req("V6")
def test_the_report_is_written_where_one_says(desk: Desk) -> None:
    result = desk.give(FakeOffice(done()), "report", "--output", "report.md")
    assert result.stdout == f"The report of {RUN} is in report.md\n"
    assert (desk.root / "report.md").read_text().startswith("# Run Report")
    result = desk.give(FakeOffice(done()), "report", "--output", "no/such/folder/report.md")
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


# What a team was given ----------------------------------------------------------------------------


@pytest.mark.req("D11")
def test_show_says_which_network_and_variables_agents_have_beyond_the_usual(desk: Desk) -> None:
    team = (
        e.Member("coder", "Coder", "worker", "open", ("MY_KEY",)),
        e.Member("docs", "Writer", "worker", "pypi.org, *.example.org"),
    )
    start = fake.started()
    given = structs.replace(start, payload=structs.replace(start.payload, team=team))
    said = desk.give(FakeOffice(Played().tell(given)), "show").stdout
    line = "Network: open (coder) and pypi.org, *.example.org (docs); variables: MY_KEY (coder)"
    assert line in " ".join(said.split())
    assert "given" not in desk.give(FakeOffice(done()), "show").stdout


# Once, and line by line ---------------------------------------------------------------------------


def test_what_a_command_printed_is_not_printed_again_as_its_answer(desk: Desk) -> None:
    played = done()
    texts = ["one", "", "two"]
    events: list[TranscriptEvent] = [
        TextEvent(ts=1, seq=n, text=text) for n, text in enumerate(texts)
    ]
    answer = ResultEvent(ts=2, seq=3, text="one\n\ntwo")
    played.said[:] = [
        TranscriptEntry(number, "coder", event)
        for number, event in enumerate([*events, answer], start=1)
    ]
    assert desk.give(FakeOffice(played), "transcript", "coder").stdout == "one\ntwo\n"


def test_a_reason_of_several_lines_keeps_them(desk: Desk) -> None:
    reason = "The setup failed: exit code 1. Its last lines:\noh\nAll of them: setup.log"
    ended = e.RunEnded(
        actor="engine", provenance=fake.SYSTEM, payload=e.End(done=False, reason=reason)
    )
    said = desk.give(FakeOffice(fake.at_work(Played()).tell(ended)), "show").stdout
    assert f"Everything so far is kept.\n{reason}\n" in said
