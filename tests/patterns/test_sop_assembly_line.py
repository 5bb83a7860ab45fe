"""sop_assembly_line: typed documents, nobody before its inputs, three retries."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Measure
from agentcanvas.patterns.forms import Verdict
from agentcanvas.patterns.sop_assembly_line import Design, Options, Requirements
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P04")]

GREEN = Measure("tests_passed", 1, holds=True)
RED = Measure("tests_passed", 0, holds=False, detail="2 of 9 tests fail")
CAST = {"product_manager": ["pam"], "architect": ["art"], "engineer": ["eng"], "qa": ["quinn"]}
WANTED = Requirements("clean plates", ("no stains",), ("they shine",))
DESIGN = Design("by hand", ("sink.py",))


YES = Verdict(accept=True)


def verifying(part: Part, *verdicts: Part) -> Part:
    """Verifies what is put before it, and answers everything else as before."""
    left = list(verdicts) or [YES]
    turns = list(part) if isinstance(part, list) else [part]

    def reply(message: str) -> Part:
        queue = left if "Verify it before you do" in message else turns
        return queue.pop(0) if len(queue) > 1 else queue[0]

    return part if callable(part) else reply


async def line(
    options: Options | None = None,
    measures: tuple[Measure, ...] = (GREEN,) * 9,
    ends: Ends | None = None,
    **parts: Part,
) -> Log:
    team = {"pam": WANTED, "art": DESIGN, "eng": "code", "quinn": YES} | parts
    for reader in ("art", "eng"):
        team[reader] = verifying(team[reader])
    return await play("sop_assembly_line", CAST, team, options, measures=measures, ends=ends)


async def test_documents_are_typed_and_published_in_order() -> None:
    log = await line()
    assert [each.to for each in log.verbs("post")] == ["requirements", "design", "code"]
    assert (log.outcome.reason, log.outcome.result) == ("accepted", "code")
    engineer = log.verbs("task")[0].text
    assert "they shine" in engineer
    assert "sink.py" in engineer


async def test_a_document_that_breaks_its_form_twice_ends_the_line_there() -> None:
    log = await line(art="by hand, I think")
    assert log.outcome.reason.startswith("no design: Your answer does not have the form")
    assert len(log.asked("art")) == 3
    assert not log.verbs("task")


async def test_failing_tests_go_back_to_the_engineer_before_qa_sees_anything() -> None:
    log = await line(measures=(RED, GREEN))
    assert "2 of 9 tests fail" in log.verbs("task")[1].text
    assert len(log.asked("quinn")) == 1


async def test_what_qa_refuses_goes_back_with_its_reason() -> None:
    log = await line(quinn=[Verdict(accept=False, reason="a stain"), Verdict(accept=True)])
    assert "a stain" in log.verbs("task")[1].text
    assert log.outcome.done


@pytest.mark.parametrize("rounds", [4, 9])
async def test_a_fourth_retry_is_impossible_whatever_the_flow_says(rounds: int) -> None:
    log = await line(Options(max_rounds=rounds), measures=(RED,) * 9, ends=Ends(rounds=rounds))
    assert len(log.verbs("task")) == 4
    assert (log.outcome.reason, log.outcome.result) == ("max_rounds: 4", "code")


async def test_code_that_was_not_taken_is_a_try_too() -> None:
    log = await line(eng=[fails("eng", "too large"), "code"])
    assert "The code was not taken, failed: too large" in log.verbs("task")[1].text
    assert log.outcome.done


async def test_whoever_works_with_a_document_next_verifies_it_and_it_is_written_anew() -> None:
    refused = Verdict(accept=False, reason="which plates?")
    log = await line(art=verifying(DESIGN, refused, YES))
    assert "which plates?" in log.asked("pam")[1].text
    assert [each.to for each in log.posted("requirements")] == ["requirements"] * 2
    assert log.outcome.done
    assert breaches(log, "sop_assembly_line") == []


async def test_a_document_that_is_never_accepted_ends_the_line_after_three_retries() -> None:
    log = await line(eng=verifying("code", Verdict(accept=False, reason="too vague")))
    assert log.outcome.reason == "no design: too vague"
    assert len(log.posted("design")) == 4
    assert not log.verbs("task")


async def test_a_verifier_that_breaks_its_form_accepts_nothing() -> None:
    log = await line(Options(max_rounds=1), eng=verifying("code", "fine with me"))
    assert log.outcome.reason.startswith("no design: Your answer does not have the form")
