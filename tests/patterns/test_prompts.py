"""Every prompt of a built-in role is used, and speaks of the form that goes along with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.pattern import Answer, Ask, Measure
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.scripted import ScriptedStage
from agentcanvas.patterns.scripted.asking import Asking
from agentcanvas.patterns.verified import Looks, Verified
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.runs.simulation import Crowd, Kind
from tests.patterns.scenes import SCENES
from tests.patterns.team import BY_ID, script

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4")]

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "debate_judge": [{"variant": "consensus"}],
    "self_consistency_ensemble": [{"select": "score"}],
    "majority_vote_with_tiebreak": [{"choices": ()}, {"choices": ("a", "b"), "threshold": 1.0}],
    "blackboard_shared_state": [{"max_rounds": 2}],
}
"""Options with which a pattern asks what it does not ask without."""

WORDS = {
    "words": r".",
    "work": r".",
    "choice": r"choose|decide|which|pick|award",
    "Ballot": r"right|agree",
    "Bid": r"bid|propose",
    "Claims": r"claim",
    "Critique": r"wrong|accept",
    "Design": r"design",
    "Finding": r"tool|check|source",
    "Flaw": r"first step that is wrong",
    "Gathered": r"as one result, and say what is still missing",
    "Lesson": r"one sentence",
    "Letter": r"tag",
    "Log": r"notice",
    "Observation": r"further, and is the whole request done",
    "Offer": r"offer",
    "Plan": r"tasks",
    "Position": r"answer",
    "Proposal": r"propos|answer|choice",
    "Publication": r"publish",
    "Query": r"capability",
    "Reflection": r"rules",
    "Registration": r"capabilities",
    "Requirements": r"requirements",
    "Routing": r"tag",
    "Sample": r"answer",
    "Score": r"score",
    "Split": r"split|parts",
    "Steps": r"step",
    "Summary": r"insight|remember",
    "Verdict": r"accept|take it|right",
    "Volunteer": r"add",
    "Vote": r"vote|choose",
    "Wish": r"topic|hear",
}
"""What a prompt has to speak of so that an agent understands the schema beside it."""


AGAIN = "verified.again"
"""This one is a request, played once more, and no question of its own."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """By prompt, the forms in which it is asked, for as long as a test lasts."""
    made: dict[str, str] = {}
    forms: dict[str, set[str]] = {}
    fill, one = Wording.fill, Asking.one

    def filled(self: Wording, name: str, facts: Any) -> str:
        made[text := fill(self, name, facts)] = name
        return text

    def seen(self: Asking, ask: Ask, due_ms: int | None = None) -> Answer[None]:
        form = self._world.form
        kind = "choice" if isinstance(form, tuple) else getattr(form, "__name__", None)
        texts = [text for text in made if ask.message.startswith(text)]
        if texts:
            name = made[max(texts, key=len)]
            forms.setdefault(name, set()).add(kind or ("work" if ask.work else "words"))
        return one(self, ask, due_ms)

    monkeypatch.setattr(Wording, "fill", filled)
    monkeypatch.setattr(Asking, "one", seen)
    return forms


def stages() -> Iterator[tuple[ScriptedStage, Any, Any]]:
    """The scenes, and every pattern with all roles played, also by agents that seldom agree."""
    for name, scene in SCENES.items():
        more = {**scene.stage, "measures": list(scene.stage.get("measures", ()))}
        if not more["measures"]:
            more.pop("measures")
        yield ScriptedStage(script(scene.parts), patterns=PATTERNS, **more), BY_ID[name], scene
    for name, pattern in BY_ID.items():
        looks = Looks(kinds=("critic_loop", "cross_check_vote"), critic="c", checkers=("d",))
        for options in [{}, *VARIANTS.get(name, [])]:
            for seed in range(4):
                roles = {r.name: r.most or max(r.least, 4) for r in pattern.roles}
                cast = {r: tuple(f"{r}_{n}" for n in range(many)) for r, many in roles.items()}
                everybody = {"c", "d", *(agent for agents in cast.values() for agent in agents)}
                chosen = msgspec.convert(options, pattern.options)
                kinds = dict.fromkeys(everybody, Kind(0.5))
                crowd = Crowd(pattern, cast, kinds, chosen, seed)
                green = [Measure("tests_passed", 1, holds=True)] * 99
                stage = ScriptedStage(
                    crowd.say, typed=crowd.fill, measures=green, patterns=PATTERNS, turns=300
                )
                yield stage, Verified(pattern, looks), (cast, chosen)


def test_every_prompt_is_asked_in_one_form_and_speaks_of_it(asked: dict[str, set[str]]) -> None:
    for stage, pattern, scene in stages():
        if isinstance(scene, tuple):
            cast, options = scene
        else:
            cast, options = scene.cast, scene.options or pattern.options()
        anyio.run(stage.perform, pattern, cast, "Wash up", options)
    asked.pop(AGAIN, None)
    assert asked.keys() == WORDING.templates.keys() - {AGAIN}
    for name, forms in asked.items():
        (form,) = forms
        text = " ".join(WORDING.templates[name].split())
        assert re.search(WORDS[form], text, re.IGNORECASE), (name, form, text)
