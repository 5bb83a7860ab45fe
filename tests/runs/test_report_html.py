"""The reports for browsers and for other programs: complete, and whatever agents say stays text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest

from agentcanvas.proposals.model import (
    AnnounceMessage,
    Decision,
    FileChoice,
    ProposalReview,
    TestsRun,
    WorkStatus,
)
from agentcanvas.protocol.records import Usage
from agentcanvas.runs import events as e
from agentcanvas.runs.report import markdown
from agentcanvas.runs.report_html import html_report
from agentcanvas.runs.report_json import json_report, report_of
from tests.runs.test_report import example_run

pytestmark = pytest.mark.req("V6")

RUN = "run_20260301_090000"
START = 1_772_355_600_000
SYSTEM = e.Provenance.SYSTEM

HOSTILE = [
    "<script>alert(1)</script>",
    "</style></title><script>alert(1)</script>",
    '"><img src=https://example.invalid/x.png onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- --><iframe src=//example.invalid>",
    "&lt;b&gt; &#60;script&#62;",
    "\x1b[31mred\x00\x07\x9b",
    "abc\u202edcba\u2066x\u200f",
    "\ud800 lone",
]


def full_run(text: str = "Add a health endpoint") -> list[e.Recorded]:
    """Two tasks, one revised and landed, one rejected; with everything an agent can fill in."""
    team = (
        e.Member("planner", "Planner", "orchestrator"),
        e.Member("coder", "Coder", "worker"),
        e.Member("tester", text, "worker"),
    )
    used = Usage(input_tokens=1200, output_tokens=300, model="model-1", cost=0.25)
    cast: dict[str, tuple[str, ...]] = {"manager": ("planner",), "worker": ("coder", "tester")}
    told: list[tuple[str, type, object]] = [
        ("you", e.RunStarted, e.Start("team", text, team, head="abc1234def")),
        ("engine", e.InteractionStarted, e.ConfiguredInteraction("manager_worker", text, cast)),
        ("engine", e.GenerationTaken, e.Base(0, "the run begins", (text,))),
        ("engine", e.WarningGiven, e.Warned(text)),
        ("planner", e.TaskDispatched, e.Dispatch("api", "coder", text)),
        ("planner", e.TaskDispatched, e.Dispatch("docs", "tester", "Describe it")),
        ("engine", e.TurnStarted, e.TurnBegun("t1", "coder", "m1", "PROMPT", "worker", "api")),
        ("coder", e.TurnProgressed, e.Progress("t1", "Writing tests", ("a.py",), "api")),
        ("coder", e.TurnEnded, e.TurnDone("t1", "ANSWER", task_id="api", duration_ms=900)),
        ("coder", e.ProposalSubmitted, e.Submission("api", 2, text, TestsRun(3, 1))),
        ("engine", e.ChecksRun, e.Checked("api", "failed", "pytest: green → red", TestsRun(3, 1))),
        ("planner", e.ProposalReviewed, ProposalReview(RUN, "api", Decision.REVISE, text)),
        ("planner", e.TaskDispatched, e.Dispatch("api", "coder", "again")),
        ("coder", e.ProposalSubmitted, e.Submission("api", 2, "Now green", TestsRun(4, 0))),
        ("engine", e.ChecksRun, e.Checked("api", "passed", "pytest: green → green")),
        ("engine", e.AskedPerson, e.PersonAsked("a1", "you", text, "review:api", "api")),
        ("engine", e.RunParked, e.Waiting("you", text)),
        ("you", e.AnsweredByPerson, e.PersonAnswered("a1", "you", text)),
        ("engine", e.ProposalReviewed, ProposalReview(RUN, "api", Decision.APPLY, "good")),
        ("engine", e.ApplyStarted, e.Applying("api", "tx-1")),
        ("engine", e.ProposalLanded, e.Landed("api", ("src/a.py", text), "fedcba9876543210")),
        ("tester", e.ProposalSubmitted, e.Submission("docs", 1, "Words")),
        ("planner", e.ProposalReviewed, ProposalReview(RUN, "docs", Decision.REJECT, text)),
        ("engine", e.Noted, e.Note(text)),
        ("engine", e.LimitReached, e.Limit("t1", "coder", text, "api", "tester")),
        ("person:you", e.WorkerTold, e.Told("coder", text)),
        ("coder", e.MemberAsked, e.MemberQuestion("tester", text)),
        ("tester", e.MemberAnswered, e.MemberReply("coder", text)),
        ("coder", e.TeamPosted, e.PostedByMember(1, "api", text)),
        ("engine", e.MessagePassed, e.Telling("coder", text, 3)),
        ("engine", e.Drew, e.Draw("i1/draw:1", "a", ("a", text), text)),
        ("coder", e.TaskAnswered, e.Answered("words", text)),
        ("engine", e.InteractionEnded, e.End("quality_gate: tests_passed", done=True)),
        ("engine", e.TaskFailed, e.Failure("docs", text)),
        ("engine", e.Drew, e.Draw("build/draw:1", "coder", ("coder", "tester"), text)),
        ("tester", e.TaskAnswered, e.Answered("note", text)),
        ("engine", e.ProposalDiscarded, e.Discarded("p-7")),
        ("engine", e.Drew, e.Draw("i1", text, (text, "b"), "a tie")),
        ("coder", e.TaskAnswered, e.Answered("words", text)),
        ("engine", e.CleaningUp, e.Going(("run_1",), 5_000_000, (e.Folder(text, 9),))),
        ("engine", e.SetupDone, e.Setup(text, "setup.log", (text,))),
        ("engine", e.PartChosen, e.Part("docs", "p-8", "p-7", (FileChoice(text),))),
        ("engine", e.ProposalRechecked, e.Standing("docs", "p-8", "stale", text)),
        ("engine", e.RunEnded, e.End(text, done=True, result="All in place")),
    ]
    announced = AnnounceMessage(
        run_id=RUN,
        worker_id="coder",
        worker_name="Coder",
        status=WorkStatus.OK,
        summary=text,
        touched_files=("src/a.py",),
        duration_ms=1,
    )
    told.insert(10, ("coder", e.Announced, announced))
    told.insert(18, ("engine", e.RunResumed, None))
    recorded = []
    for number, (actor, kind, payload) in enumerate(told, 1):
        words = {} if payload is None else {"payload": payload}
        usage = used if kind is e.TurnEnded else None
        event = kind(actor=actor, provenance=SYSTEM, usage=usage, interaction_id="build", **words)
        recorded.append(e.Recorded(number, START + number * 61_000, RUN, event))
    return recorded


class Page(HTMLParser):
    """What a browser would see: elements, their attributes, and text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


