"""A run of a small team, event by event, as the engine would record it."""

from __future__ import annotations

from agentcanvas.proposals.model import (
    AnnounceMessage,
    Decision,
    ProposalReview,
    TestsRun,
    WorkStatus,
)
from agentcanvas.protocol.records import Usage
from agentcanvas.runs import events as e
from agentcanvas.runs.events import Provenance

ENGINE = "engine"
LEAD, CODER, TESTER = "lead", "coder-1", "tester-1"
GREEN = TestsRun(passed=5, failed=0)
BUCKET = ("ledger/limits/bucket.py", "ledger/limits/__init__.py", "tests/limits/test_bucket.py")
LIMIT = "Add rate limiting to the public API"


def begin(request: str = LIMIT) -> e.RunEvent:
    team = (
        e.Member(LEAD, "Orchestrator", "orchestrator"),
        e.Member(CODER, "Coder", "worker"),
        e.Member(TESTER, "Tester", "worker"),
    )
    start = e.Start("feature-team", request, team)
    return e.RunStarted(actor=ENGINE, provenance=Provenance.USER_INPUT, payload=start)


def dispatch(task: str, instruction: str, *, worker: str = CODER) -> e.RunEvent:
    return e.TaskDispatched(
        actor=LEAD,
        provenance=Provenance.ORCHESTRATOR_TO_WORKER,
        payload=e.Dispatch(task, worker, instruction),
    )


def turn(task: str, text: str, *, to: str = CODER) -> e.RunEvent:
    begun = e.TurnBegun(
        turn_id=f"turn-{task}", to=to, message_id=f"m-{task}", text=text, task_id=task
    )
    return e.TurnStarted(actor=LEAD, provenance=Provenance.ORCHESTRATOR_TO_WORKER, payload=begun)


def progress(task: str, step: str) -> e.RunEvent:
    payload = e.Progress(f"turn-{task}", step=step, task_id=task)
    return e.TurnProgressed(actor=CODER, provenance=Provenance.SYSTEM, payload=payload)


def answer(task: str, text: str, *, by: str = CODER) -> e.RunEvent:
    done = e.TurnDone(turn_id=f"turn-{task}", text=text, task_id=task, duration_ms=164_000)
    usage = Usage(input_tokens=41_200, output_tokens=2_840, cost=0.37)
    return e.TurnEnded(actor=by, provenance=Provenance.WORKER_PROPOSAL, usage=usage, payload=done)


def proposal(task: str, summary: str, *, by: str = CODER) -> e.RunEvent:
    payload = e.Submission(task, 3, summary, GREEN)
    return e.ProposalSubmitted(actor=by, provenance=Provenance.WORKER_PROPOSAL, payload=payload)


def checks(task: str, status: str, sentence: str, tests: TestsRun = GREEN) -> e.RunEvent:
    payload = e.Checked(task, status, sentence, tests)
    return e.ChecksRun(actor=ENGINE, provenance=Provenance.SYSTEM, payload=payload)


def announce(summary: str, *, to_user: bool) -> e.RunEvent:
    return e.Announced(
        actor=LEAD if to_user else CODER,
        provenance=Provenance.ANNOUNCE_USER if to_user else Provenance.ANNOUNCE_INTERNAL,
        payload=AnnounceMessage(
            run_id="run_1",
            worker_id=CODER,
            worker_name="Coder",
            status=WorkStatus.OK,
            summary=summary,
            touched_files=BUCKET,
            tests_run=GREEN,
            duration_ms=164_000,
        ),
    )


def verdict(task: str, decision: Decision, reason: str) -> e.RunEvent:
    payload = ProposalReview("run_1", task, decision, reason)
    return e.ProposalReviewed(
        actor=LEAD, provenance=Provenance.ORCHESTRATOR_TO_WORKER, payload=payload
    )


def landed(task: str) -> e.RunEvent:
    return e.ProposalLanded(
        actor=ENGINE, provenance=Provenance.SYSTEM, payload=e.Landed(task, BUCKET)
    )


def ask(task: str, question: str) -> e.RunEvent:
    payload = e.PersonAsked(f"ask-{task}", "you", question, f"review:{task}", task)
    return e.AskedPerson(actor=ENGINE, provenance=Provenance.SYSTEM, payload=payload)


def said(task: str, words: str) -> e.RunEvent:
    payload = e.PersonAnswered(f"ask-{task}", "you", words)
    return e.AnsweredByPerson(actor="person:you", provenance=Provenance.USER_INPUT, payload=payload)


def parked(question: str) -> e.RunEvent:
    return e.RunParked(
        actor=ENGINE, provenance=Provenance.SYSTEM, payload=e.Waiting("you", question)
    )


def warning(sentence: str) -> e.RunEvent:
    return e.WarningGiven(actor=ENGINE, provenance=Provenance.SYSTEM, payload=e.Warned(sentence))


def note(entry: str) -> e.RunEvent:
    return e.Noted(actor=LEAD, provenance=Provenance.SYSTEM, payload=e.Note(entry))


def end(reason: str, *, done: bool = True) -> e.RunEvent:
    return e.RunEnded(actor=ENGINE, provenance=Provenance.SYSTEM, payload=e.End(reason, done))


def whole() -> tuple[e.RunEvent, ...]:
    """Three tasks: one applied, one sent back and in review again, one at work; you are asked."""
    settings = "Limit settings and defaults, each with a sentence of documentation."
    bucket = (
        "Write an async token bucket in `ledger/limits/bucket.py`. Deny with `retry_after`; "
        "cover refill, burst and concurrency."
    )
    refills = (
        "Bucket refills on a monotonic clock under one lock; denial carries the wait in seconds."
    )
    return (
        begin(),
        warning("No bubblewrap on this machine: agents are confined by Landlock."),
        dispatch("T1", settings),
        turn("T1", f"You are Coder.\n\n{settings}"),
        answer("T1", "Settings are there, with defaults that change nothing."),
        proposal("T1", "Settings with defaults; nothing is limited until one is set."),
        checks("T1", "passed", "pytest: 41 passed before, 43 after."),
        announce("Settings with defaults; nothing is limited until one is set.", to_user=False),
        verdict("T1", Decision.APPLY, "Schema is additive and all checks pass on base + patch."),
        landed("T1"),
        announce("Settings with defaults; nothing is limited until one is set.", to_user=True),
        dispatch("T2", bucket),
        turn("T2", f"You are Coder.\n\n{bucket}"),
        answer("T2", "The bucket is written."),
        proposal("T2", "A bucket that refills by the wall clock."),
        checks(
            "T2",
            "failed",
            "FAILED test_bucket.py::test_two_tasks: assert 3 == 2",
            TestsRun(passed=4, failed=1),
        ),
        verdict(
            "T2", Decision.REVISE, "`time.time()` moves with the wall clock. Use a monotonic one."
        ),
        dispatch("T2", bucket),
        proposal("T2", refills),
        checks("T2", "passed", "pytest: 43 passed before, 48 after."),
        dispatch("T3", "Send `RateLimit` headers with every answer.", worker=TESTER),
        turn("T3", "You are Tester.", to=TESTER),
        progress("T3", "edits ledger/http/middleware.py"),
        ask("T2", "Apply T2? 3 files, all checks pass, nobody else has read it."),
    )
