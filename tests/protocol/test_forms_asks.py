"""What prompts say about a form is what its reader accepts (T6)."""

from __future__ import annotations

import pytest

from agentcanvas.protocol.forms import (
    FORM_ASKS,
    STYLE,
    TEXT_ASKS,
    MessageForm,
    TextForm,
    check_parts,
    parse,
    parse_acl,
    parse_parts,
    problems,
    write,
)

pytestmark = pytest.mark.req("T6")


def test_there_is_an_ask_for_every_form() -> None:
    assert set(FORM_ASKS) == set(MessageForm)
    assert set(TEXT_ASKS) == set(TextForm.__subclasses__())


@pytest.mark.parametrize("form", TEXT_ASKS, ids=lambda form: form.__name__)
def test_the_example_in_an_ask_is_accepted_without_a_breach(form: type[TextForm]) -> None:
    ask = TEXT_ASKS[form]
    assert problems(ask, form) == ()
    example = write(parse(ask, form))
    assert ask.endswith(example), "the example is written as the product writes it"


@pytest.mark.parametrize("form", TEXT_ASKS, ids=lambda form: form.__name__)
def test_an_ask_names_every_part_and_its_limits(form: type[TextForm]) -> None:
    ask = TEXT_ASKS[form]
    rules = ask.split("Example:")[0]
    for part in form.SHAPE.parts:
        assert form.SHAPE.heading(part) in ask
        for limit in (part.at_least, part.at_most):
            assert (limit or 0) <= 1 or str(limit) in rules


def test_asks_for_text_set_the_tone_and_all_are_short() -> None:
    for said in ("directly", "briefly", "lists", "failures", "blockers", "not guess", "question"):
        assert said in STYLE
    for ask in (*TEXT_ASKS.values(), FORM_ASKS[MessageForm.NL_TEXT]):
        assert ask.startswith(STYLE)
    assert all(len(ask) < 1_000 for ask in (*TEXT_ASKS.values(), *FORM_ASKS.values()))


@pytest.mark.req("T5")
def test_the_acl_example_is_accepted() -> None:
    message = parse_acl(FORM_ASKS[MessageForm.ACL_PERFORMATIVE])
    assert message.content == "I split src/api.ts in 2 turns"


@pytest.mark.req("T5")
def test_the_multimodal_example_is_accepted() -> None:
    parts = parse_parts(FORM_ASKS[MessageForm.MULTIMODAL])
    assert len(parts) == 2
    assert check_parts(parts) == ()
