"""What is seen of a run: the pure view, and the three ways it is drawn."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from rich.cells import cell_len
from rich.console import Console

from agentcanvas.cli.live import clean
from agentcanvas.cli.live.diff import coloured, counted, on_console
from agentcanvas.cli.live.ending import last_words
from agentcanvas.cli.live.jsonl import JsonScreen
from agentcanvas.cli.live.plain import PlainScreen
from agentcanvas.cli.live.planning import as_yaml, edited, plan_in, plan_table
from agentcanvas.cli.live.rich_view import picture
from agentcanvas.cli.live.said import lines_said
from agentcanvas.cli.live.view import RunView, after, heard, view_of
from agentcanvas.cli.live.words import commands_for, duration, files, quoted, spent, told
from agentcanvas.proposals.model import Decision, ProposalReview
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.protocol.records import (
    BlobRef,
    ChangeStatus,
    ErrorEvent,
    FailureClass,
    FileChangeEvent,
    RawEvent,
    ResultEvent,
    RetryEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultEvent,
    TranscriptEvent,
    Usage,
    UsageEvent,
)
from agentcanvas.runs import events as e
from agentcanvas.runs.office import TranscriptEntry
from agentcanvas.runs.state import RunStatus, TaskStatus, fold
from tests.cli import fake_office as fake

HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]bold[/red] \u202eevil\u202c \x9b31m\r\n tab\t" + "x" * 5000

# Any events, in any order -------------------------------------------------------------------------

TASKS = st.sampled_from(["a", "b", "c"])
AGENTS = st.sampled_from(["coder", "docs", "person:you", "ghost"])
TEXTS = st.one_of(st.text(max_size=30), st.just(HOSTILE))


def made(kind: type, payload: st.SearchStrategy[object]) -> st.SearchStrategy[e.RunEvent]:
    usage = st.none() | st.just(Usage(input_tokens=10, output_tokens=1, cost=0.5))
    return st.builds(
        kind, actor=AGENTS, provenance=st.just(fake.SYSTEM), payload=payload, usage=usage
    )


def bare(kind: type) -> st.SearchStrategy[e.RunEvent]:
    return st.builds(kind, actor=AGENTS, provenance=st.just(fake.SYSTEM))


TEAM = st.lists(st.builds(e.Member, AGENTS, TEXTS, st.just("worker")), max_size=3).map(tuple)
REVIEW = st.builds(
    ProposalReview, st.just("r"), TASKS, st.sampled_from(Decision), TEXTS, st.none() | st.just(1)
)
NAMES = st.lists(TEXTS, max_size=3).map(tuple)
DISPATCHED = made(e.TaskDispatched, st.builds(e.Dispatch, TASKS, AGENTS, TEXTS))
WORK = st.one_of(
    DISPATCHED,
    made(e.TurnStarted, st.builds(e.TurnBegun, TASKS, AGENTS, st.just("m"), TEXTS, task_id=TASKS)),
    made(e.TurnStarted, st.builds(e.TurnBegun, TASKS, AGENTS, st.just("m"), TEXTS)),
    made(e.TurnProgressed, st.builds(e.Progress, TASKS, TEXTS, task_id=TASKS)),
    made(e.TurnEnded, st.builds(e.TurnDone, TASKS, TEXTS, st.booleans(), TEXTS)),
    made(e.ProposalSubmitted, st.builds(e.Submission, TASKS, st.integers(0, 9), TEXTS)),
    made(e.ChecksRun, st.builds(e.Checked, TASKS, st.sampled_from(["passed", "?"]), TEXTS)),
    made(e.ProposalReviewed, REVIEW),
    made(e.ProposalLanded, st.builds(e.Landed, TASKS, NAMES)),
    made(e.ProposalUndone, st.builds(e.Undone, TASKS, NAMES)),
    made(e.TaskFailed, st.builds(e.Failure, TASKS, TEXTS)),
    made(e.AskedPerson, st.builds(e.PersonAsked, TASKS, TEXTS, TEXTS, st.just("review:a"))),
    made(e.AnsweredByPerson, st.builds(e.PersonAnswered, TASKS, TEXTS)),
    made(e.GenerationTaken, st.builds(e.Base, st.integers(0, 3), TEXTS, NAMES)),
    made(e.Noted, st.builds(e.Note, TEXTS)),
    made(e.WarningGiven, st.builds(e.Warned, TEXTS)),
    made(e.InteractionStarted, st.builds(e.ConfiguredInteraction, st.just("p"), TEXTS)),
    made(e.InteractionEnded, st.builds(e.End, TEXTS, st.booleans())),
)
EVENTS = st.one_of(
    WORK,
    made(e.RunStarted, st.builds(e.Start, TEXTS, TEXTS, TEAM)),
    made(e.RunParked, st.builds(e.Waiting, TEXTS, TEXTS)),
    made(e.RunEnded, st.builds(e.End, TEXTS, st.booleans())),
    bare(e.RunInterrupted),
    bare(e.RunResumed),
)


def recorded(events: list[e.RunEvent]) -> list[e.Recorded]:
    return [e.Recorded(n, 1000 * n, "run_1", event) for n, event in enumerate(events, start=1)]


def drawn(view: RunView, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, markup=False).print(picture(view, 60_000, width))
    return out.getvalue()


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.req("V1")
@given(st.lists(EVENTS, max_size=25))
def test_events_in_any_order_give_a_view_in_which_every_dispatched_task_counts_once(
    events: list[e.RunEvent],
) -> None:
    view = view_of(recorded(events))
    given_out = {event.payload.task_id for event in events if isinstance(event, e.TaskDispatched)}
    assert set(view.tasks) == given_out
    assert view.seq == len(events)
    assert view.worked_ms(10**9) >= 0
    assert view.tokens == 11 * sum(event.usage is not None for event in events)


@pytest.mark.req("V1")
@given(st.lists(DISPATCHED | WORK, min_size=8, max_size=25), st.booleans())
def test_where_the_order_is_legal_the_view_and_the_state_agree(
    events: list[e.RunEvent], done: bool
) -> None:
    log = recorded([fake.started(), *events, *fake.ending(done=done)])
    state = fold(log)
    view = view_of(log)
    assert (view.status, view.reason, view.landed) == (state.status, state.reason, state.landed)
    assert {key: (task.status, task.attempts) for key, task in view.tasks.items()} == {
        key: (task.status, task.attempts) for key, task in state.tasks.items()
    }


@given(st.lists(EVENTS, max_size=12), st.sampled_from([20, 40, 80, 120]))
def test_whatever_agents_write_no_drawing_holds_anything_a_terminal_obeys(
    events: list[e.RunEvent], width: int
) -> None:
    view = RunView()
    for entry in recorded(events):
        view = after(view, entry)
        sentence = told(entry.event, view)
        assert is_harmless(sentence)
        assert "\n" not in sentence
        assert len(sentence) < 800
    picture_of_it = drawn(view, width)
    assert is_harmless(picture_of_it)
    assert all(len(line) <= width for line in picture_of_it.splitlines())
    assert all(map(is_harmless, last_words(view, (), Path("/w"), 0)))


# The canned run -----------------------------------------------------------------------------------


def canned() -> list[e.Recorded]:
    run = fake.propose(fake.Played())
    run.asks.clear()
    return run.tell(
        fake.resumed(),
        fake.reviewed(Decision.APPLY),
        fake.landed(),
        fake.warned("Running as root"),
        *fake.ending(done=True),
    ).log


PLAIN = """\
   0:00  Run run_20260301_101500 (one-off): strip the blanks around each part
   0:01  task-1 → Coder: Strip the blanks around each part
   0:04  task-1 checks: tests: 2 failed → all 14 passed
   0:05  task-1 Coder proposes a change of 1 file: parse() strips each part
   0:06  Waiting for you: Apply the change of Coder for task-1?
   0:07  Parked until there is an answer
   0:08  Resumed
   0:09  task-1 approved by you
   0:10  task-1 applied: src/parser.py
   0:11  Warning: Running as root
