"""What happened in a run, as one page that needs nothing else: no script, no server, no network.

Text of agents stays text: it is escaped where it is put into the page, marks that would change how
the rest is read are written out, and what is endless is cut, with a word about it. The whole text
is in the JSON report.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from agentcanvas.proposals.model import Decision
from agentcanvas.runs import events as e
from agentcanvas.runs.report_json import report_of
from agentcanvas.runs.report_parts import (
    EvidencePart,
    Landing,
    Line,
    ProposalPart,
    Report,
    Spent,
    TaskPart,
    VerdictPart,
)
from agentcanvas.runs.report_style import STYLE
from agentcanvas.runs.state import RunStatus, TaskStatus

_LONGEST: Final = 4_000
_LONGEST_LINE: Final = 300
_MOST_FILES: Final = 500
_MOST_LINES: Final = 5_000
# Joiners that scripts and emoji are written with; they change nothing around them.
_HARMLESS: Final = frozenset("\n\t\u00ad\u200c\u200d")
_OBEYED: Final = frozenset({"Cc", "Cf", "Cs"})
_QUIET: Final = frozenset({"announce", "apply_started", "turn_progress"})
"""What the timeline leaves out: said elsewhere on the page, or too often."""

_GOOD, _BAD, _OPEN = "good", "bad", "open"
_TASK: Final = {
    TaskStatus.DISPATCHED: ("in work", _OPEN),
    TaskStatus.IN_REVIEW: ("in review", _OPEN),
    TaskStatus.REVISING: ("changes requested", _OPEN),
    TaskStatus.APPLIED: ("applied", _GOOD),
    TaskStatus.REJECTED: ("rejected", _BAD),
    TaskStatus.FAILED: ("failed", _BAD),
    TaskStatus.ANSWERED: ("answered", _GOOD),
    TaskStatus.UNDONE: ("undone", _OPEN),
}
_WITH_REASON: Final = frozenset({TaskStatus.REJECTED, TaskStatus.REVISING, TaskStatus.FAILED})
_RUN: Final = {RunStatus.DONE: _GOOD, RunStatus.STOPPED: _BAD}
_DECISION: Final = {Decision.APPLY: _GOOD, Decision.REJECT: _BAD, Decision.REVISE: _OPEN}
_EVIDENCE: Final = {"passed": _GOOD, "failed": _BAD}


def html_report(recorded: Sequence[e.Recorded]) -> str:
    """The page."""
    report = report_of(recorded)
    title = f"Run report: {report.run.flow} / {report.run.id}"
    head = _join(
        _Html('<meta charset="utf-8">'),
        # Nothing can be loaded or run, whatever a text may contain.
        _Html(
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        ),
        _Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        _Html('<meta name="color-scheme" content="light dark">'),
        _el("title", _one_line(title)),
        _Html(f"<style>{STYLE}</style>"),
    )
    body = _el("main", _header(report), *(section(report) for section in _SECTIONS))
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


# Making a page ----------------------------------------------------------------------------------


class _Html(str):
    """Text that is HTML already; any other is escaped on its way into an element."""

    __slots__ = ()


def _el(name: str, *children: str, of: str = "") -> _Html:
    kind = f' class="{of}"' if of else ""
    return _Html(f"<{name}{kind}>{_join(*children)}</{name}>")


def _join(*children: str) -> _Html:
    return _Html("".join(c if isinstance(c, _Html) else _escaped(c) for c in children))


def _escaped(text: str) -> _Html:
    left = len(text) - _LONGEST
    text = _visible(text[:_LONGEST])
    more = f" … {left:,} more characters are in the JSON report" if left > 0 else ""
    return _Html(html.escape(text + more))


def _visible(text: str) -> str:
    """Control and direction marks, written out."""
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii")
        if unicodedata.category(c) in _OBEYED and c not in _HARMLESS
        else c
        for c in text.replace("\r\n", "\n")
    )


def _said(text: str) -> _Html:
    """Words of an agent or a person, in their own direction whatever stands around them."""
    return _el("bdi", text)


def _one_line(text: str) -> str:
    short = " ".join(text[: 4 * _LONGEST_LINE].split())
    cut = len(short) > _LONGEST_LINE or len(text) > 4 * _LONGEST_LINE
    return f"{short[:_LONGEST_LINE]}…" if cut else short


def _pill(text: str, grade: str) -> _Html:
    return _el("span", text, of=f"pill {grade}")


def _section(title: str, *children: str) -> _Html:
    return _el("section", _el("h2", title), *children)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], of: str = "") -> _Html:
    head = _el("tr", *(_el("th", heading) for heading in headings))
    body = [_el("tr", *(_el("td", cell) for cell in row)) for row in rows]
    return _el("table", _el("thead", head), _el("tbody", *body), of=of)


def _facts(facts: Iterable[tuple[str, str]]) -> _Html:
    pairs = (_el("div", _el("dt", name), _el("dd", value)) for name, value in facts if value)
    return _el("dl", *pairs)


def _file_list(files: Sequence[str]) -> _Html:
    named = [_el("li", _el("code", _said(file))) for file in files[:_MOST_FILES]]
    if len(files) > _MOST_FILES:
        named.append(_el("li", f"and {len(files) - _MOST_FILES:,} more"))
    return _el("ul", *named, of="files")


def _day(at: str | None) -> str:
    return f"{at[:10]} {at[11:19]} UTC" if at else ""


def _clock(at: str) -> _Html:
    return _el("time", at[11:19])


def _duration(ms: int) -> str:
    minutes, seconds = divmod(ms // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{seconds} s"]
    return " ".join(part for part in parts if part)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# What is on it ----------------------------------------------------------------------------------


def _header(report: Report) -> _Html:
    run = report.run
    applied = sum(task.status is TaskStatus.APPLIED for task in report.tasks)
    total = report.usage.total
    tokens = total.input_tokens + total.output_tokens
    team = ", ".join(member.name or member.id for member in run.team)
    facts = (
        ("Started", _day(run.started_at)),
        ("Took", _duration(run.duration_ms) if run.ended_at else "still open"),
        ("Tasks", f"{applied} of {len(report.tasks)} applied"),
        ("Turns", f"{total.turns:,}"),
        ("Tokens", f"{tokens:,}" if tokens else ""),
        ("Cost", f"${total.cost:,.2f}" if total.cost else ""),
        ("Team", _said(_one_line(team)) if team else ""),
    )
    why = run.reason or (f"waits for {run.waits_for}" if run.waits_for else "")
    state = _el("p", _pill(run.status, _RUN.get(run.status, _OPEN)), " ", _said(why), of="state")
    result = report.end.result if report.end else ""
    return _el(
        "header",
        _el("p", "Run report", of="over"),
        _el("h1", _said(_one_line(f"{run.flow} / {run.id}"))),
        _el("p", _said(run.request), of="request"),
        state,
        _el("p", _said(result), of="text") if result else "",
        _facts(facts),
    )


def _final_changes(report: Report) -> _Html:
    run = report.run
    if not run.files:
        return _section("Final changes", _el("p", "Nothing reached the workspace.", of="quiet"))
    at = f"HEAD {run.head[:7]} + uncommitted" if run.head else "none, the workspace has no commits"
    words = f"{_count(len(run.files), 'file')} modified; applied at commit: {run.commit or at}"
    return _section("Final changes", _el("p", words), _file_list(run.files))


def _tasks(report: Report) -> _Html:
    if not report.tasks:
        return _section("Proposals", _el("p", "None.", of="quiet"))
    return _section("Proposals", *map(_task, report.tasks))


def _task(task: TaskPart) -> _Html:
    words, grade = _TASK[task.status]
    title = _el("h3", _said(task.worker_name), " — ", _said(_one_line(task.instruction)))
    parts = [_el("div", title, _pill(words, grade), of="title")]
    if _one_line(task.instruction) != task.instruction:
        parts.append(_el("p", _said(task.instruction), of="text"))
    parts.append(_file_list(task.files) if task.files else _el("p", "Changed nothing.", of="quiet"))
    if task.reason and task.status in _WITH_REASON:
        parts.append(_el("p", "Reason: ", _said(task.reason), of="text"))
    several = len(task.proposals) > 1
    for number, proposal in enumerate(task.proposals, 1):
        parts.append(_proposal(proposal, f"Version {number}" if several else "Change"))
    return _el("article", *parts)


def _proposal(proposal: ProposalPart, name: str) -> _Html:
    rows = [_change(proposal, name), *map(_evidence, proposal.evidence)]
    rows += map(_verdict, proposal.verdicts)
    for landing, word in ((proposal.landed, "Landed"), (proposal.undone, "Undone")):
        if landing is not None:
            rows.append(_landing(landing, word))
    cells = [_el("tr", *(_el("td", cell) for cell in row)) for row in rows]
    return _el("table", _el("tbody", *cells), of="steps")


Row = tuple[str, str, str]


def _change(proposal: ProposalPart, name: str) -> Row:
    tests = proposal.tests
    counted = f", tests {tests.passed}/{tests.total}" if tests else ""
    amount = f"{_count(proposal.changed_files, 'file')}{counted}. "
    return _clock(proposal.at), name, _join(amount, _said(proposal.summary))


def _evidence(found: EvidencePart) -> Row:
    pill = _pill(found.status.replace("_", " "), _EVIDENCE.get(found.status, _OPEN))
    return _clock(found.at), "Evidence", _join(pill, " ", _said(found.sentence))


def _verdict(verdict: VerdictPart) -> Row:
    pill = _pill(verdict.decision, _DECISION[verdict.decision])
    words = _join(pill, " by ", _said(verdict.by_name))
    return (
        _clock(verdict.at),
        "Verdict",
        _join(words, ": ", _said(verdict.reason)) if verdict.reason else words,
    )


def _landing(landing: Landing, word: str) -> Row:
    commit = f", commit {landing.commit[:12]}" if landing.commit else ""
    return _clock(landing.at), word, f"{_count(len(landing.files), 'file')}{commit}"


def _interactions(report: Report) -> _Html:
    if not report.interactions:
        return _Html()
    rows = [
        (
            _said(each.id),
            _said(each.label),
            _said("; ".join(f"{role}: {', '.join(who)}" for role, who in each.roles.items())),
            _said(each.reason) if each.ended else "not ended",
        )
        for each in report.interactions
    ]
    return _section("Interactions", _table(("Interaction", "Pattern", "Roles", "Ended by"), rows))


def _questions(report: Report) -> _Html:
    if not report.questions:
        return _Html()
    rows = [
        (
            _clock(each.at),
            _said(each.person),
            _said(each.question),
            "open" if each.answer is None else _said(each.answer),
        )
        for each in report.questions
    ]
    return _section("Questions", _table(("Time", "Asked", "Question", "Answer"), rows, "timed"))


def _usage(report: Report) -> _Html:
    if not report.usage.agents:
        return _Html()
    headings = ("Agent", "Turns", "Tokens in", "Tokens out", "Cost", "Models")
    rows = [_spent(spent) for spent in (*report.usage.agents, report.usage.total)]
    return _section("Usage", _table(headings, rows, of="figures"))


def _spent(spent: Spent) -> Sequence[str]:
    figures = (spent.turns, spent.input_tokens, spent.output_tokens)
    about = "about " if spent.cost_is_estimate else ""
    cost = f"{about}${spent.cost:,.2f}" if spent.cost else "unknown"
    models = _said(", ".join(spent.models))
    return (_said(spent.name), *(f"{figure:,}" for figure in figures), cost, models)


def _remarks(report: Report) -> _Html:
    sections = []
    for title, remarks in (("Warnings", report.warnings), ("Notes", report.notes)):
        if remarks:
            rows = [(_clock(each.at), _said(each.text)) for each in remarks]
            sections.append(_section(title, _table(("Time", "What"), rows, "timed")))
    return _join(*sections)


def _timeline(report: Report) -> _Html:
    lines = [line for line in report.timeline if line.event not in _QUIET]
    left = len(lines) - _MOST_LINES
    rows = [_line(line) for line in lines[-_MOST_LINES:]]
    told = _table(("Time", "Event", "Agent", "Content"), rows, of="timeline")
    if left <= 0:
        return _section("Timeline", told)
    words = f"{left:,} earlier events are in the JSON report."
    return _section("Timeline", _el("p", words, of="quiet"), told)


def _line(line: Line) -> Sequence[str]:
    event = _el("code", line.event)
    return _clock(line.at), event, _said(_one_line(line.name)), _said(_one_line(line.text))


_SECTIONS: Final[tuple[Callable[[Report], _Html], ...]] = (
    _final_changes,
    _tasks,
    _interactions,
    _questions,
    _remarks,
    _usage,
    _timeline,
)
