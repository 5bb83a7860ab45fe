"""Flows for tests: short texts, what is wrong with them, and arbitrary models."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.check import Checked, check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.problem import Problem

AC_FLOW = (Path(__file__).parent / "examples" / "ac_flow.yaml").read_bytes()

TEAM = """\
version: 0.2
agents:
  - {id: planner, role: orchestrator}
  - {id: coder}
  - {id: tester}
  - {id: critic, role: reviewer}
"""


def dedented(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def checked(text: str, patterns: Patterns = CATALOGUE) -> Checked:
    """What is found in a text of its own."""
    return check(read_document(dedented(text), "flow.yaml"), patterns)


def with_team(text: str, patterns: Patterns = CATALOGUE) -> Checked:
    """What is found in a text that goes on after the team; its first line is line 7."""
    return check(read_document(TEAM + dedented(text), "flow.yaml"), patterns)


def found(of: Checked) -> list[str]:
    """Line, column and rule of every problem."""
    return [f"{each.line}:{each.column} {each.rule}" for each in of.problems]


def only(of: Checked) -> Problem:
    assert len(of.problems) == 1, [str(each) for each in of.problems]
    return of.problems[0]


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**15), 10**15),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=12),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3),
    ),
    max_leaves=5,
)


def values_of(type_: Any) -> st.SearchStrategy[Any]:
    """Anything that a type of the model allows."""
    plain = _values(inspect.type_info(type_))
    return plain.map(lambda data: msgspec.convert(data, type_))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.Metadata(type=inner):
            return _values(inner)
        case inspect.UnionType(types=types):
            return st.one_of(*map(_values, types))
        case inspect.StructType():
            return _struct(info)
        case inspect.VarTupleType(item_type=item):
            return st.lists(st.deferred(lambda: _values(item)), max_size=2)
        case inspect.DictType(value_type=value):
            keys = st.text(min_size=1, max_size=6)
            return st.dictionaries(keys, _values(value), max_size=2)
        case _:
            return _scalars(info)


def _struct(info: inspect.StructType) -> st.SearchStrategy[Any]:
    needed = {each.encode_name: _values(each.type) for each in info.fields if each.required}
    others = {each.encode_name: _values(each.type) for each in info.fields if not each.required}
    tag = {info.tag_field: info.tag} if info.tag_field else {}
    return st.fixed_dictionaries(needed, optional=others).map(lambda data: tag | data)


def _scalars(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StrType(min_length=least):
            words = st.sampled_from(
                ["a1", "no", "true", "null", "0.2", "x: y", "two\nlines\n", "- é", "#", "src/**"]
            )
            return words if least else st.one_of(words, st.text(max_size=10))
        case inspect.IntType(ge=low, le=high):
            return st.integers(low if low is not None else -1, high)
        case inspect.FloatType(gt=low, le=high):
            return st.floats(
                0.001 if low == 0 else low, high, allow_nan=False, allow_infinity=False
            )
        case inspect.BoolType():
            return st.booleans()
        case inspect.EnumType(cls=cls):
            return st.sampled_from([member.value for member in cls])
        case inspect.LiteralType(values=values):
            return st.sampled_from(list(values))
        case inspect.NoneType():
            return st.none()
        case _:
            return JSON_VALUES
