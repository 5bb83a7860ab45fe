"""Reading what an agent said: in a text form, as JSON of a schema, or in another message form.

What is asked for is an ``AnswerForm``; reading gives a value, or a ``Breach`` whose sentence says
what to mend. ``asks_for`` is the instruction that goes along with a request, ``asks_again`` the one
after a breach. Whether it is asked again is up to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from agentcanvas.agents import json_schema, json_text
from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import (
    FORM_ASKS,
    TEXT_ASKS,
    MessageForm,
    TextForm,
    parse,
    parse_acl,
    parse_parts,
    problems,
)

_MOST_PROBLEMS = 5


class JsonForm(Struct, frozen=True):
    """JSON that fits a schema; with ``type`` the value is of that type, else plain data."""

    schema: Mapping[str, Any]
    type: Any = None

    @classmethod
    def of(cls, type_: Any) -> JsonForm:
        """The form of a msgspec type."""
        return cls(msgspec.json.schema(type_), type_)


AnswerForm: TypeAlias = JsonForm | MessageForm | type[TextForm]
"""A schema, one of the message forms (T5), or a text form such as ``StandardResponse`` (T2)."""


class Read(Struct, frozen=True):
    """An answer in the form that was asked for."""

    value: Any


class Breach(Struct, frozen=True):
    """An answer that is not; the sentence is for its author."""

    sentence: str


def read_answer(answer: Any, form: AnswerForm) -> Read | Breach:
    """Read an answer: text that may hold more than the form, or data that is meant to fit it."""
    if isinstance(form, JsonForm):
        return _read_json(answer, form)
    if isinstance(form, type) and isinstance(answer, form):
        return Read(answer)
    text = answer if isinstance(answer, str) else _as_json(answer)
    try:
        if isinstance(form, type):
            return Read(parse(text, form))
        return Read(_MESSAGE_FORMS[form](text))
    except FormError as broken:
        return Breach(_all_problems(text, form, broken))


# As far as a message form goes, structured_json is any JSON value: the schema is a ``JsonForm``.
_MESSAGE_FORMS: Mapping[MessageForm, Callable[[str], Any]] = {
    MessageForm.NL_TEXT: str,
    MessageForm.STRUCTURED_JSON: json_text.only_value,
    MessageForm.ACL_PERFORMATIVE: parse_acl,
    MessageForm.MULTIMODAL: parse_parts,
}


def _all_problems(text: str, form: AnswerForm, first: FormError) -> str:
    """All that is wrong with a text form at once; other forms have but one first breach."""
    if not isinstance(form, type):
        return str(first)
    found = dict.fromkeys(problem.sentence for problem in problems(text, form))
    return " ".join(list(found)[:_MOST_PROBLEMS]) or str(first)


def _as_json(answer: Any) -> str:
    return msgspec.json.encode(answer).decode()


def _read_json(answer: Any, form: JsonForm) -> Read | Breach:
    """The last value that fits: an agent may think aloud in JSON before it answers in it."""
    if isinstance(answer, str):
        candidates = json_text.values(answer)
        if not candidates:
            return Breach(json_text.why_no_value(answer))
    else:
        candidates = [msgspec.json.decode(msgspec.json.encode(answer))]  # tuples become lists
    breaches: list[str] = []
    for candidate in reversed(candidates):
        read = _fitted(candidate, form)
        if isinstance(read, Read):
            return read
        breaches.append(read.sentence)
    return Breach(breaches[0])


def _fitted(candidate: Any, form: JsonForm) -> Read | Breach:
    found = json_schema.problems(candidate, form.schema)
    if found:
        return Breach(" ".join(found[:_MOST_PROBLEMS]))
    if form.type is None:
        return Read(candidate)
    try:
        return Read(msgspec.convert(candidate, form.type))
    except (msgspec.ValidationError, FormError) as wrong:  # rules that a schema cannot hold
        return Breach(f"{str(wrong).rstrip('.')}.")


def asks_for(form: AnswerForm | None) -> str:
    """The instruction that makes an agent answer in this form (T2, T6)."""
    if form is None:
        return FORM_ASKS[MessageForm.NL_TEXT]
    if isinstance(form, JsonForm):
        schema = msgspec.json.format(msgspec.json.encode(form.schema), indent=2).decode()
        ask = FORM_ASKS[MessageForm.STRUCTURED_JSON]
        return f"{ask}The schema:\n\n```json\n{schema}\n```\n"
    return TEXT_ASKS[form] if isinstance(form, type) else FORM_ASKS[form]


def asks_again(breach: str, form: AnswerForm | None) -> str:
    """The message after an answer that could not be read."""
    return (
        f"Your last answer could not be used. {breach}\n"
        "Give the whole answer once more, with this mended; do not repeat the work itself.\n\n"
        f"{asks_for(form)}"
    )
