"""What is on a tape, and what is made of one that is damaged or wants too much."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.cassette import Replaying, Tape, tape_folder, turn_key
from agentcanvas.agents.cassette.replaying import drift_of
from agentcanvas.agents.cassette.tape import Answer, Take
from agentcanvas.agents.runtime import Outcome
from agentcanvas.errors import ValidationError
from agentcanvas.protocol.records import TextEvent
from tests.agents.conftest import Events, turn


def take(**more: object) -> Take:
    plain = {
        "turn_id": "i1/ask:1",
        "agent": "coder-1",
        "prompt": "Do it.",
        "answer": Answer(outcome=Outcome.OK, text="done"),
    }
    return Take(**(plain | more))  # type: ignore[arg-type]


@pytest.fixture
def tape(tmp_path: Path) -> Tape:
    return Tape(tmp_path / "cassette")


async def test_a_turn_without_files_is_played_back(
    tape: Tape, tmp_path: Path, events: Events
) -> None:
    tape.write(take(events=(TextEvent(text="hm", ts=1, seq=1),)))
    result = await Replaying(tape, tmp_path).run(turn(), events)
    assert result.text == "done"
    assert [event.text for event in events.of(TextEvent)] == ["hm"]
    assert list(tape.takes()) == [("coder-1", "i1/ask:1")]


async def test_a_turn_that_failed_fails_again(tape: Tape, tmp_path: Path, events: Events) -> None:
    tape.write(take(answer=Answer(outcome=Outcome.TIMEOUT, error="too late")))
    result = await Replaying(tape, tmp_path).run(turn(), events)
    assert (result.outcome, result.error) == (Outcome.TIMEOUT, "too late")


async def test_an_answer_that_no_longer_has_the_form_is_a_drift(
    tape: Tape, tmp_path: Path, events: Events
) -> None:
    tape.write(take())
    asked = turn(form=JsonForm({"type": "object"}))
    result = await Replaying(tape, tmp_path).run(asked, events)
    assert "another form of answer" in result.error


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("run_20260101_000000/x", "run_20270203_010203_a1/x"),
        ("5 passed in 0.03s", "5 passed in 12.5s"),
        ("at 0123abcd now", "at fedcba98 now"),
        ("in /tmp/pytest-1/a", "in /tmp/pytest-2/b"),
    ],
)
def test_what_passes_with_a_run_is_no_drift(then: str, now: str) -> None:
    assert drift_of(take(prompt=then), turn(prompt=now)) == ""


def test_a_drift_names_the_line() -> None:
    said = drift_of(take(prompt="a\nb"), turn(prompt="a\nc"))
    assert said == "line 2 of the prompt was 'b' and is 'c'"
    assert "line 2" in drift_of(take(prompt="a"), turn(prompt="a\nmore"))


async def test_a_turn_that_was_not_recorded_is_named(
    tape: Tape, tmp_path: Path, events: Events
) -> None:
    result = await Replaying(tape, tmp_path).run(turn(), events)
    assert "no recording of i1/ask:1 by coder-1" in result.error


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"turn_id": 3}', "\ud800"])
async def test_a_damaged_recording_is_a_failed_turn(
    tape: Tape, tmp_path: Path, events: Events, damage: str
) -> None:
    tape.write(take())
    (path,) = tape.folder.glob("*/*.json")
    path.write_text(damage, "utf-8", "surrogatepass")
    result = await Replaying(tape, tmp_path).run(turn(), events)
    assert result.outcome is Outcome.FAILED
    assert "cannot be read" in result.error


async def test_a_link_in_place_of_a_recording_is_not_followed(
    tape: Tape, tmp_path: Path, events: Events
) -> None:
    tape.write(take())
    (path,) = tape.folder.glob("*/*.json")
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert "is a link" in (await Replaying(tape, tmp_path).run(turn(), events)).error


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "-x", "a\0", "x" * 101])
def test_a_cassette_has_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="no name for a cassette"):
        tape_folder(tmp_path, name)


@given(st.text(), st.text())
def test_turns_have_files_of_their_own(one: str, other: str) -> None:
    assert (
        (turn_key(one) == turn_key(other))
        == (one.encode("utf-8", "replace") == other.encode("utf-8", "replace"))
        if one and other
        else True
    )


def test_a_recording_can_be_read_in_a_diff(tape: Tape) -> None:
    tape.write(take(prompt="two\nlines"))
    (path,) = tape.folder.glob("*/*.json")
    assert json.loads(path.read_text())["prompt"] == "two\nlines"
    assert path.read_text().count("\n") > 5
