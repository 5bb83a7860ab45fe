"""Our reading of JSON Schema refuses exactly what a full validator refuses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from agentcanvas.agents.json_schema import problems

pytestmark = pytest.mark.req("T4")


class Leaf(msgspec.Struct, tag="leaf"):
    size: Annotated[float, Meta(gt=0, le=10)]
    name: Annotated[str, Meta(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"


class Branch(msgspec.Struct, tag="branch", forbid_unknown_fields=True):
    kind: Literal["x", "y", 3]
    leaves: Annotated[list[Leaf | None], Meta(max_length=2)] = []
    pair: tuple[int, str] = (0, "")
    below: Leaf | Branch | None = None
    counts: dict[str, Annotated[int, Meta(ge=0, multiple_of=2)]] = {}


SCHEMAS: list[dict[str, Any]] = [
    msgspec.json.schema(Branch),
    msgspec.json.schema(list[Leaf]),
    {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
    {"type": ["string", "null"], "minLength": 2},
    {"not": {"type": "array"}, "enum": [1, True, "x", [1], None]},
    {"type": "array", "uniqueItems": True, "minItems": 1, "prefixItems": [{"const": 1}]},
    {"allOf": [{"required": ["a"]}, {"maxProperties": 1}], "type": "object"},
    {"properties": {"a": False}, "additionalProperties": {"type": "boolean"}},
]

words = st.sampled_from(["a", "b", "leaf", "branch", "x", "", "abcd", "type", "size"])
scalars = st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 2.0]) | words
names = st.sampled_from(["a", "type", "size", "name", "kind", "leaves", "pair", "below", "counts"])
data = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)
)


@given(st.sampled_from(SCHEMAS), data)
def test_it_agrees_with_a_full_validator(schema: dict[str, Any], value: Any) -> None:
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (not problems(value, schema)) == expected


def test_a_valid_branch_has_no_problem() -> None:
    branch = Branch("x", [Leaf(1.0), None], below=Branch("y", counts={"a": 2}))
    value = msgspec.json.decode(msgspec.json.encode(branch))
    assert problems(value, SCHEMAS[0]) == []


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"type": "branch"}, '"kind" is missing: add it.'),
        (
            {"type": "branch", "kind": "x", "leafs": 1},
            '"leafs" is not known here: use type, kind, leaves, pair, below, counts.',
        ),
        (
            {"type": "branch", "kind": "x", "leaves": [{"type": "leaf", "size": 11}]},
            '"leaves[0].size" must be at most 10, not 11.',
        ),
    ],
)
def test_a_breach_names_its_place(value: Any, sentence: str) -> None:
    assert problems(value, SCHEMAS[0]) == [sentence]


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert problems(1, {"$ref": "#"}) == []
    assert problems(1, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "type": "string"}) != []
    nested: list[Any] = []
    for _ in range(100):
        nested = [nested]
    assert "nested too deep" in problems(nested, {"items": {"$ref": "#"}})[0]
    assert problems(1, {"$ref": "#/nowhere"}) == []
