from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.proposals.checks import (
    Check,
    CheckResult,
    Compared,
    Evidence,
    EvidenceStatus,
)
from agentcanvas.proposals.model import Decision, ProposalReview, TestsRun
from agentcanvas.proposals.policy import Breach, BreachKind
from agentcanvas.proposals.review import (
    Escalation,
    GateOptions,
    Outcome,
    ReviewCase,
    Ruling,
    automatic_verdict,
    judge,
)
from agentcanvas.proposals.steering import Steering
from agentcanvas.proposals.verdict import Finding, ReviewerKind, Verdict
from agentcanvas.protocol.reviews import Severity

pytestmark = pytest.mark.req("R1", "R3", "C4", "D13", "D17")

GREEN, RED = CheckResult(passed=True, exit_code=0), CheckResult(passed=False, exit_code=1)
UNSAFE = (Breach(BreachKind.INTERNAL_FOLDER, ".git/config", "leads into .git"),)
MAJOR = (Finding(Severity.MAJOR, "off by one"),)
AGENT, PERSON, AUTOMATIC = ReviewerKind.AGENT, ReviewerKind.PERSON, ReviewerKind.AUTOMATIC


def evidence(*pairs: tuple[CheckResult | None, CheckResult]) -> Evidence:
    return Evidence(
        "g0", tuple(Compared(Check(f"check {n}", "x"), *pair) for n, pair in enumerate(pairs))
    )


PASSED = evidence((GREEN, GREEN), (RED, GREEN))
FAILED = evidence((GREEN, GREEN), (GREEN, RED))
NEW_FAILED = evidence((None, RED))
RED_BEFORE = evidence((GREEN, GREEN), (RED, RED))
UNVERIFIED = evidence()
UNSOUND = evidence((GREEN, msgspec.structs.replace(GREEN, unsound="a link leads back")))


def says(
    decision: Decision,
    *,
    by: str = "reviewer",
    kind: ReviewerKind = AGENT,
    reason: str = "",
    findings: tuple[Finding, ...] = (),
    verified: bool = True,
) -> Verdict:
    return Verdict(decision, by, kind, reason, findings, verified)


def rule(
    verdict: Verdict | None = None,
    *,
    seen: Evidence = PASSED,
    breaches: tuple[Breach, ...] = (),
    asked: int = 1,
    iteration: int = 1,
    testing_required: bool = False,
    options: GateOptions | None = None,
) -> Ruling:
    return judge(
        ReviewCase(
            author="coder",
            breaches=breaches,
            evidence=seen,
            verdict=verdict,
            asked=asked,
            iteration=iteration,
            testing_required=testing_required,
            options=options or GateOptions(),
        )
    )


def test_the_evidence_says_the_worst_of_its_checks() -> None:
    assert [
        seen.status for seen in (PASSED, FAILED, NEW_FAILED, RED_BEFORE, UNVERIFIED, UNSOUND)
    ] == [
        EvidenceStatus.PASSED,
        EvidenceStatus.FAILED,
        EvidenceStatus.FAILED,
        EvidenceStatus.RED_BEFORE,
        EvidenceStatus.UNVERIFIED,
        EvidenceStatus.UNSOUND,
    ]


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [(0, Outcome.ASK_REVIEWER), (1, Outcome.ASK_AGAIN), (2, Outcome.ASK_PERSON)],
)
def test_an_answer_without_a_verdict_is_asked_for_once_more_then_a_person(
    asked: int, outcome: Outcome
) -> None:
    assert rule(None, asked=asked).outcome is outcome
    assert rule(says(Decision.APPLY, by=" "), asked=asked).outcome is outcome


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (PASSED, Outcome.APPLY),
        (UNVERIFIED, Outcome.APPLY),
        (FAILED, Outcome.REVISE),
        (NEW_FAILED, Outcome.REVISE),
        (RED_BEFORE, Outcome.ASK_PERSON),
        (UNSOUND, Outcome.ASK_PERSON),
    ],
)
def test_the_checks_lower_what_an_agent_approves(seen: Evidence, outcome: Outcome) -> None:
    assert rule(says(Decision.APPLY), seen=seen).outcome is outcome