# The page ---------------------------------------------------------------------------------------


def test_the_page_says_all_that_the_markdown_report_says() -> None:
    said = Page(html_report(example_run())).text
    report = markdown(example_run())
    cells = [cell.strip() for line in report.splitlines() for cell in line.split("|")]
    words = {word for cell in cells for word in re.findall(r"[\w./-]{3,}", cell)}
    unlike = {"Run", "Report", "Timeline", "Final", "Changes", "Status", "Changed", "Summary"}
    assert {w for w in words - unlike if w.lower().strip("-") not in said.lower()} == set()


def test_the_page_shows_evidence_verdicts_questions_usage_and_the_end() -> None:
    said = Page(html_report(full_run())).text
    for words in (
        "pytest: green → red",
        "Version 1",
        "Version 2",
        "revise by Planner : Add a health endpoint",
        "2 files modified; applied at commit: fedcba9876543210",
        "failed",
        "All in place",
        "quality_gate: tests_passed",
        "1,200",
        "$0.25",
        "model-1",
        "1 of 2 applied",
    ):
        assert words in said


def test_the_page_holds_no_prompts_and_no_answers_of_agents() -> None:
    page = html_report(full_run())
    assert "PROMPT" not in page
    assert "ANSWER" not in page
    assert b"PROMPT" not in json_report(full_run())


def test_the_page_needs_no_script_and_nothing_from_elsewhere() -> None:
    page = html_report(full_run())
    found = Page(page)
    assert not {"script", "link", "img", "iframe", "object", "base", "a"} & set(found.tags)
    assert {name for name, _ in found.attributes} <= {
        "lang", "class", "charset", "http-equiv", "content", "name",
    }  # fmt: skip
    assert "default-src 'none'" in page
    assert not re.search(r"url\(|@import|https?:", page)


def test_the_page_has_a_dark_a_light_and_a_printed_look() -> None:
    page = html_report(full_run())
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(text: str) -> None:
    harmless, hostile = Page(html_report(full_run())), Page(html_report(full_run(text)))
    assert hostile.tags == harmless.tags
    assert hostile.attributes == harmless.attributes
    assert hostile.open == []
    unfit = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800]"
    assert not re.search(unfit, html_report(full_run(text)))


def test_marks_that_turn_text_around_are_written_out() -> None:
    said = Page(html_report(full_run("abc\u202edcba \x1b[2J"))).text
    assert "abc\\u202edcba \\x1b[2J" in said


