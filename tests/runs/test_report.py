"""The report and the logs, against the documents' own examples."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.runs import events as e
from agentcanvas.runs.logs import CollaborationLog, RunLog
from agentcanvas.runs.report import markdown
from agentcanvas.store import Store

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[1] / "protocol" / "examples"
RUN = "run_20260219_100000"


def example_lines() -> list[dict[str, object]]:
    return [json.loads(line) for line in (EXAMPLES / "av_collab.jsonl").read_text().splitlines()]


def recorded(line: dict[str, object], seq: int) -> e.Recorded:
    body = {name: value for name, value in line.items() if name not in {"ts", "runId"}}
    event = msgspec.json.decode(msgspec.json.encode(body), type=e.RunEvent)
    ts = line["ts"]
    assert isinstance(ts, int)
    return e.Recorded(seq, ts, RUN, event)


def started() -> e.RunStarted:
    team = (e.Member("custom:coder-1", "Coder", "worker"),)
    start = e.Start("team-alpha", "Refactor", team, head="abc1234def")
    return e.RunStarted(actor="user", provenance=e.Provenance.USER_INPUT, payload=start)


def example_run() -> list[e.Recorded]:
    first = e.Recorded(1, 1771495200000, RUN, started())
    return [first, *(recorded(line, n) for n, line in enumerate(example_lines(), start=2))]


@pytest.mark.req("V6")
def test_the_example_run_gives_the_example_report_word_for_word() -> None:
    assert markdown(example_run(), commit="abc1234") == (EXAMPLES / "av_report.md").read_text()


@pytest.mark.req("V6")
def test_without_a_commit_the_report_names_head_and_says_uncommitted() -> None:
    report = markdown(example_run())
    assert report.splitlines()[-1] == "- Applied at commit: HEAD abc1234 + uncommitted"


@pytest.mark.req("V6")
def test_a_repository_without_commits_is_not_said_to_be_none() -> None:
    first, *rest = example_run()
    begun = first.event
    assert isinstance(begun, e.RunStarted)
    bare = msgspec.structs.replace(begun, payload=msgspec.structs.replace(begun.payload, head=None))
    report = markdown([msgspec.structs.replace(first, event=bare), *rest])
    assert report.splitlines()[-1] == "- Applied at commit: none, the workspace has no commits"


@pytest.mark.req("V6")
def test_text_from_agents_cannot_break_the_table() -> None:
    payload = e.Dispatch("t", "custom:coder-1", "one | two\n| three |")
    event = e.TaskDispatched(actor="o", provenance=e.Provenance.SYSTEM, payload=payload)
    report = markdown([example_run()[0], e.Recorded(2, 0, RUN, event)])
    assert "| O → Coder | one \\| two \\| three \\| |" in report


@pytest.mark.req("V6")
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Mend it.\n```text\nTraceback\n```\nGo on.", "Mend it. … Go on."),
        ("````text\n```\n| a\n```\n````\nGo on.", "… Go on."),
        ("One.\n```\na\n```\nTwo.\n```\nb\n```", "One. … Two. …"),
        ("Never closed.\n```text\na\n````", "Never closed. ```text a ````"),
        ("Say ``` in the middle.", "Say ``` in the middle."),
    ],
)
def test_what_programs_printed_is_left_out_of_a_line(said: str, shown: str) -> None:
    payload = e.Dispatch("t", "custom:coder-1", said)
    event = e.TaskDispatched(actor="o", provenance=e.Provenance.SYSTEM, payload=payload)
    report = markdown([example_run()[0], e.Recorded(2, 0, RUN, event)])
    assert f"| O → Coder | {shown} |" in report


@pytest.mark.req("V6")
def test_of_thousands_of_files_the_report_names_the_first() -> None:
    many = [f"file{number}" for number in range(1_234)]
    lines = example_lines()
    for line in lines:
        payload = line["payload"]
        if isinstance(payload, dict) and "touchedFiles" in payload:
            payload["touchedFiles"] = many
    run = [recorded(line, n) for n, line in enumerate(lines, start=2)]
    report = markdown([example_run()[0], *run])
    assert f"- Changed: {', '.join(many[:50])} and 1,184 more\n" in report


@pytest.mark.req("V6")
def test_a_run_without_proposals_has_a_report_too() -> None:
    report = markdown(example_run()[:1])
    assert "## Proposals\n\nNone." in report
    assert "- 0 files modified" in report


@pytest.mark.req("V2", "V3")
async def test_the_collaboration_log_has_the_example_lines(tmp_path: Path) -> None:
    stream = f"team-alpha/{RUN}"
    clock = VirtualClock()
    async with await Store.open(
        tmp_path / "s.db", clock=clock, projections=[RunLog(), CollaborationLog()]
    ) as store:
        await store.append(stream, "run_started", e.to_json(started()))
        for entry in example_run()[1:]:
            await store.append(stream, e.kind_of(entry.event), e.to_json(entry.event))
        await store.flush_projections()
        rows = await store.events(stream=stream)
    folder = tmp_path / "runs" / "team-alpha"
    lines = (folder / f"{RUN}-collab.jsonl").read_text().splitlines()
    written = [json.loads(line) for line in lines]
    assert [{**line, "ts": 0} for line in written] == [{**x, "ts": 0} for x in example_lines()]
    assert list(written[0]) == ["ts", "runId", "event", "actor", "provenance", "payload"]
    assert len((folder / f"{RUN}.jsonl").read_text().splitlines()) == len(rows) == 6
    assert [e.from_row(row).event for row in rows] == [entry.event for entry in example_run()]