def test_a_task_that_requires_tests_is_not_approved_by_an_agent_without_any() -> None:
    ruling = rule(says(Decision.APPLY), seen=UNVERIFIED, testing_required=True)
    assert ruling.outcome is Outcome.ASK_PERSON


@pytest.mark.req("R5")
@pytest.mark.parametrize(
    ("finding", "outcome"),
    [
        (Finding(Severity.CRITICAL, "leak"), Outcome.REVISE),
        (Finding(Severity.MAJOR, "bug"), Outcome.REVISE),
        (Finding(Severity.MAJOR, "bug", fixed_in_iteration=2), Outcome.APPLY),
        (Finding(Severity.MINOR, "style"), Outcome.APPLY),
        (Finding(Severity.SUGGESTION, "name"), Outcome.APPLY),
    ],
)
def test_open_critical_and_major_findings_lower_an_approval(
    finding: Finding, outcome: Outcome
) -> None:
    assert rule(says(Decision.APPLY, findings=(finding,))).outcome is outcome


def test_an_approval_whose_own_verification_failed_does_not_hold() -> None:
    assert rule(says(Decision.APPLY, verified=False)).outcome is Outcome.REVISE


def test_a_rejection_stands_with_its_reason() -> None:
    ruling = rule(says(Decision.REJECT, reason="wrong module"))
    assert (ruling.outcome, ruling.reason, ruling.by) == (
        Outcome.REJECT,
        "wrong module",
        "reviewer",
    )


@pytest.mark.parametrize(
    ("escalation", "outcome", "forced"),
    [
        (Escalation.ABORT, Outcome.REJECT, False),
        (Escalation.HUMAN_REVIEW, Outcome.ASK_PERSON, False),
        (Escalation.FORCE_APPROVE, Outcome.APPLY, True),
    ],
)
def test_after_the_last_round_the_flow_decides_how_it_ends(
    escalation: Escalation, outcome: Outcome, forced: bool
) -> None:
    options = GateOptions(escalation_on_max=escalation)
    for verdict in (says(Decision.REVISE, reason="more"), says(Decision.APPLY, findings=MAJOR)):
        for iteration in (1, 2):
            ruling = rule(verdict, iteration=iteration, options=options)
            assert ruling.outcome is Outcome.REVISE
        ruling = rule(verdict, iteration=3, options=options)
        assert (ruling.outcome, ruling.forced) == (outcome, forced)


def test_force_does_not_pass_path_safety() -> None:
    options = GateOptions(escalation_on_max=Escalation.FORCE_APPROVE)
    ruling = rule(says(Decision.APPLY), breaches=UNSAFE, iteration=3, options=options)
    assert ruling.outcome is Outcome.REJECT


@pytest.mark.parametrize("kind", ReviewerKind)
def test_an_unsafe_patch_goes_back_whoever_approves_it(kind: ReviewerKind) -> None:
    verdict = says(Decision.APPLY, kind=kind, reason="I insist")
    ruling = rule(verdict, breaches=UNSAFE, options=GateOptions(auto_approve=True))
    assert ruling.outcome is Outcome.REVISE
    assert ".git/config" in ruling.reason


@pytest.mark.parametrize("decision", Decision)
def test_the_author_has_no_say(decision: Decision) -> None:
    assert rule(says(decision, by="coder", reason="x")).outcome is Outcome.ASK_PERSON


def test_a_person_may_override_with_a_reason_which_is_recorded() -> None:
    for verdict, seen in (
        (says(Decision.APPLY, kind=PERSON, findings=MAJOR), PASSED),
        (says(Decision.APPLY, kind=PERSON), FAILED),
    ):
        assert rule(verdict, seen=seen).outcome is Outcome.ASK_PERSON
        reasoned = msgspec.structs.replace(verdict, reason="known, fixed tomorrow")
        ruling = rule(reasoned, seen=seen)
        assert (ruling.outcome, ruling.overridden) == (Outcome.APPLY, True)
        assert ruling.reason.startswith("known, fixed tomorrow")


def test_red_before_and_after_is_for_a_person_to_decide() -> None:
    ruling = rule(says(Decision.APPLY, kind=PERSON), seen=RED_BEFORE)
    assert (ruling.outcome, ruling.overridden) == (Outcome.APPLY, False)


