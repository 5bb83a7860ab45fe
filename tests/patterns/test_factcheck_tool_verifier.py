"""factcheck_tool_verifier: claim by claim, with a tool, and nothing accepted without evidence."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Gate
from agentcanvas.patterns.factcheck_tool_verifier import Claims, Finding, Options
from agentcanvas.patterns.forms import Verdict
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P17")]

YES = Verdict(accept=True)
FOUND = Finding("supported", "README.md:1", "as it says")


def claims(*texts: str) -> Claims:
    return Claims(texts)


async def checked(
    verifier: Part = FOUND,
    judge: Part = None,
    options: Options | None = None,
    stage: Part = None,
    producer: Part = None,
) -> Log:
    cast = {"producer": ["pro"], "verifier": ["vic"], "judge": ["judy"] if judge else []}
    parts = {"pro": producer or claims("water is wet"), "vic": verifier, "judy": judge}
    log = await play("factcheck_tool_verifier", cast, parts, options, **(stage or {}))
    assert breaches(log, "factcheck_tool_verifier") == []
    return log


async def test_each_claim_is_checked_for_itself_and_cites_its_evidence() -> None:
    log = await checked(producer=claims("water is wet", "soap is dry"))
    assert [each.text.count("wet") + each.text.count("dry") for each in log.asked("vic")] == [1, 1]
    assert log.outcome.result == "water is wet [1]\nsoap is dry [2]"
    assert log.posted("evidence")[0].text == "water is wet\nREADME.md:1: as it says"
    assert (log.outcome.reason, log.outcome.done) == ("quality_gate: citations_count >= 1", True)


async def test_checks_are_made_at_once_and_blind() -> None:
    log = await checked(producer=claims("a", "b", "c"), stage={"seconds": lambda *_: 3.0})
    assert {each.at_ms for each in log.asked("vic")} == {3_000}


@pytest.mark.parametrize(
    "found",
    [
        Finding("refuted", "README.md:1", "it is dry"),
        Finding("not_found"),
        Finding("supported"),
        "sure",
        fails("vic"),
    ],
)
async def test_what_is_not_shown_by_a_source_is_sent_back(found: Part) -> None:
    log = await checked(found, options=Options(max_rounds=2))
    assert (log.outcome.reason, log.outcome.done, log.outcome.result) == (
        "max_rounds: 2",
        False,
        "",
    )
    assert "water is wet (" in log.asked("pro")[1].text


async def test_the_producer_keeps_what_is_supported_and_corrects_the_rest() -> None:
    def verifier(message: str) -> Finding:
        return Finding("refuted", "x", "no") if "dry" in message else FOUND

    log = await checked(
        verifier, producer=[claims("water is wet", "water is dry"), claims("water is wet")]
    )
    again = log.asked("pro")[1].text
    assert "keep those you need as they are:\nwater is wet [1]" in again
    assert "water is dry (refuted. x no)" in again
    assert log.outcome.result == "water is wet [2]"


async def test_the_judge_may_ask_for_more_though_all_is_supported() -> None:
    log = await checked(judge=[Verdict(accept=False, reason="and soap?"), YES])
    assert "and soap?" in log.asked("pro")[1].text
    assert log.outcome.done


async def test_a_judge_who_accepts_cannot_lower_the_number_of_citations() -> None:
    stage = {"ends": Ends(gates=(Gate("citations_count", ">=", 2),))}
    log = await checked(judge=YES, options=Options(max_rounds=1), stage=stage)
    assert (log.outcome.reason, log.outcome.result) == ("max_rounds: 1", "water is wet [1]")


async def test_a_judge_may_accept_what_is_supported_and_only_that_is_the_result() -> None:
    def verifier(message: str) -> Finding:
        return Finding("not_found") if "dry" in message else FOUND

    log = await checked(verifier, YES, producer=claims("water is wet", "soap is dry"))
    assert log.outcome.result == "water is wet [1]"


async def test_more_claims_than_allowed_are_not_checked() -> None:
    log = await checked(options=Options(max_claims=2), producer=claims("a", "b", "c"))
    assert len(log.asked("vic")) == 2
    assert log.outcome.result == "a [1]\nb [2]"


async def test_no_claims_no_answer() -> None:
    log = await checked(producer="water is wet, of course")
    assert log.outcome.reason.startswith("no claims: ")
    assert not log.asked("vic")


@pytest.mark.parametrize(("found", "done"), [(FOUND, True), (Finding("refuted", "x", "no"), False)])
async def test_a_gate_may_ask_that_the_tool_passes_every_claim(found: Finding, done: bool) -> None:
    ends = Ends(rounds=1, gates=(Gate("tool_check_pass"),))
    log = await checked(found, stage={"ends": ends})
    assert log.outcome.done is done
    assert log.outcome.reason == ("quality_gate: tool_check_pass >= 1" if done else "max_rounds: 1")
