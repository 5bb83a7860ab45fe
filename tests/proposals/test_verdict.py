from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.proposals.model import Decision
from agentcanvas.proposals.verdict import ReviewerKind, Verdict, read_verdict
from agentcanvas.protocol.reviews import Severity

pytestmark = pytest.mark.req("D17", "R1")

EXAMPLES = Path(__file__).parent.parent / "protocol" / "examples"


def read(answer: str) -> tuple[Decision, str] | None:
    verdict = read_verdict(answer, by="reviewer")
    return None if verdict is None else (verdict.decision, verdict.reason)


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("APPLY", (Decision.APPLY, "")),
        ("Looks good.\n\nAPPLY\n", (Decision.APPLY, "")),
        ("  **APPLY**  ", (Decision.APPLY, "")),
        ("`APPLY`", (Decision.APPLY, "")),
        ("REJECT: wrong module", (Decision.REJECT, "wrong module")),
        ("**REJECT:** wrong module", (Decision.REJECT, "wrong module")),
        ("REVISE: two things\n- one\n- two", (Decision.REVISE, "two things\n- one\n- two")),
        ("REVISE:\n- one", (Decision.REVISE, "- one")),
        ("REVISE: first thought\nNo, it is fine.\nAPPLY", (Decision.APPLY, "")),
        ("APPLY\nOn second thought:\nREJECT: it leaks", (Decision.REJECT, "it leaks")),
        ('{"decision": "apply", "reason": "tests pass"}', (Decision.APPLY, "tests pass")),
        ('Well.\n```json\n{"decision": "revise", "reason": "x"}\n```\n', (Decision.REVISE, "x")),
        ('Well.\n{"decision": "reject", "reason": "x"}\nThat is all.', (Decision.REJECT, "x")),
        ('```\n{"verdict": "approved"}\n```\nREJECT: no', (Decision.APPLY, "")),
        ('APPLY\n```json\n{"decision": "reject", "reason": "r"}\n```', (Decision.REJECT, "r")),
    ],
)
def test_a_verdict_is_read_from_the_form_or_the_last_line(
    answer: str, meant: tuple[Decision, str]
) -> None:
    assert read(answer) == meant


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Looks good to me!",
        "apply",
        "I would APPLY this.",
        "APPLY: once the tests pass",
        "APPLY if the tests pass",
        "APPLYING",
        "REJECT",
        "REJECT:",
        "REVISE:  \n  ",
        "APPLY\nREJECT",
        "APPLY\nREVISE the docs later",
        '{"decision": "maybe"}',
        '{"decision": "apply"',
        '{"verdict": "APPLY"}',
        'APPLY\n```json\n{"decision": "reject",}\n```',
        '{"decision": "apply", "findings": [{"severity": "awful"}]}',
        '{"verdict": "approved", "verification": {"tests": 1}}',
    ],
)
def test_what_is_not_clearly_a_verdict_is_none(answer: str) -> None:
    assert read(answer) is None


@pytest.mark.req("R3")
def test_a_review_result_is_understood_with_its_findings() -> None:
    message = json.loads((EXAMPLES / "s22_review_result.json").read_bytes())
    verdict = read_verdict(json.dumps(message["payload"]), by="reviewer-main")
    assert verdict is not None
    assert verdict.decision is Decision.REVISE
    assert verdict.reason == "Good implementation, one bug needs fixing\n- Fix null check issue"
    assert [finding.severity for finding in verdict.findings] == [Severity.MAJOR]
    assert verdict.verified


@pytest.mark.parametrize(
    ("verification", "verified"),
    [
        ({"tests": {"passed": True}, "type_check": {"passed": True}}, True),
        ({"tests": {"passed": False}}, False),
        ({"tests": {"passed": True}, "custom": {"e2e": {"passed": False}}}, False),
        ({"tests": {"passed": True}, "custom": {}}, True),
        ({"lint": None}, True),
    ],
)
def test_the_reviewers_own_verification_is_read(
    verification: dict[str, object], verified: bool
) -> None:
    verdict = read_verdict(
        json.dumps({"verdict": "approved", "verification": verification}), by="r"
    )
    assert verdict is not None
    assert verdict.verified is verified


@given(st.text())
def test_any_answer_is_a_verdict_or_none(answer: str) -> None:
    verdict = read_verdict(answer, by="r")
    assert verdict is None or isinstance(verdict, Verdict)


LINES = st.lists(
    st.sampled_from(
        [
            "APPLY",
            "**APPLY**",
            "APPLY it",
            "apply",
            "REJECT",
            "REJECT: no",
            "REVISE: x",
            "fine",
            "{",
        ]
    ),
    max_size=5,
)


@given(LINES)
def test_only_the_last_word_counts_and_only_if_it_is_a_verdict(lines: list[str]) -> None:
    words = [line for line in lines if line.strip("*").startswith(("APPLY", "REJECT", "REVISE"))]
    read = read_verdict("\n".join(lines), by="r")
    last = words[-1].strip("*") if words else ""
    assert (read is not None) == (last in {"APPLY", "REJECT: no", "REVISE: x"})
    assert read is None or read.decision.upper() == last.partition(":")[0]


@given(st.sampled_from(Decision), st.text(max_size=50))
def test_a_form_comes_back_as_it_was_written(decision: Decision, reason: str) -> None:
    form = json.dumps({"decision": decision, "reason": reason})
    verdict = read_verdict(f"```json\n{form}\n```", by="r", kind=ReviewerKind.PERSON)
    assert verdict is not None
    assert (verdict.decision, verdict.reason) == (decision, reason.strip())
    assert verdict.kind is ReviewerKind.PERSON
