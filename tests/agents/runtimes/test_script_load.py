"""A script is read with all its problems at once, each with its place and a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcanvas.agents.runtimes.script import (
    Edit,
    Fail,
    Question,
    Run,
    Script,
    ScriptedTurn,
    Step,
    load_script,
    read_script,
)
from agentcanvas.errors import InvalidScript
from agentcanvas.protocol.records import FailureClass

TEXT = """\
turns:
  - task: T1
    steps:
      - say: I begin
      - edit: {file: src/a.py, write: "x = 1\\n"}
      - edit: {file: src/b.py, replace: old, with: new}
      - edit: {file: src/c.py, delete: true}
      - run: python -m pytest -q
      - run: {command: make lint, may_fail: true}
      - wait: 1.5
      - ask: {to: planner, text: Which port?}
  - task: T1
    revision: 1
    attempt: 2
    steps:
      - fail: {class: rate_limit, message: Too many requests}
  - role: planner
    turn: 1
    steps:
      - say: {tasks: [{task_id: T1}]}
  - turn: 2
    steps:
      - fail: No idea
"""


def problems_of(source: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidScript) as caught:
        read_script(source, "team.yaml")
    return caught.value.problems


def test_every_kind_of_step_and_address_is_read() -> None:
    script = read_script(TEXT)
    first = ScriptedTurn(
        task="T1",
        steps=(
            Step(say="I begin"),
            Step(edit=Edit(file="src/a.py", write="x = 1\n")),
            Step(edit=Edit(file="src/b.py", replace="old", with_="new")),
            Step(edit=Edit(file="src/c.py", delete=True)),
            Step(run=Run(command="python -m pytest -q")),
            Step(run=Run(command="make lint", may_fail=True)),
            Step(wait=1.5),
            Step(ask=Question(to="planner", text="Which port?")),
        ),
    )
    limit = Fail(message="Too many requests", error_class=FailureClass.RATE_LIMIT)
    second = ScriptedTurn(task="T1", revision=1, attempt=2, steps=(Step(fail=limit),))
    third = ScriptedTurn(role="planner", turn=1, steps=(Step(say={"tasks": [{"task_id": "T1"}]}),))
    fourth = ScriptedTurn(turn=2, steps=(Step(fail=Fail(message="No idea")),))
    assert script == Script(turns=(first, second, third, fourth))


def test_text_file_and_data_give_the_same_script(tmp_path: Path) -> None:
    file = tmp_path / "coder.yaml"
    file.write_text(TEXT)
    assert load_script(file) == read_script(TEXT)
    assert read_script({"turns": [{"task": "T1", "steps": [{"say": "hm"}]}]}) == read_script(
        "turns: [{task: T1, steps: [{say: hm}]}]"
    )


def test_all_problems_are_told_at_once_with_line_and_column() -> None:
    assert problems_of(
        """\
turns:
  - task: T1
    stepps: []
    steps:
      - sya: hm
      - wait: soon
      - edit: {file: 7}
  - task: T2
    steps: none
"""
    ) == (
        "3:5: stepps is not known here; did you mean steps?",
        "5:9: sya is not known here; did you mean say?",
        '6:15: wait must be a number, not "soon"',
        "7:22: file must be a text, not 7; put it in quotes",
        '9:12: steps must be a list, not "none"; write [none]',
    )


def test_what_the_parts_mean_together_is_checked_too() -> None:
    found = problems_of(
        """\
turns:
  - steps: [say: hm]
  - task: T1
    turn: 1
    steps: [say: hm]
  - task: T2
    role: coder
    steps: [say: hm]
  - turn: 1
    revision: 1
    steps: [say: hm]
  - task: T3
    steps: []
  - task: T4
    steps:
      - {say: hm, wait: 1}
      - {}
      - fail: no
      - say: never
  - task: T4
    steps: [say: hm]
  - task: T5
    steps:
      - edit: {file: ../out, write: x}
      - edit: {file: a, write: x, delete: true}
      - edit: {file: a}
      - edit: {file: a, replace: x}
"""
    )
    expected = [
        "2:5: a turn is named by its task or by its number",
        "3:5: a turn is named by its task or by its number",
        "7:11: a task needs no role; leave role out",
        "10:15: only a task has revisions",
        "12:5: task T3 has no step; add - say: …",
        "16:9: a step does one thing, not say and wait",
        "17:9: a step does one thing, not nothing; use say, edit, run, wait, fail, ask",
        "18:9: 1 steps after fail are never done; remove them",
        "20:5: task T4 is there twice, first as turns[5]; keep one",
        "24:22: '../out' contains '..'",
        "25:15: an edit of a does one of write, replace and delete",
        "26:15: an edit of a does one of write, replace and delete",
        "27:15: replace and with belong together",
    ]
    assert len(found) == len(expected), found
    for sentence, beginning in zip(found, expected, strict=True):
        assert sentence.startswith(beginning)


def test_problems_of_data_are_placed_by_pointer() -> None:
    (problem,) = problems_of({"turns": [{"task": "T1", "steps": [{"wait": -1}]}]})
    assert problem.startswith("/turns/0/steps/0/wait: wait cannot be -1")


@pytest.mark.parametrize("text", ["", "hm", "- a", "turns: [", "turns: 7", b"\xff", "turns: !!x 1"])
def test_what_is_no_script_at_all_is_told_in_a_sentence(text: str | bytes) -> None:
    assert len(problems_of(text)) >= 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidScript, match="No such file or directory; check its path"):
        load_script(tmp_path / "coder.yaml")


def test_the_error_lists_every_problem() -> None:
    with pytest.raises(InvalidScript) as caught:
        read_script("turns:\n  - task: T1\n    steps: []\n", "team.yaml")
    assert str(caught.value) == (
        "team.yaml is not a script that can be played:\n- 2:5: task T1 has no step; add - say: …"
    )
