"""Changing a flow's text: what did not change stays as it was, byte for byte."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import FlowError
from agentcanvas.flows.axes import MaxRounds
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.edit import same, updated, with_value, without
from agentcanvas.flows.model import Flow
from agentcanvas.flows.reconcile import flow_text, with_flow
from agentcanvas.flows.shape import made
from tests.flows.styles import MAPPINGS, VALUES, Typist, mutated
from tests.flows.writing import AC_FLOW, values_of

pytestmark = pytest.mark.req("F1")

TEXT = """\
# The team
version: 0.2   # of the format

agents:   # two of them
- id:    'a1'   # first
  name: "Planner"

  # Worker follows
- {id: a2, skills: [ x,  y ]}
interactions: []
layout: {nodes: {}}
"""


@pytest.mark.parametrize(
    ("pointer", "value", "old", "new"),
    [
        ("/agents/0/id", "b 1", "'a1'   # first", "'b 1'   # first"),
        ("/agents/0/name", 'The "P"', '"Planner"', '"The \\"P\\""'),
        ("/agents/1/skills/1", "no", " y ]", ' "no" ]'),
        ("/agents/1/skills/-", "z", "y ]", "y, z ]"),
        ("/agents/1/skills/-", "true", "y ]", 'y, "true" ]'),
        ("/agents/1/role", "tester", "y ]}", "y ], role: tester}"),
        ("/agents/0/role", "r", '"Planner"\n', '"Planner"\n  role: r\n'),
        ("/agents/-", {"id": "a3"}, "y ]}\n", "y ]}\n- id: a3\n"),
        ("/agents/0/name", ["l"], ' "Planner"\n', "\n    - l\n"),
        ("/agents/0/name", "two\nlines", '"Planner"', '"two\\nlines"'),
        ("/interactions", [{"id": "i"}], " []\n", "\n  - id: i\n"),
        ("/interactions", ["i"], " []\n", " [i]\n"),
        ("/layout/nodes", {"a1": {"x": 1}}, "{nodes: {}}", "{nodes: {a1: {x: 1}}}"),
        ("/land", "commit", "{nodes: {}}\n", "{nodes: {}}\nland: commit\n"),
        ("/version", "0.2", "0.2   #", '"0.2"   #'),
    ],
)
def test_setting_a_value_touches_its_own_bytes_only(
    pointer: str, value: Any, old: str, new: str
) -> None:
    assert TEXT.count(old) == 1
    assert with_value(read_document(TEXT), pointer, value).text == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("pointer", "old", "new"),
    [
        ("/version", "version: 0.2   # of the format\n", ""),
        ("/agents/0", "- id:    'a1'   # first\n  name: \"Planner\"\n", ""),
        ("/agents/0/id", "id:    'a1'   # first\n  name", "name"),
        ("/agents/0/name", '  name: "Planner"\n', ""),
        ("/agents/1", "- {id: a2, skills: [ x,  y ]}\n", ""),
        ("/agents/1/id", "id: a2, ", ""),
        ("/agents/1/skills", ", skills: [ x,  y ]", ""),
        ("/agents/1/skills/0", "x,  ", ""),
        ("/agents/1/skills/1", ",  y", ""),
        ("/layout/nodes", "{nodes: {}}", "{}"),
    ],
)
def test_removing_a_value_takes_its_own_bytes_only(pointer: str, old: str, new: str) -> None:
    assert without(read_document(TEXT), pointer).text == TEXT.replace(old, new)


@given(MAPPINGS, st.integers(0, 2**32), st.lists(VALUES, min_size=1, max_size=4))
def test_any_change_to_any_text_holds_the_wanted_data(
    data: dict[str, Any], seed: int, fresh: list[Any]
) -> None:
    document = read_document(Typist(seed).text(data))
    assert same(document.data, data)
    assert updated(document, data).content == document.content
    wanted = mutated(data, Random(seed), fresh)
    assert same(updated(document, wanted).data, wanted)


@given(MAPPINGS.filter(lambda data: len(data) > 1), st.integers(0, 2**32), VALUES)
def test_the_lines_of_other_keys_stay_as_they_are(
    data: dict[str, Any], seed: int, value: Any
) -> None:
    document = read_document(Typist(seed).text(data))
    name = Random(seed).choice(list(data))
    places = {key: document.places["/" + key.replace("~", "~0").replace("/", "~1")] for key in data}
    lines = document.text.split("\n")
    begins = sorted(place.key_line - 1 for place in places.values())
    mine = places[name].key_line - 1
    until = next((line for line in begins if line > mine), len(lines))
    changed = updated(document, data | {name: value}).text.split("\n")
    assert changed[:mine] == lines[:mine]
    assert until == len(lines) or changed[until - len(lines) :] == lines[until:]


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    content = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    made_ = with_value(read_document(content), "/budgets", {"turns": 3})
    assert made_.content == content + b"budgets:\r\n  turns: 3\r\n"


def test_an_unchanged_flow_is_written_back_byte_for_byte() -> None:
    document = read_document(AC_FLOW)
    assert with_flow(document, check(document).sound()).content == AC_FLOW


def test_a_changed_flow_keeps_abbreviations_and_spelt_out_defaults() -> None:
    document = read_document(AC_FLOW)
    flow = check(document).sound()
    interaction = flow.interactions[0]
    edge = interaction.edges[0]
    data = msgspec.structs.replace(edge.data, termination=(MaxRounds(3),))
    changed = msgspec.structs.replace(
        flow,
        interactions=(
            msgspec.structs.replace(interaction, edges=(msgspec.structs.replace(edge, data=data),)),
        ),
    )
    assert with_flow(document, changed).content == AC_FLOW.replace(b"rounds: 2", b"rounds: 3")


@given(values_of(Flow), values_of(Flow))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=50)
def test_any_flow_can_be_put_into_the_file_of_any_other(one: Flow, other: Flow) -> None:
    changed = with_flow(read_document(flow_text(one)), other)
    assert made(changed.data, Flow) == (other, [])


@pytest.mark.parametrize("pointer", ["/agents/7", "/agents/x", "/nothing/here", "/version/deep"])
def test_a_pointer_to_nothing_is_refused(pointer: str) -> None:
    with pytest.raises(FlowError, match="nothing at"):
        with_value(read_document(TEXT), pointer, 1)


def test_a_change_that_would_reach_further_than_meant_is_refused() -> None:
    document = read_document("a: &x [1, 2]\nb: *x\n")
    with pytest.raises(FlowError, match="anchor"):
        with_value(document, "/a", [3])
    assert with_value(document, "/b", [3]).text == "a: &x [1, 2]\nb:\n  - 3\n"


def test_a_key_between_brackets_without_a_value_gets_one() -> None:
    assert with_value(read_document("a: {b, c: }\n"), "/a/b", 1).text == "a: {b: 1, c: }\n"
    assert with_value(read_document("a: {b, c: }\n"), "/a/c", 1).text == "a: {b, c: 1 }\n"


def test_a_file_that_cannot_be_read_is_not_changed() -> None:
    with pytest.raises(FlowError, match="mend it first"):
        updated(read_document("a: ["), {})
