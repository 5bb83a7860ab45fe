"""sop_assembly_line: typed documents, nobody before its inputs, three retries."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Measure
from agentcanvas.patterns.forms import Verdict
from agentcanvas.patterns.sop_assembly_line import Design, Options, Requirements
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P04")]

GREEN = Measure("tests_passed", 1, holds=True)
RED = Measure("tests_passed", 0, holds=False, detail="2 of 9 tests fail")
CAST = {"product_manager": ["pam"], "architect": ["art"], "engineer": ["eng"], "qa": ["quinn"]}
WANTED = Requirements("clean plates", ("no stains",), ("they shine",))
DESIGN = Design("by hand", ("sink.py",))


async def line(
    options: Options | None = None,
    measures: tuple[Measure, ...] = (GREEN,) * 9,
    ends: Ends | None = None,
    **parts: Part,
) -> Log:
    team = {"pam": WANTED, "art": DESIGN, "eng": "code", "quinn": Verdict(accept=True)} | parts
    return await play("sop_assembly_line", CAST, team, options, measures=measures, ends=ends)


async def test_documents_are_typed_and_published_in_order() -> None:
    log = await line()
    assert [each.to for each in log.verbs("post")] == ["requirements", "design", "code"]
    assert (log.outcome.reason, log.outcome.result) == ("accepted", "code")
    engineer = log.asked("eng")[0].text
    assert "they shine" in engineer
    assert "sink.py" in engineer


async def test_a_document_that_breaks_its_form_twice_ends_the_line_there() -> None:
    log = await line(art="by hand, I think")
    assert log.outcome.reason.startswith("no design: Your answer does not have the form")
    assert len(log.asked("art")) == 2
    assert not log.asked("eng")


async def test_failing_tests_go_back_to_the_engineer_before_qa_sees_anything() -> None:
    log = await line(measures=(RED, GREEN))
    assert "2 of 9 tests fail" in log.asked("eng")[1].text
    assert len(log.asked("quinn")) == 1


async def test_what_qa_refuses_goes_back_with_its_reason() -> None:
    log = await line(quinn=[Verdict(accept=False, reason="a stain"), Verdict(accept=True)])
    assert "a stain" in log.asked("eng")[1].text
    assert log.outcome.done


@pytest.mark.parametrize("rounds", [4, 9])
async def test_a_fourth_retry_is_impossible_whatever_the_flow_says(rounds: int) -> None:
    log = await line(Options(max_rounds=rounds), measures=(RED,) * 9, ends=Ends(rounds=rounds))
    assert len(log.asked("eng")) == 4
    assert (log.outcome.reason, log.outcome.result) == ("max_rounds: 4", "code")


async def test_code_that_was_not_taken_is_a_try_too() -> None:
    log = await line(eng=[fails("eng", "too large"), "code"])
    assert "The code was not taken, failed: too large" in log.asked("eng")[1].text
    assert log.outcome.done