@pytest.mark.req("D13")
@pytest.mark.parametrize(
    ("before", "after", "needs_reason"),
    [
        (TestsRun(8, 2), TestsRun(8, 2), False),
        (TestsRun(8, 2), TestsRun(9, 1), False),
        (TestsRun(8, 2), TestsRun(7, 3), True),
        (TestsRun(8, 2), TestsRun(0, 1), True),
        (TestsRun(8, 2), None, True),
        (None, TestsRun(8, 2), False),
    ],
    ids=["same", "fewer fail", "more fail", "tests are gone", "none came to run", "they run now"],
)
def test_what_was_red_and_fails_more_or_otherwise_needs_a_persons_reason(
    before: TestsRun | None, after: TestsRun | None, needs_reason: bool
) -> None:
    seen = evidence(
        (msgspec.structs.replace(RED, tests=before), msgspec.structs.replace(RED, tests=after))
    )
    assert seen.status is EvidenceStatus.RED_BEFORE
    ruling = rule(says(Decision.APPLY, kind=PERSON), seen=seen)
    assert (ruling.outcome is Outcome.ASK_PERSON) == needs_reason
    reasoned = rule(says(Decision.APPLY, kind=PERSON, reason="known"), seen=seen)
    assert (reasoned.outcome, reasoned.overridden) == (Outcome.APPLY, needs_reason)


@pytest.mark.req("D13")
def test_a_red_check_that_ends_with_another_code_needs_a_persons_reason() -> None:
    seen = evidence((RED, msgspec.structs.replace(RED, exit_code=2)))
    assert rule(says(Decision.APPLY, kind=PERSON), seen=seen).outcome is Outcome.ASK_PERSON


WORSE = [(PASSED, RED_BEFORE), (PASSED, UNSOUND), (PASSED, FAILED), (RED_BEFORE, FAILED)]


@pytest.mark.req("D13")
@pytest.mark.parametrize(("then", "now"), WORSE)
def test_a_person_who_saw_better_evidence_is_asked_again_whatever_reason_they_gave(
    then: Evidence, now: Evidence
) -> None:
    verdict = says(Decision.APPLY, kind=PERSON, reason="fine")
    case = ReviewCase("coder", (), now, verdict, then.status, asked=1)
    ruling = judge(case)
    assert ruling.outcome is Outcome.ASK_PERSON
    assert now.sentence in ruling.reason
    for known in (now, FAILED):  # the same, or no better than what they saw
        after = msgspec.structs.replace(case, seen=known.status)
        assert judge(after).outcome is Outcome.APPLY
    rejected = msgspec.structs.replace(verdict, decision=Decision.REJECT)
    assert judge(msgspec.structs.replace(case, verdict=rejected)).outcome is Outcome.REJECT


def test_a_person_may_ask_for_more_rounds_than_the_flow_has() -> None:
    verdict = says(Decision.REVISE, kind=PERSON, reason="once more")
    assert rule(verdict, iteration=9).outcome is Outcome.REVISE


SUSPICIOUS = Evidence(
    "g0",
    (
        Compared(
            Check("pytest", "pytest"),
            CheckResult(passed=True, exit_code=0, tests=TestsRun(5, 0)),
            CheckResult(passed=True, exit_code=0, tests=TestsRun(1, 0)),
        ),
    ),
)
STEERED = msgspec.structs.replace(
    PASSED, steering=(Steering("package.json", "sets how tests are run"),)
)


@pytest.mark.parametrize(
    ("seen", "allow", "outcome"),
    [
        (PASSED, False, Outcome.APPLY),
        (UNVERIFIED, False, Outcome.ASK_PERSON),
        (UNVERIFIED, True, Outcome.APPLY),
        (FAILED, True, Outcome.ASK_PERSON),
        (RED_BEFORE, True, Outcome.ASK_PERSON),
        (UNSOUND, True, Outcome.ASK_PERSON),
        (SUSPICIOUS, True, Outcome.ASK_PERSON),
        (STEERED, True, Outcome.ASK_PERSON),
    ],
)
def test_automatic_approval_needs_passed_checks_else_a_person(
    seen: Evidence, allow: bool, outcome: Outcome
) -> None:
    options = GateOptions(auto_approve=True, allow_unverified=allow)
    ruling = rule(automatic_verdict(options), seen=seen, options=options, asked=0)
    assert ruling.outcome is outcome
    assert automatic_verdict(GateOptions()) is None


