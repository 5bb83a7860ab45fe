"""Every pattern keeps the rule that its source prescribes, and a broken variant is caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.ends import own_ends
from agentcanvas.pattern import Answer, Ask, Pattern
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.scripted import ScriptedStage
from agentcanvas.patterns.wording import WORDING
from tests.patterns.broken import BROKEN
from tests.patterns.properties import PROPERTIES, breaches
from tests.patterns.scenes import SCENES, Scene
from tests.patterns.team import Log, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4")]

IDS = [pattern.id for pattern in PATTERNS]


async def played(id_: str, scene: Scene, *, as_broken: bool = False) -> Log:
    pattern = BROKEN[id_] if as_broken else id_
    stage = dict(scene.stage)
    if "measures" in stage:
        stage["measures"] = list(stage["measures"])
    return await play(pattern, scene.cast, scene.parts, scene.options, **stage)


def test_there_are_twenty_each_with_a_rule_a_scene_and_a_broken_variant() -> None:
    assert len(IDS) == len(set(IDS)) == 20
    assert set(IDS) == set(CATALOGUE) == set(PROPERTIES) == set(SCENES) == set(BROKEN)


@pytest.mark.parametrize("id_", IDS)
async def test_it_keeps_its_rule_and_ends_as_foreseen(id_: str) -> None:
    scene = SCENES[id_]
    log = await played(id_, scene)
    assert breaches(log, id_) == []
    assert (log.outcome.reason, log.outcome.done) == (scene.reason, scene.done)


@pytest.mark.parametrize("id_", IDS)
async def test_a_broken_variant_is_seen_to_break_it(id_: str) -> None:
    assert breaches(await played(id_, SCENES[id_], as_broken=True), id_)


@pytest.mark.parametrize("id_", IDS)
async def test_the_same_replies_give_the_same_log(id_: str) -> None:
    one, other = await played(id_, SCENES[id_]), await played(id_, SCENES[id_])
    assert (one.said, one.outcome) == (other.said, other.outcome)


@pytest.mark.parametrize("id_", IDS)
async def test_a_limit_at_any_turn_is_the_reason_and_ends_it(id_: str) -> None:
    whole = await played(id_, SCENES[id_])
    turns = len(whole.asked())
    for most in range(turns):
        scene = SCENES[id_]
        cut = msgspec.structs.replace(scene, stage={**scene.stage, "turns": most})
        log = await played(id_, cut)
        assert (log.outcome.reason, log.outcome.done) == ("budget: no more turns", False)
        assert len(log.asked()) == most
        assert [each.reply for each in log.asked()] == [each.reply for each in whole.asked()[:most]]


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_a_flow_knows_of_it_what_it_declares(pattern: Pattern) -> None:
    known = CATALOGUE[pattern.id]
    declared = [(r.name, r.least, r.most, r.system, r.writes) for r in pattern.roles]
    assert declared == [(r.name, r.least, r.most, r.system, r.writes) for r in known.roles]


@pytest.mark.req("I4a")
@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_an_option_that_stands_for_an_end_is_an_option_and_says_the_same_by_itself(
    pattern: Pattern,
) -> None:
    info = CATALOGUE[pattern.id]
    own = msgspec.to_builtins(pattern.options())
    assert info.ends_as <= own.keys()
    assert own_ends(info, own) == info.termination
    assert {"max_rounds", "threshold", "pass_at", "citations", "gate"} & own.keys() == info.ends_as


@pytest.mark.parametrize("id_", IDS)
async def test_no_prompt_has_a_gap_that_nobody_fills_in(id_: str) -> None:
    log = await played(id_, SCENES[id_])
    gaps = {
        f"{{{fact}}}"
        for name in WORDING.templates
        if name.startswith(f"{id_}.")
        for fact in WORDING.facts(name)
    }
    assert not [gap for gap in gaps for each in log.asked() if gap in each.text]


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_a_number_that_makes_no_sense_is_no_option(pattern: Pattern) -> None:
    for field in msgspec.structs.fields(pattern.options):
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert({field.name: -1}, pattern.options)


@pytest.mark.req("I2")
@pytest.mark.parametrize("id_", IDS)
async def test_who_collects_what_it_hands_over_is_known_to_go_on(
    id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    collects = []
    collect = ScriptedStage.collect

    async def seen(stage: ScriptedStage) -> tuple[tuple[Ask, Answer[Any]], ...]:
        collects.append(id_)
        return await collect(stage)

    monkeypatch.setattr(ScriptedStage, "collect", seen)
    await played(id_, SCENES[id_])
    assert bool(collects) == CATALOGUE[id_].goes_on


@pytest.mark.req("I2")
@pytest.mark.parametrize("id_", [id_ for id_ in IDS if CATALOGUE[id_].goes_on])
async def test_it_keeps_its_rule_also_where_answers_come_when_they_like(id_: str) -> None:
    scene = SCENES[id_]
    agents = sorted({agent for agents in scene.cast.values() for agent in agents})
    for turn in range(len(agents)):
        order = agents[turn:] + agents[:turn]
        paced = msgspec.structs.replace(
            scene,
            stage={
                "seconds": lambda to, _, order=order: 1.0 + order.index(to),
                **scene.stage,
                "first_come": True,
            },
        )
        log = await played(id_, paced)
        assert breaches(log, id_) == []
        assert log.outcome.reason


@pytest.mark.parametrize("id_", IDS)
async def test_who_plays_rounds_is_known_to(id_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    play_rounds = ScriptedStage.rounds

    def seen(stage: ScriptedStage, most: int) -> Any:
        rounds.append(most)
        return play_rounds(stage, most)

    monkeypatch.setattr(ScriptedStage, "rounds", seen)
    await played(id_, SCENES[id_])
    assert bool(rounds) == CATALOGUE[id_].in_rounds
