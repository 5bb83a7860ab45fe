"""The schema for editors agrees with what is read."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import HealthCheck, given, settings

from agentcanvas.flows.document import read_document
from agentcanvas.flows.model import Flow
from agentcanvas.flows.reconcile import flow_text
from agentcanvas.flows.schema import flow_schema
from agentcanvas.flows.starters import STARTERS, starter
from tests.flows.writing import AC_FLOW, values_of

pytestmark = pytest.mark.req("F1")

VALIDATOR = jsonschema.Draft202012Validator(flow_schema())


def test_the_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(flow_schema())


@pytest.mark.parametrize("text", [AC_FLOW, *map(starter, STARTERS)])
def test_the_example_and_the_starters_are_valid(text: bytes | str) -> None:
    assert list(VALIDATOR.iter_errors(read_document(text).data)) == []


@given(values_of(Flow))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40)
def test_whatever_the_model_can_hold_is_valid(flow: Flow) -> None:
    assert list(VALIDATOR.iter_errors(read_document(flow_text(flow)).data)) == []


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"version": 0.3},
        {"version": 0.2, "agnts": []},
        {"version": 0.2, "land": "nowhere"},
        {"version": 0.2, "agents": [{"name": "no id"}]},
        {"version": 0.2, "budgets": {"turns": 0}},
    ],
)
def test_what_is_wrong_is_not_valid(data: dict[str, Any]) -> None:
    assert list(VALIDATOR.iter_errors(data))


def test_every_key_is_described() -> None:
    schema = flow_schema()
    bare = [
        f"{title}.{name}"
        for title, part in [("Flow", schema), *schema["$defs"].items()]
        for name, each in part.get("properties", {}).items()
        if "description" not in each and "enum" not in each
    ]
    assert bare == []