def test_a_ruling_that_settles_becomes_the_review_of_the_document() -> None:
    ruling = rule(says(Decision.APPLY, reason="good"))
    assert ruling.review("run_1", "task-1", applied_at=5) == ProposalReview(
        "run_1", "task-1", Decision.APPLY, "good", 5
    )


NAMES = st.sampled_from(["coder", "reviewer", "system", "ann", ""])
RESULTS = st.builds(
    CheckResult,
    passed=st.booleans(),
    exit_code=st.none() | st.integers(0, 2),
    tests=st.none() | st.builds(TestsRun, st.integers(0, 3), st.integers(0, 3)),
    unsound=st.sampled_from(["", "why"]),
)
COMPARED = st.builds(Compared, st.just(Check("c", "x")), st.none() | RESULTS, RESULTS)
EVIDENCE = st.builds(
    Evidence,
    st.just("g0"),
    st.lists(COMPARED, max_size=3).map(tuple),
    st.sampled_from([(), (Steering("Makefile", "holds commands"),)]),
)
FINDINGS = st.builds(
    Finding, st.sampled_from(Severity), st.just("d"), st.just("f"), st.none() | st.just(1)
)
VERDICTS = st.builds(
    Verdict,
    st.sampled_from(Decision),
    NAMES,
    st.sampled_from(ReviewerKind),
    st.sampled_from(["", "because"]),
    st.lists(FINDINGS, max_size=2).map(tuple),
    st.booleans(),
)
OPTIONS = st.builds(
    GateOptions, st.booleans(), st.booleans(), st.integers(1, 4), st.sampled_from(Escalation)
)
CASES = st.builds(
    ReviewCase,
    st.sampled_from(["coder", "ann", "system"]),
    st.sampled_from([(), UNSAFE]),
    EVIDENCE,
    st.none() | VERDICTS,
    st.none() | st.sampled_from(EvidenceStatus),
    st.integers(0, 3),
    st.integers(1, 5),
    st.booleans(),
    OPTIONS,
)


@given(CASES)
def test_nothing_lands_without_a_verdict_past_safety_or_by_its_author(case: ReviewCase) -> None:
    ruling = judge(case)
    assert ruling.reason
    if ruling.outcome is not Outcome.APPLY:
        return
    assert case.breaches == ()
    assert case.verdict is not None
    assert case.verdict.by.strip()
    assert case.verdict.by != case.author
    assert ruling.by == case.verdict.by
    if ruling.forced:
        assert case.options.escalation_on_max is Escalation.FORCE_APPROVE
        assert case.iteration >= case.options.max_iterations
        assert case.verdict.kind is not PERSON
        return
    assert case.verdict.decision is Decision.APPLY, "code never raises"
    sound = case.evidence.status in {EvidenceStatus.PASSED, EvidenceStatus.UNVERIFIED}
    clean = not any(finding.blocks for finding in case.verdict.findings)
    if case.verdict.kind is PERSON:
        assert not case.is_worse_than_seen
        assert case.verdict.reason or (
            clean and case.verdict.verified and case.evidence.status is not EvidenceStatus.FAILED
        )
        return
    assert sound
    assert clean
    assert case.verdict.verified
    if case.verdict.kind is AUTOMATIC:
        assert case.options.auto_approve
        assert not case.evidence.fewer_tests
        assert not case.evidence.steering
        assert case.evidence.status is EvidenceStatus.PASSED or case.options.allow_unverified


@given(CASES)
def test_every_case_goes_on_and_comes_to_an_end(case: ReviewCase) -> None:
    """No agent's answer is asked for more than twice, and no more rounds than the flow has."""
    ruling = judge(case)
    if ruling.outcome in {Outcome.ASK_REVIEWER, Outcome.ASK_AGAIN}:
        assert case.asked < 2
    by_person = case.verdict is not None and case.verdict.kind is PERSON
    if ruling.outcome is Outcome.REVISE and not by_person:
        assert case.iteration < case.options.max_iterations
