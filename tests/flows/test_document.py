"""Reading YAML: every way in which a file can be broken has one clear sentence and a place."""

from __future__ import annotations

import pytest

from agentcanvas.flows.check import check
from agentcanvas.flows.document import MAX_BYTES, MAX_NODES, read_document
from agentcanvas.flows.problem import Rule, Severity
from tests.flows.writing import AC_FLOW, checked, only

pytestmark = pytest.mark.req("F1")


def test_every_value_knows_its_line_and_column() -> None:
    document = read_document(AC_FLOW)
    rounds = document.places["/interactions/0/edges/0/data/termination/rounds"]
    assert (rounds.line, rounds.column, rounds.key_line, rounds.key_column) == (31, 21, 31, 13)
    assert document.places["/agents/1"].line == 15


@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        (b"version: 0.2\nagents:\n\t- id: a\n", 3, 1, "use spaces"),
        (b"version: 0.2\nname: \xff\n", 2, 7, "not UTF-8"),
        (b"agents: [a, b\n", 2, 1, "brackets"),
        (b"name: 'open\n", 2, 1, "quotes"),
        (b"note: a: b\n", 1, 8, "quote the text"),
        (b"name: @home\n", 1, 7, "begin with @"),
        (b"name: a\x00b\n", 1, 8, "control character"),
        (b"a: 1\n---\nb: 2\n", 2, 1, "one flow a file"),
        (b"%YAML 1.1\n---\nversion: 0.2\n", 2, 1, "%YAML"),
        (b"a: " + b"[" * 100, 1, 51, "nested deeper"),
    ],
)
def test_a_text_that_is_not_yaml_says_where_and_what_to_do(
    content: bytes, line: int, column: int, words: str
) -> None:
    found = check(read_document(content, "flow.yaml"))
    problem = only(found)
    assert found.flow is None
    assert (problem.line, problem.column) == (line, column)
    assert words in str(problem)


def test_a_key_that_is_there_twice_is_named_with_both_lines() -> None:
    problem = only(checked('version: 0.2\nagents: []\nversion: "0.2"\ninteractions: []\n'))
    assert problem.rule is Rule.DUPLICATE_KEY
    assert (problem.line, problem.column) == (3, 1)
    assert "first in line 1" in problem.sentence


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file_is_told_how_to_begin(text: str) -> None:
    problem = only(checked(text))
    assert problem.rule is Rule.FILE
    assert "version: 0.2" in problem.suggestion


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "3\n"])
def test_a_file_that_is_not_a_mapping_is_refused(text: str) -> None:
    problem = only(checked(text))
    assert problem.rule is Rule.TYPE
    assert "the flow must be a section" in problem.sentence


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    problem = only(check(read_document(b"#" * (MAX_BYTES + 1))))
    assert problem.rule is Rule.FILE


def test_aliases_are_followed_and_keep_their_own_place() -> None:
    text = """
        version: 0.2
        agents:
          - {id: a, skills: &all [x, y]}
          - {id: b, skills: *all}
    """
    document = read_document(text)
    assert document.data["agents"][1]["skills"] == ["x", "y"]
    assert document.places["/agents/1/skills"].line == 5


def test_an_alias_bomb_stops_at_the_bound() -> None:
    lines = ["a: &a [1,1,1,1,1,1,1,1,1,1]"]
    for last, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{last}'] * 10)}]")
    document = read_document("\n".join(lines))
    assert [each.rule for each in document.problems] == [Rule.ALIAS]
    assert f"{MAX_NODES:,}" in document.problems[0].sentence


@pytest.mark.parametrize("text", ["a: &x [*x]\n", "a: *nowhere\n", "a: {<<: {b: 1}}\n"])
def test_an_alias_without_an_end_or_a_beginning_is_refused(text: str) -> None:
    assert [each.rule for each in read_document(text).problems] == [Rule.ALIAS]


@pytest.mark.parametrize(
    ("words", "rule", "advice"),
    [
        ("review: {autoApprove: yes}", Rule.TYPE, "write true"),
        ("review: {autoApprove: Off}", Rule.TYPE, "write false"),
        ("agents: [{id: 12}]", Rule.TYPE, "put it in quotes"),
        ("agents: [{id: a, name: true}]", Rule.TYPE, "put it in quotes"),
        ("budgets: {turns: 1_000}", Rule.TYPE, "write 1000"),
        ('budgets: {turns: "12"}', Rule.TYPE, "write 12"),
        ("budgets: {turns: 3.0}", Rule.TYPE, "write 3"),
        ("budgets: {turns: .inf}", Rule.AMBIGUOUS, "quote it"),
        ("checks: [{name: t, command: t, timeout_ms: 5m}]", Rule.TYPE, "write 300000"),
    ],
)
def test_a_value_that_yaml_takes_for_something_else_gets_advice(
    words: str, rule: Rule, advice: str
) -> None:
    found = checked(f"version: 0.2\n{words}\n")
    errors = found.errors
    assert [each.rule for each in errors] == [rule]
    assert advice in errors[0].suggestion


def test_words_that_were_booleans_once_are_texts() -> None:
    flow = checked("version: 0.2\nagents: [{id: on, name: no, role: yes}]\n").sound()
    assert (flow.agents[0].id, flow.agents[0].name, flow.agents[0].role) == ("on", "no", "yes")


def test_a_number_that_two_versions_read_differently_is_a_warning() -> None:
    found = checked("version: 0.2\nbudgets: {turns: 010}\ninteractions: []\n")
    flow = found.sound()
    assert flow.budgets
    assert flow.budgets.turns == 10
    assert (Rule.AMBIGUOUS, Severity.WARNING) in [(p.rule, p.severity) for p in found.problems]


def test_a_key_with_nothing_behind_it_counts_as_absent() -> None:
    flow = checked("version: 0.2\nagents:\n  - id: a\n    rules:\n    # - one\nreview:\n").sound()
    assert flow.agents[0].rules == ()
    assert flow.review is None