"""


@pytest.mark.req("V1")
def test_a_canned_run_in_plain_lines_word_for_word() -> None:
    out = io.StringIO()
    screen = PlainScreen(out)
    view = RunView()
    for entry in canned():
        view = after(view, entry)
        screen.show(view, entry)
    assert out.getvalue() == PLAIN


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        (
            '{"summary": "First the\\nparser.", "tasks": [{"task_id": "a"}]}',
            "First the parser. (1 task)",
        ),
        ('{"summary": "", "tasks": []}', '{"summary": "", "tasks": []}'),
        ('{"tasks": 2}', '{"tasks": 2}'),
        ("Just words.", "Just words."),
    ],
)
def test_a_plan_is_told_by_its_summary(text: str, gist: str) -> None:
    view = view_of(fake.Played().tell(fake.started()).log)
    answer = fake.turn_done("", "coder")
    done = msgspec.structs.replace(answer.payload, text=text)
    assert told(msgspec.structs.replace(answer, payload=done), view) == f"Coder: {gist}"


@pytest.mark.req("R2")
def test_a_task_that_was_sent_back_says_why_and_that_it_is_tried_again() -> None:
    run = fake.propose(fake.Played()).tell(
        fake.resumed(), fake.reviewed(Decision.REVISE, "strip tabs too"), fake.dispatched()
    )
    view = view_of(run.log)
    assert told(run.log[-2].event, view) == "task-1 sent back by you: strip tabs too"
    assert told(run.log[-1].event, view) == "task-1 → Coder again (attempt 2)"
    assert "attempt 2" in drawn(view, 80)


@pytest.mark.req("V2")
def test_a_canned_run_as_json_is_its_log_line_for_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen = JsonScreen()
    for entry in canned():
        screen.show(RunView(), entry)
    screen.say("not for machines")
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [line["event"] for line in lines] == [e.kind_of(entry.event) for entry in canned()]
    assert said.out.splitlines()[9] == (
        '{"ts":1772360109000,"runId":"run_20260301_101500","seq":10,"event":"proposal_reviewed",'
        '"actor":"person:you","provenance":"system",'
        '"payload":{"runId":"run_20260301_101500","taskId":"task-1","decision":"apply"}}'
    )
    assert said.err == "not for machines\n"


def test_json_lines_escape_what_json_itself_would_let_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entry = e.Recorded(1, 0, "r", fake.warned(HOSTILE))
    JsonScreen().show(RunView(), entry)
    (line,) = capsys.readouterr().out.splitlines()
    assert is_harmless(line)
    assert json.loads(line)["payload"]["sentence"] == HOSTILE


def test_the_picture_says_who_is_at_what_and_what_they_say_last() -> None:
    view = view_of(fake.at_work(fake.Played()).log)
    for entry in fake.transcript_of():
        view = heard(view, entry)
    lines = drawn(view, 80).splitlines()
    assert lines[0].startswith("running  ")
    assert lines[0].endswith("strip the blanks around each part")
    assert lines[1].startswith("● task-1 Coder working")
    assert lines[-1].rstrip().endswith("│ parse() strips each part")


def test_a_narrow_picture_leaves_out_what_agents_say() -> None:
    view = view_of(fake.at_work(fake.Played()).log)
    for entry in fake.transcript_of():
        view = heard(view, entry)
    assert "parse()" not in drawn(view, 40)
    assert "task-1" in drawn(view, 40)


def test_the_picture_says_whom_the_run_waits_for_and_what_the_checks_say() -> None:
    text = drawn(view_of(fake.propose(fake.Played()).log), 80)
    assert "tests: 2 failed → all 14 passed" in text
    assert "12.3k tokens, $0.04" in text
    assert "Waiting for you: Apply the change of Coder for task-1?" in text


def test_a_task_that_was_open_when_its_run_ended_is_called_not_done() -> None:
    run = fake.at_work(fake.Played()).tell(*fake.ending(done=False, reason="budget: 1 turns"))
    assert "- task-1 Coder not done" in drawn(view_of(run.log), 80)


@pytest.mark.req("D25")
def test_waiting_for_a_person_does_not_count_as_work() -> None:
    run = fake.propose(fake.Played())
    parked_at = run.log[-1].ts
    view = view_of(run.log)
    assert view.worked_ms(parked_at + 3_600_000) == 7_000
    resumed = after(view, e.Recorded(99, parked_at + 3_600_000, fake.RUN, fake.resumed()))
    assert resumed.worked_ms(parked_at + 3_601_000) == 8_000


def test_an_agent_that_is_asked_again_shows_only_its_new_words() -> None:
    view = view_of(fake.at_work(fake.Played()).log)
    view = heard(view, fake.transcript_of()[0])
    assert view.agents["coder"].lines == ("I look at the parser.",)
    view = after(view, e.Recorded(9, 0, fake.RUN, fake.turn()))
    assert view.agents["coder"].lines == ()


def test_final_words_that_were_just_said_are_not_shown_twice() -> None:
    view = view_of(fake.at_work(fake.Played()).log)
    for event in (TextEvent(ts=0, seq=0, text="Done."), ResultEvent(ts=0, seq=1, text="Done.")):
        view = heard(view, TranscriptEntry(1, "coder", event))
    assert view.agents["coder"].lines == ("Done.",)


# Words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (ThinkingEvent(ts=0, seq=0, text="hm\nhm"), ["(hm)", "(hm)"]),
        (ToolCallEvent(ts=0, seq=0, name="read", input=Raw(b'{"path": "a.py"}')), ["→ read a.py"]),
        (ToolCallEvent(ts=0, seq=0, name="read"), ["→ read"]),
        (
            ToolCallEvent(ts=0, seq=0, name="x", input=Raw(b'{"a": 1, "b": 2}')),
            ['→ x {"a":1,"b":2}'],
        ),
        (ToolCallEvent(ts=0, seq=0, name="x", input=Raw(b"{")), ["→ x"]),
        (ToolResultEvent(ts=0, seq=0, output="no", failed=True), ["  no", "  failed"]),
        (
            ToolResultEvent(ts=0, seq=0, output=BlobRef.of(b"abc", "text/plain")),
            ["  3 bytes, kept apart"],
        ),
        (FileChangeEvent(ts=0, seq=0, path="a.py", status=ChangeStatus.ADDED), ["± a.py added"]),
        (RetryEvent(ts=0, seq=0, attempt=2, reason="busy"), ["… tries again (2): busy"]),
        (
            ErrorEvent(ts=0, seq=0, error_class=FailureClass.AUTH, message="no key"),
            ["! auth: no key"],
        ),
        (RawEvent(ts=0, seq=0, line="??"), ["??"]),
        (UsageEvent(ts=0, seq=0, usage=Usage()), []),
        (TextEvent(ts=0, seq=0, text="  "), []),
    ],
)
def test_every_kind_of_transcript_event_has_its_lines(
    event: TranscriptEvent, lines: list[str]
) -> None:
    assert lines_said(event) == lines


def test_long_output_of_a_tool_keeps_its_end() -> None:
    output = "\n".join(str(number) for number in range(1000))
    lines = lines_said(ToolResultEvent(ts=0, seq=0, output=output))
    assert lines[0] == "  … 981 lines more …"
    assert lines[-1] == "  999"
    assert len(lines) == 20


@given(TEXTS)
def test_cleaned_text_is_harmless_and_cleaning_it_again_changes_nothing(text: str) -> None:
    once = clean.clean(text)
    assert is_harmless(once.replace("\t", ""))
    assert clean.clean(once) == once
    assert all(map(is_harmless, clean.lines_of(text)))


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (duration(7_000), "0:07"),
        (duration(750_000), "12:30"),
        (duration(7_500_000), "2:05:00"),
        (duration(-1), "0:00"),
        (spent(0, 0), ""),
        (spent(999, 0), "999 tokens"),
        (spent(12_345, 0.001), "12.3k tokens, under $0.01"),
        (spent(8, 0.25, estimated=True), "about 8 tokens, about $0.25"),
        (files([]), "no file"),
        (files(list("abcdef")), "a, b, c, d and 2 more"),
        (quoted("run_1"), "run_1"),
        (quoted("it's; rm"), "'it'\\''s; rm'"),
        (quoted(""), "''"),
    ],
)
def test_small_words(said: str, wanted: str) -> None:
    assert said == wanted


@pytest.mark.req("D24")
@pytest.mark.parametrize(
    ("ask", "commands"),
    [
        (fake.review_ask, ["--apply", '--revise "…"', '--reject "…"']),
        (fake.plan_ask, ["--apply", '--reject "…"']),
        (fake.question_ask, ['--answer "…"']),
    ],
)
def test_every_kind_of_ask_has_the_commands_that_answer_it(
    ask: Callable[[], PersonAsk], commands: list[str]
) -> None:
    found = [command for _, command in commands_for(ask())]
    names = {fake.review_ask: "task-1", fake.plan_ask: "plan", fake.question_ask: "t9"}
    begin = f"agentcanvas review {fake.RUN} {names[ask]}"  # type: ignore[index]  # one of the three
    assert found == [f"{begin} {each}" for each in commands]


# Diffs --------------------------------------------------------------------------------------------


def test_a_diff_is_coloured_and_counted() -> None:
    text = coloured(fake.PATCH)
    styles = {text.plain[span.start]: str(span.style) for span in text.spans}
    assert styles["+"] == "green"
    assert counted(fake.PATCH) == "1 file, +1 −1"  # noqa: RUF001  # a minus, as it is printed


def test_a_diff_shows_carriage_returns_and_obeys_no_escape() -> None:
    patch = b"diff --git a/x b/x\n@@ -1 +1 @@\n-\x1b[2Jold\r\n+new [bold]\n"
    plain = coloured(patch).plain
    assert "-\\x1b[2Jold\\r\n+new [bold]\n" in plain
    assert is_harmless(plain)


def test_a_line_of_a_diff_that_goes_on_is_marked() -> None:
    """Broken by the terminal it would look like a line of its own, such as one that removes."""
    line = "+" + "x" * 39 + "-os.remove(all)" + "字" * 20
    told = coloured(f"diff --git a/x b/x\n@@ -1 +1 @@\n{line}\n".encode(), 40).plain
    shown = told.splitlines()[2:]
    assert shown[0] == "+" + "x" * 39
    assert [each[:2] for each in shown[1:]] == ["↪ "] * (len(shown) - 1)
    assert "".join([shown[0], *(each[2:] for each in shown[1:])]) == line
    assert max(map(cell_len, shown)) == 40
    console = Console(file=io.StringIO(), width=40, force_terminal=True)
    assert on_console(console, line.encode()).plain.count("↪") == len(shown) - 1
    assert on_console(Console(file=io.StringIO(), width=40), line.encode()).plain == f"{line}\n"


# Plans --------------------------------------------------------------------------------------------


def test_a_plan_that_was_not_changed_reads_back_as_it_was() -> None:
    made_again, problems = edited(as_yaml(fake.PLAN), ["coder", "docs"])
    assert problems == []
    assert plan_in(made_again) == plan_in(fake.PLAN)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tasks: [", "yaml-syntax"),
        ("- a", "key tasks"),
        ("tasks: [{task_id: a}]", "agent"),
        ("tasks: []", "no task"),
        ("tasks: [{task_id: a, agent: nobody, description: d}]", "nobody, who is not here"),
        ('{"tasks": [{"task_id": "a", "agent": "coder"}]}', "description"),
    ],
)
def test_what_is_wrong_with_an_edited_plan_is_said(text: str, problem: str) -> None:
    _, problems = edited(text, ["coder"])
    assert problem in "\n".join(problems)


def test_a_plan_is_a_table_that_fits_any_window() -> None:
    plan = plan_in(fake.PLAN)
    assert plan is not None
    for width in (40, 80, 120):
        out = io.StringIO()
        Console(file=out, width=width).print(plan_table(plan, str.title))
        assert all(len(line) <= width for line in out.getvalue().splitlines())
        assert width < 80 or "Say so in the manual" in out.getvalue()


def test_data_that_is_no_plan_can_still_be_edited() -> None:
    assert plan_in({"x": 1}) is None
    assert plan_in(UNSET) is None
    assert as_yaml(UNSET).endswith("tasks: []\n")


# Endings ------------------------------------------------------------------------------------------


def test_a_done_run_says_what_landed_how_to_commit_it_and_how_to_take_it_back() -> None:
    view = view_of(canned())
    assert last_words(view, (), Path("/somewhere/here"), 0) == [
        "Done: tests green. It took 0:11, 12.3k tokens, $0.04.",
        "1 file changed in /somewhere/here:",
        "  src/parser.py",
        "Commit:  git add src/parser.py && git commit",
        "Undo:    agentcanvas undo run_20260301_101500",
        "Report:  agentcanvas report run_20260301_101500",
    ]


def decided(
    status: str, red: tuple[str, ...], reason: str, by: str
) -> tuple[e.ChecksRun, e.ProposalReviewed]:
    checked = e.Checked("task-1", status, "…", red=red)
    review = ProposalReview(fake.RUN, "task-1", Decision.APPLY, reason or None)
    return (
        e.ChecksRun(actor="engine", provenance=fake.SYSTEM, payload=checked),
        e.ProposalReviewed(actor=by, provenance=fake.SYSTEM, payload=review),
    )


@pytest.mark.req("D13")
@pytest.mark.parametrize(
    ("status", "red", "reason", "by", "line"),
    [
        ("passed", (), "", "person:you", "Done: checks green."),
        ("unverified", (), "", "person:you", "Done: you applied it; nothing was checked."),
        ("unverified", (), "", "system", "Done: it landed by itself; nothing was checked."),
        (
            "red_before",
            ("pytest",),
            "pytest: red → red",
            "person:you",
            "Done: you applied it; pytest is red, as before.",
        ),
        (
            "failed",
            ("t",),
            "because (although checks fail: t: green → red)",
            "person:you",
            'Done. t is red, which you accepted: "because".',
        ),
        (
            "failed",
            ("t", "u"),
            "3 rounds are spent, approved by force: no",
            "docs",
            "Done: Writer let it land; t, u are red.",
        ),
        (
            "unsound",
            (),
            "",
            "person:you",
            "Done: you applied it; the checks may have run other code.",
        ),
    ],
)
def test_the_headline_of_a_done_run_says_no_more_than_its_checks(
    status: str, red: tuple[str, ...], reason: str, by: str, line: str
) -> None:
    run = fake.at_work(fake.Played()).tell(
        *decided(status, red, reason, by), fake.landed(), *fake.ending(done=True)
    )
    assert last_words(view_of(run.log), (), Path("/w"), 0)[0].startswith(f"{line} It took ")


def test_the_headline_goes_by_what_landed_last() -> None:
    run = fake.at_work(fake.Played()).tell(
        fake.dispatched("task-2"),
        fake.checked("task-2"),
        *decided("failed", ("t",), "because (although checks fail)", "person:you"),
        fake.landed(),
        fake.landed("task-2"),
        *fake.ending(done=True, reason="consensus"),
    )
    assert last_words(view_of(run.log), (), Path("/w"), 0)[0].startswith(
        "Done (consensus): tests green."
    )


def test_a_change_that_was_asked_about_again_is_offered_with_a_reason_and_the_why() -> None:
    ask = msgspec.structs.replace(fake.review_ask(), problem="To apply it, give a reason")
    said = last_words(view_of(fake.propose(fake.Played()).log), [ask], Path("/w"), 0)
    assert "Asked again: To apply it, give a reason" in said
    assert any(line.endswith('task-1 --apply --reason "…"') for line in said)


@pytest.mark.req("C4")
@pytest.mark.parametrize("worse", [(), ("t",)])
def test_a_change_whose_checks_a_reason_overrules_is_offered_with_one(
    worse: tuple[str, ...],
) -> None:
    """Also where they were red before, and fail more with it."""
    checked = e.Checked("task-1", "red_before", "t: red → red", red=("t",), worse=worse)
    told_so = e.ChecksRun(actor="engine", provenance=fake.SYSTEM, payload=checked)
    run = fake.propose(fake.Played()).tell(told_so)
    said = last_words(view_of(run.log), [fake.review_ask()], Path("/w"), 0)
    (offered,) = [line for line in said if "--apply" in line]
    assert offered.endswith('--apply --reason "…"') == bool(worse)


@pytest.mark.req("D7")
def test_a_change_that_conflicts_is_not_offered_to_be_applied() -> None:
    standing = e.Standing("task-1", "task-1.r0", "conflicts", "n.txt: …", ("n.txt",))
    told_so = e.ProposalRechecked(actor="engine", provenance=fake.SYSTEM, payload=standing)
    run = fake.propose(fake.Played()).tell(told_so)
    said = last_words(view_of(run.log), [fake.review_ask()], Path("/w"), 0)
    assert not any("--apply" in line for line in said)
    assert any("--revise" in line for line in said)


def test_a_run_that_only_talked_ends_with_what_it_came_to() -> None:
    ended = e.End("judge_decision", done=True, result="Use the second design.")
    event = e.RunEnded(actor="engine", provenance=fake.SYSTEM, payload=ended)
    run = fake.Played().tell(fake.started(), event)
    assert "Use the second design." in last_words(view_of(run.log), (), Path("/w"), 0)


def test_a_run_that_was_cut_off_says_how_to_go_on() -> None:
    cut = e.RunInterrupted(actor="engine", provenance=fake.SYSTEM)
    view = view_of(fake.at_work(fake.Played()).tell(cut).log)
    assert view.status is RunStatus.INTERRUPTED
    assert last_words(view, (), Path("/w"), 0)[-1] == f"Resume:  agentcanvas resume {fake.RUN}"


def test_file_names_that_a_shell_would_obey_are_quoted_in_the_commit_command() -> None:
    run = fake.at_work(fake.Played()).tell(
        fake.landed("task-1", "a b.py", "$(rm).py"), *fake.ending(done=True)
    )
    assert "Commit:  git add 'a b.py' '$(rm).py' && git commit" in last_words(
        view_of(run.log), (), Path("/w"), 0
    )
    assert view_of(run.log).tasks["task-1"].status is TaskStatus.APPLIED


@pytest.mark.parametrize(
    ("label", "words"),
    [("a (3r)", "a, at most 3 rounds"), ("b (1r)", "b, at most 1 round"), ("x", "x")],
)
def test_the_label_of_an_edge_is_told_in_words(label: str, words: str) -> None:
    begun = e.InteractionStarted(
        actor="engine",
        provenance=fake.SYSTEM,
        interaction_id="work",
        payload=e.ConfiguredInteraction("x", label),
    )
    assert told(begun, view_of([])) == f"work begins: {words}"
