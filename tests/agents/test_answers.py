"""An answer is read in the form asked for, wherever in the text it stands; a breach says what."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.agents.answers import (
    AnswerForm,
    Breach,
    JsonForm,
    Read,
    asks_again,
    asks_for,
    read_answer,
)
from agentcanvas.protocol.forms import (
    AclMessage,
    MessageForm,
    Performative,
    StandardMessage,
    StandardResponse,
    write,
)

pytestmark = pytest.mark.req("T2", "T4", "T5")


class Vote(msgspec.Struct):
    choice: Literal["apply", "reject"]
    score: Annotated[int, msgspec.Meta(ge=0, le=10)]
    why: str = ""


VOTE = JsonForm.of(Vote)
RESPONSE = StandardResponse(intent="Split the API", plan=("Move the routes",), actions=("moved",))


def value_of(answer: object, form: AnswerForm) -> object:
    read = read_answer(answer, form)
    assert isinstance(read, Read), read
    return read.value


def breach_of(answer: object, form: AnswerForm) -> str:
    read = read_answer(answer, form)
    assert isinstance(read, Breach), read
    return read.sentence


@pytest.mark.parametrize(
    "text",
    [
        '{"choice": "apply", "score": 7}',
        '  \n{"choice": "apply", "score": 7}\n\n',
        'Here is my vote:\n```json\n{"choice": "apply", "score": 7}\n```\nThank you.',
        '~~~\n{"choice": "apply", "score": 7}\n~~~',
        'I weighed [1] and {both}. So {"choice": "apply", "score": 7} it is.',
        'First I thought {"choice": "reject", "score": 1}; now: {"choice": "apply", "score": 7}',
        'The schema is {"type": "object"}.\n{"choice": "apply", "score": 7}\nSee [2] for more: []',
    ],
)
def test_json_is_found_bare_fenced_and_between_sentences(text: str) -> None:
    assert value_of(text, VOTE) == Vote("apply", 7)


def test_the_last_value_that_fits_is_the_answer() -> None:
    text = '{"choice": "reject", "score": 2} then {"choice": "apply", "score": 9} and {"x": 1}'
    assert value_of(text, VOTE) == Vote("apply", 9)


def test_without_a_type_the_value_is_plain_data() -> None:
    assert value_of('{"choice": "apply", "score": 7}', JsonForm(VOTE.schema)) == {
        "choice": "apply",
        "score": 7,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "The answer is empty"),
        ("I would apply it.", "There is no JSON in the answer"),
        ('{"choice": "apply", "score": ', "cannot be read"),
        ('{"choice": "maybe", "score": 7}', '"choice" must be one of "apply", "reject"'),
        ('{"choice": "apply"}', '"score" is missing: add it.'),
        ('{"choice": "apply", "score": 70}', '"score" must be at most 10, not 70.'),
        ('{"choice": 1, "score": "x"}', '"score" must be a whole number, not "x".'),
        ("[" * 100_000, "cannot be read"),
        ('{"a":' * 5_000, "cannot be read"),
        ("```x\n" * 200_000 + "[", "cannot be read"),
        ("{" * 3_000_000, "cannot be read"),
    ],
)
def test_a_breach_says_what_to_mend(text: str, words: str) -> None:
    assert words in breach_of(text, VOTE)


def test_all_breaches_of_a_value_are_said_at_once() -> None:
    sentence = breach_of('{"choice": "maybe", "score": -1, "why": 3}', VOTE)
    assert all(f'"{name}"' in sentence for name in ("choice", "score", "why"))


@given(st.text(max_size=300))
def test_no_text_makes_reading_raise(text: str) -> None:
    for form in (VOTE, StandardResponse, *MessageForm):
        assert isinstance(read_answer(text, form), Read | Breach)


def test_a_six_part_response_is_read_with_words_around_it() -> None:
    text = f"Sure! Here you are.\n\n{write(RESPONSE)}\nAnything else?"
    assert value_of(text, StandardResponse) == RESPONSE


def test_a_response_without_parts_names_every_missing_one() -> None:
    sentence = breach_of("1. Intent\nSplit the API\n3. Plan\n1. Move", StandardResponse)
    for title in ("Assumptions/Inputs", "Actions/Artifacts", "Risks/Safety Notes", "Next Steps"):
        assert title in sentence


def test_the_other_message_forms_are_read_too() -> None:
    act = value_of('(inform :content "done")', MessageForm.ACL_PERFORMATIVE)
    assert isinstance(act, AclMessage)
    assert act.performative is Performative.INFORM
    assert value_of("anything", MessageForm.NL_TEXT) == "anything"
    assert value_of("so: [1, 2]", MessageForm.STRUCTURED_JSON) == [1, 2]
    assert "no JSON" in breach_of("so", MessageForm.STRUCTURED_JSON)
    assert breach_of("hm", MessageForm.ACL_PERFORMATIVE)
    assert breach_of("hm", MessageForm.MULTIMODAL)


def test_data_is_held_to_the_form_as_text_is() -> None:
    assert value_of({"choice": "apply", "score": 7}, VOTE) == Vote("apply", 7)
    assert value_of(Vote("apply", 7), VOTE) == Vote("apply", 7)
    assert "score" in breach_of({"choice": "apply", "score": 70}, VOTE)
    assert value_of(RESPONSE, StandardResponse) is RESPONSE


@pytest.mark.req("T6")
def test_every_form_has_an_instruction_that_its_own_reader_accepts() -> None:
    for form in (StandardResponse, StandardMessage):
        assert isinstance(read_answer(asks_for(form), form), Read)
    assert '"choice"' in asks_for(VOTE)
    assert "Do not guess" in asks_for(None)


def test_asking_again_says_what_is_wrong_and_repeats_the_form() -> None:
    text = asks_again(breach_of('{"choice": "apply"}', VOTE), VOTE)
    assert '"score" is missing: add it.' in text
    assert asks_for(VOTE) in text
    assert "do not repeat the work" in text
