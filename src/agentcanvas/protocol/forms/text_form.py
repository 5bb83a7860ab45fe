"""The verbs every text form has: write, parse, check, and list all that is wrong with a text."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import msgspec
from msgspec import Struct

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import checking, reading, writing
from agentcanvas.protocol.forms.shape import FormProblem, Shape


class TextForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value of one of the forms; making one that could not be written raises ``FormError``."""

    SHAPE: ClassVar[Shape]

    def __post_init__(self) -> None:
        for problem in checking.form_problems(self.SHAPE, _values(self)):
            raise FormError(problem.sentence, part=problem.part)


Form = TypeVar("Form", bound=TextForm)


def write(form: TextForm) -> str:
    """The form as text; ``parse`` gives the same value back."""
    return writing.write(form.SHAPE, _values(form))


def parse(text: str, form: type[Form]) -> Form:
    """The value in ``text``, wherever in it the block stands; the first breach raises."""
    found = reading.read(text, form.SHAPE)
    breaches = (*found.problems, *checking.form_problems(form.SHAPE, found.values))
    for problem in _in_order(form.SHAPE, breaches):
        raise FormError(problem.sentence, part=problem.part)
    return msgspec.convert(found.values, form)


def check(form: TextForm) -> tuple[FormProblem, ...]:
    """What a well-formed value still lacks: unfilled placeholders, a DoD nobody can check."""
    return tuple(checking.meaning_problems(form.SHAPE, _values(form)))


def problems(text: str, form: type[TextForm]) -> tuple[FormProblem, ...]:
    """Every breach in ``text``, those of ``check`` included, in the order of the parts."""
    found = reading.read(text, form.SHAPE)
    breaches = (
        *found.problems,
        *checking.form_problems(form.SHAPE, found.values),
        *checking.meaning_problems(form.SHAPE, found.values),
    )
    return _in_order(form.SHAPE, breaches)


def _in_order(shape: Shape, breaches: tuple[FormProblem, ...]) -> tuple[FormProblem, ...]:
    """Sorted by part; what belongs to no part, such as a missing opening word, comes first."""
    places = {part.title: place for place, part in enumerate(shape.parts)}
    return tuple(sorted(breaches, key=lambda problem: places.get(problem.part, -1)))


def _values(form: TextForm) -> dict[str, str | tuple[str, ...]]:
    return {name: getattr(form, name) for name in form.__struct_fields__}
