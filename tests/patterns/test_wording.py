"""Prompts are files: filled in once, and a user's own go before ours."""

from __future__ import annotations

import pytest

from agentcanvas.errors import NotFound
from agentcanvas.patterns.scripted import ScriptedStage
from agentcanvas.patterns.wording import WORDING, Wording

OURS = Wording({"p.ask": 'Do {request}.\n\nSo far:\n{so_far}\n\nAnswer {"a": 1}.\n'})


def test_facts_are_filled_in_and_braces_in_them_stay() -> None:
    said = OURS.fill("p.ask", {"request": "{so_far}", "so_far": "{request}"})
    assert said == 'Do {so_far}.\n\nSo far:\n{request}\n\nAnswer {"a": 1}.'


def test_a_paragraph_without_its_fact_is_left_out() -> None:
    said = OURS.fill("p.ask", {"request": "it", "so_far": " \n"})
    assert said == 'Do it.\n\nAnswer {"a": 1}.'


def test_what_nobody_fills_in_stays_to_be_seen() -> None:
    assert OURS.fill("p.ask", {"so_far": "x"}).startswith("Do {request}.")


def test_a_users_own_prompt_goes_before_ours() -> None:
    own = OURS.over({"p.ask": "Please: {request}"})
    assert own.fill("p.ask", {"request": "it"}) == "Please: it"
    assert own.facts("p.ask") == {"request"}
    assert OURS.facts("p.ask") == {"request", "so_far"}


def test_a_prompt_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFound, match=r"p\.other\.md"):
        OURS.fill("p.other", {})


def test_every_shipped_prompt_is_short() -> None:
    for name, text in WORDING.templates.items():
        assert len(text) < 1_500, name
        assert text.strip() == text.strip("\n"), name


def test_the_stage_for_tests_has_the_shipped_words() -> None:
    stage = ScriptedStage(lambda *_: "")
    assert "wash up" in stage.words("role_play_pair.user", request="wash up", solution="")
