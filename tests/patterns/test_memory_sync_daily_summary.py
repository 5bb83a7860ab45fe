"""memory_sync_daily_summary: private logs, insights with sources, told once."""

from __future__ import annotations

import pytest

from agentcanvas.patterns.memory_sync_daily_summary import Insight, Options, Summary
from agentcanvas.patterns.memory_sync_daily_summary import Log as Diary
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P19")]


def insight(text: str, *sources: str) -> Insight:
    return Insight(text, sources)


async def synced(
    curator: Part = None, options: Options | None = None, stage: Part = None, **agents: Part
) -> Log:
    agents = agents or {
        "ann": Diary(("hot water helps",)),
        "bob": Diary(("buy a cloth", "it is old")),
    }
    cast = {"agent": list(agents), "memory_curator": ["cora"] if curator else []}
    log = await play(
        "memory_sync_daily_summary", cast, agents | {"cora": curator}, options, **(stage or {})
    )
    assert breaches(log, "memory_sync_daily_summary") == []
    return log


async def test_logs_are_private_and_the_curator_reads_them_all() -> None:
    log = await synced(Summary((insight("A new cloth", "bob:1", "bob:2"),)))
    assert log.asked("ann")[0].text == log.asked("bob")[0].text
    for line in ("ann:1: hot water helps", "bob:1: buy a cloth", "bob:2: it is old"):
        assert line in log.asked("cora")[0].text


async def test_every_insight_is_shared_and_noted_with_the_text_of_its_sources() -> None:
    log = await synced(Summary((insight("A new cloth", "bob:1", "bob:2"),)))
    assert log.posted("shared")[0].text == "A new cloth (bob:1, bob:2)"
    (note,) = log.verbs("note")
    assert (note.text, note.reply) == ("A new cloth", "bob:1 buy a cloth, bob:2 it is old")
    assert (log.outcome.reason, log.outcome.done) == ("summarised: 3 entries", True)
    assert log.outcome.result == "A new cloth (bob:1, bob:2)"


async def test_what_cites_nothing_or_something_that_is_not_there_is_left_out() -> None:
    log = await synced(
        Summary(
            (insight("Plates are fun"), insight("So they say", "bob:9"), insight("Hot", "ann:1"))
        )
    )
    assert [each.text for each in log.posted("shared")] == ["Hot (ann:1)"]
    assert log.outcome.reason == "summarised: 3 entries, 2 without sources left out"


async def test_no_insight_with_a_source_is_no_summary() -> None:
    log = await synced(Summary((insight("Plates are fun"),)))
    assert (log.outcome.done, log.outcome.result) == (False, "")
    assert not (await synced("it was a fine day")).outcome.done


async def test_the_most_important_are_kept_up_to_the_limit() -> None:
    log = await synced(
        Summary(tuple(insight(f"no. {n}", "ann:1") for n in range(5))), Options(max_insights=2)
    )
    assert [each.text for each in log.verbs("note")] == ["no. 0", "no. 1"]


async def test_without_a_curator_every_entry_is_told_once_with_all_its_sources() -> None:
    log = await synced(ann=Diary(("buy a cloth", "hot water")), bob=Diary(("buy a cloth ",)))
    assert log.outcome.result == "buy a cloth (ann:1, bob:1)\nhot water (ann:2)"


async def test_nobody_noticed_anything() -> None:
    log = await synced(Summary(), ann=Diary(), bob=fails("bob"))
    assert (log.outcome.reason, log.outcome.done) == ("nothing was noticed", True)
    assert not log.asked("cora")