def test_letters_of_every_script_and_emoji_are_left_as_they_are() -> None:
    text = "안녕 世界 שלום 👩\u200d💻 é"
    assert text in Page(html_report(full_run(text))).text


def test_an_endless_text_is_cut_and_the_page_says_where_the_rest_is() -> None:
    page = html_report(full_run("x" * 3_000_000))
    assert len(page) < 150_000
    assert "2,996,000 more characters are in the JSON report" in page
    assert b"x" * 3_000_000 in json_report(full_run("x" * 3_000_000))


def test_a_very_long_run_keeps_its_latest_events_on_the_page() -> None:
    many = [
        e.Recorded(100 + n, START, RUN, e.Noted(actor="x", provenance=SYSTEM, payload=e.Note("n")))
        for n in range(6_000)
    ]
    said = Page(html_report([full_run()[0], *many])).text
    assert "1,001 earlier events are in the JSON report." in said


def test_a_run_that_has_just_begun_and_no_run_at_all_have_pages_too() -> None:
    assert "Nothing reached the workspace." in Page(html_report(full_run()[:1])).text
    assert Page(html_report([])).open == []


# JSON -------------------------------------------------------------------------------------------


def test_the_json_report_has_the_documented_shape() -> None:
    report = json.loads(json_report(full_run()))
    assert list(report) == [
        "version", "run", "interactions", "tasks", "questions", "usage", "warnings", "notes",
        "timeline", "end",
    ]  # fmt: skip
    assert report["end"] == {
        "reason": "Add a health endpoint",
        "done": True,
        "result": "All in place",
    }
    assert report["run"]["status"] == "done"
    assert report["run"]["startedAt"] == "2026-03-01T09:01:01.000Z"
    assert report["run"]["files"] == ["src/a.py", "Add a health endpoint"]


def test_each_version_of_a_change_has_its_own_evidence_and_verdicts() -> None:
    api, docs = report_of(full_run()).tasks
    first, second = api.proposals
    assert [each.status for each in first.evidence] == ["failed"]
    assert [(each.by, each.decision) for each in first.verdicts] == [("planner", "revise")]
    assert first.landed is None
    assert [each.status for each in second.evidence] == ["passed"]
    assert second.landed is not None
    assert second.landed.commit == "fedcba9876543210"
    assert (docs.status, docs.proposals[0].landed) == ("failed", None)


def test_usage_is_added_up_by_agent_and_in_all() -> None:
    usage = report_of(full_run()).usage
    assert [spent.id for spent in usage.agents] == ["coder"]
    assert (usage.total.turns, usage.total.input_tokens, usage.total.cost) == (1, 1200, 0.25)


def test_every_event_has_a_line_and_every_kind_is_understood() -> None:
    run = full_run()
    timeline = report_of(run).timeline
    assert [line.seq for line in timeline] == [entry.seq for entry in run]
    told = {line.event for line in timeline if line.text}
    assert told >= e.KINDS - {"run_resumed", "run_interrupted", "proposal_undone"}


def test_the_same_events_give_the_same_bytes() -> None:
    assert json_report(full_run()) == json_report(full_run())


def test_what_was_undone_is_told_with_its_files() -> None:
    undone = e.ProposalUndone(
        actor="you", provenance=SYSTEM, payload=e.Undone("api", ("src/a.py",))
    )
    run = [*full_run(), e.Recorded(99, START, RUN, undone)]
    last = report_of(run).tasks[0].proposals[-1]
    assert last.undone is not None
    assert last.undone.files == ("src/a.py",)
    assert "Undone" in Page(html_report(run)).text
    assert report_of(run).run.files == ()


def test_the_example_run_reads_back_as_what_it_was() -> None:
    report = msgspec.json.decode(json_report(example_run()))
    (task,) = report["tasks"]
    assert task["files"] == ["src/api.ts", "src/routes.ts", "tests/api.test.ts"]
    assert task["proposals"][0]["verdicts"][0]["decision"] == "apply"
    assert report["end"] is None


def test_a_run_that_was_stopped_and_goes_on_has_no_end_yet() -> None:
    stopped = e.RunEnded(actor="you", provenance=SYSTEM, payload=e.End("stopped", done=False))
    resumed = e.RunResumed(actor="you", provenance=SYSTEM)
    run = [
        full_run()[0],
        e.Recorded(2, START + 1, RUN, stopped),
        e.Recorded(3, START + 2, RUN, resumed),
    ]
    assert report_of(run[:2]).end is not None
    assert (report_of(run).end, report_of(run).run.ended_at) == (None, None)
