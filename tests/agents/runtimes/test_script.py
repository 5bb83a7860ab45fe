"""A scripted agent does the same every time, and finds its steps by the turn, not by a count."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.limited import Limited
from agentcanvas.agents.runtime import Outcome, Turn
from agentcanvas.agents.runtimes.script import Address, ScriptRuntime, read_script
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.protocol.forms import StandardResponse, parse, write
from agentcanvas.protocol.records import (
    ChangeStatus,
    FailureClass,
    FileChangeEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from agentcanvas.sandbox.confine import Confinement, View
from tests.agents.conftest import Events, nobody_holds, turn

pytestmark = pytest.mark.anyio


def script(*turns: dict[str, Any]) -> Any:
    return read_script({"turns": list(turns)})


def played(*steps: dict[str, Any], clock: VirtualClock | None = None) -> ScriptRuntime:
    """Give the runtime of a script for task T1."""
    return ScriptRuntime(script({"task": "T1", "steps": list(steps)}), clock or VirtualClock())


async def test_the_last_thing_said_is_the_answer(events: Events) -> None:
    runtime = played({"say": "I begin"}, {"say": "done"})
    result = await runtime.run(turn(task_id="T1"), events)
    assert (result.outcome, result.text) == (Outcome.OK, "done")
    assert [event.text for event in events.of(TextEvent)] == ["I begin", "done"]


async def test_data_is_said_as_json_and_read_in_the_form_asked_for(events: Events) -> None:
    runtime = played({"say": {"score": 7}})
    form = JsonForm({"type": "object", "required": ["score"]})
    result = await runtime.run(turn(task_id="T1", form=form), events)
    assert (result.text, result.value) == ('{"score":7}', {"score": 7})


async def test_files_are_written_replaced_and_deleted(place: View, events: Events) -> None:
    (place.tree / "old.txt").write_text("one two")
    (place.tree / "gone.txt").write_text("")
    runtime = played(
        {"edit": {"file": "src/new.py", "write": "x = 1\n"}},
        {"edit": {"file": "old.txt", "replace": "two", "with": "three"}},
        {"edit": {"file": "gone.txt", "delete": True}},
    )
    result = await runtime.run(turn(task_id="T1", place=place), events)
    assert result.outcome is Outcome.OK, result.error
    assert (place.tree / "src/new.py").read_text() == "x = 1\n"
    assert (place.tree / "old.txt").read_text() == "one three"
    assert not (place.tree / "gone.txt").exists()
    assert [(event.path, event.status) for event in events.of(FileChangeEvent)] == [
        ("src/new.py", ChangeStatus.ADDED),
        ("old.txt", ChangeStatus.MODIFIED),
        ("gone.txt", ChangeStatus.DELETED),
    ]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"file": "a.txt", "replace": "x", "with": "y"}, "occurs 2 times in a.txt"),
        ({"file": "a.txt", "replace": "z", "with": "y"}, "occurs 0 times in a.txt"),
        ({"file": "b.txt", "replace": "z", "with": "y"}, "b.txt cannot be edited"),
        ({"file": "b.txt", "delete": True}, "b.txt is not there to be deleted"),
        ({"file": "link/b.txt", "write": "x"}, "leads out of the work folder by a link"),
        ({"file": "link.txt", "write": "x"}, "leads out of the work folder by a link"),
    ],
)
async def test_an_edit_that_cannot_be_made_fails_the_turn(
    place: View, events: Events, edit: dict[str, Any], words: str
) -> None:
    (place.tree / "a.txt").write_text("x x")
    (place.tree / "link").symlink_to(place.home)
    (place.tree / "link.txt").symlink_to(place.home / "b.txt")
    result = await played({"edit": edit}).run(turn(task_id="T1", place=place), events)
    assert result.outcome is Outcome.FAILED
    assert words in result.error
    assert list(place.home.iterdir()) == []


@pytest.mark.req("D8")
async def test_there_is_nothing_to_edit_without_files_of_its_own(
    place: View, events: Events
) -> None:
    runtime = played({"edit": {"file": "a.txt", "write": "x"}})
    for where in (None, replace(place, writable=False)):
        result = await runtime.run(turn(task_id="T1", place=where), events)
        assert "a.txt cannot be edited" in result.error
    assert list(place.tree.iterdir()) == []
    shutil.rmtree(place.tree)
    result = await runtime.run(turn(task_id="T1", place=place), events)
    assert "is gone; prepare the sandbox again" in result.error


async def test_commands_run_confined_and_are_on_record(
    strongest: Confinement, place: View, events: Events
) -> None:
    steps = [{"run": "echo hi; echo ho >&2; touch made"}, {"run": "true"}]
    runtime = ScriptRuntime(script({"task": "T1", "steps": steps}), SystemClock(), strongest)
    result = await runtime.run(turn(task_id="T1", place=place), events)
    assert result.outcome is Outcome.OK, result.error
    assert (place.tree / "made").exists()
    call, done = events.of(ToolCallEvent)[0], events.of(ToolResultEvent)[0]
    assert bytes(call.input) == b'{"command":"echo hi; echo ho >&2; touch made"}'
    assert sorted(done.output.split()) == ["hi", "ho"]
    assert (done.exit_code, done.failed) == (0, False)


@pytest.mark.parametrize("may_fail", [True, False])
async def test_a_failing_command_fails_the_turn_unless_it_may(
    strongest: Confinement, place: View, events: Events, may_fail: bool
) -> None:
    steps = [{"run": {"command": "echo no; exit 3", "may_fail": may_fail}}, {"say": "done"}]
    runtime = ScriptRuntime(script({"task": "T1", "steps": steps}), SystemClock(), strongest)
    result = await runtime.run(turn(task_id="T1", place=place), events)
    assert events.of(ToolResultEvent)[0].exit_code == 3
    if may_fail:
        assert (result.outcome, result.text) == (Outcome.OK, "done")
    else:
        assert (result.outcome, result.exit_code) == (Outcome.FAILED, 3)
        assert result.error == "'echo no; exit 3' ended with exit code 3: no."


async def test_the_report_says_of_a_red_command_that_it_was_allowed_to_fail(
    strongest: Confinement, place: View, events: Events
) -> None:
    steps = [{"run": {"command": "exit 3", "may_fail": True}}, {"run": "true"}, {"say": "done"}]
    runtime = ScriptRuntime(script({"task": "T1", "steps": steps}), SystemClock(), strongest)
    result = await runtime.run(turn(task_id="T1", place=place, form=StandardResponse), events)
    assert isinstance(result.value, StandardResponse)
    assert result.value.actions == (
        "ran exit 3: exit code 3 (allowed to fail)",
        "ran true: exit code 0",
    )


@pytest.mark.req("H10")
async def test_cancelling_a_command_leaves_nothing(
    strongest: Confinement, place: View, events: Events
) -> None:
    command = "exec 9> lock; flock -s 9; (setsid sleep 600 &); echo up > ready; sleep 600"
    ready = anyio.Path(place.tree / "ready")
    os.mkfifo(ready)  # whoever reads it waits for whoever writes
    steps = [{"run": command}]
    runtime = ScriptRuntime(script({"task": "T1", "steps": steps}), SystemClock(), strongest)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.run, turn(task_id="T1", place=place), events)
        assert await ready.read_text() == "up\n"
        assert not nobody_holds(place.tree / "lock"), "the trial must be able to fail"
        tasks.cancel_scope.cancel()
    assert nobody_holds(place.tree / "lock")


async def test_without_a_confinement_nothing_is_run(place: View, events: Events) -> None:
    result = await played({"run": "true"}).run(turn(task_id="T1", place=place), events)
    assert "there is no confinement here" in result.error


@pytest.mark.req("D5")
async def test_waiting_is_on_the_clock(clock: VirtualClock, events: Events) -> None:
    runtime = played({"wait": 3600}, {"say": "done"}, clock=clock)
    assert (await runtime.run(turn(task_id="T1"), events)).text == "done"
    assert clock.monotonic() == 3600


async def test_a_limit_ends_a_wait(clock: VirtualClock, events: Events) -> None:
    runtime = Limited(played({"say": "hm"}, {"wait": 3600}, clock=clock), clock)
    result = await runtime.run(turn(task_id="T1", timeout_s=60), events)
    assert (result.outcome, result.text, clock.monotonic()) == (Outcome.TIMEOUT, "hm", 60)


async def test_a_failure_can_be_played_with_its_class(events: Events) -> None:
    runtime = played({"say": "hm"}, {"fail": {"class": "rate_limit", "message": "Too many."}})
    result = await runtime.run(turn(task_id="T1"), events)
    assert (result.outcome, result.error_class) == (Outcome.FAILED, FailureClass.RATE_LIMIT)
    assert (result.error, result.text) == ("Too many.", "hm")


async def test_another_member_can_be_asked(events: Events) -> None:
    async def ask_member(asking: Turn, to: str, text: str) -> str:
        return f"{asking.agent_id} asked {to}: {text}"

    steps = [{"ask": {"to": "planner", "text": "Which port?"}}, {"say": "done"}]
    told = ScriptRuntime(
        script({"task": "T1", "steps": steps}), VirtualClock(), ask_member=ask_member
    )
    assert (await told.run(turn(task_id="T1"), events)).text == "done"
    assert events.of(ToolResultEvent)[0].output == "coder-1 asked planner: Which port?"
    alone = ScriptRuntime(script({"task": "T1", "steps": steps}), VirtualClock())
    assert "planner cannot be asked" in (await alone.run(turn(task_id="T1"), events)).error


@pytest.mark.req("T2")
async def test_a_six_part_response_is_written_from_what_was_done(
    place: View, events: Events
) -> None:
    runtime = played({"edit": {"file": "a.py", "write": "x"}}, {"say": "Add a.py"})
    asked = turn(task_id="T1", place=place, form=StandardResponse)
    result = await runtime.run(asked, events)
    assert result.ok
    assert result.value == parse(result.text, StandardResponse)
    assert result.value.intent == "Add a.py"
    assert result.value.actions == ("added a.py",)
    assert result.value.done


@pytest.mark.req("T2")
async def test_a_response_that_was_said_is_taken_as_it_is(events: Events) -> None:
    said = write(StandardResponse(intent="Own words", plan=("Speak",)))
    result = await played({"say": said}).run(turn(task_id="T1", form=StandardResponse), events)
    assert result.text == said


# --- addresses ----------------------------------------------------------------------------------


TEAM = script(
    {"task": "T1", "steps": [{"say": "T1"}]},
    {"task": "T1", "revision": 1, "steps": [{"say": "T1 again"}]},
    {"task": "T2", "steps": [{"say": "T2"}]},
    {"task": "T2", "attempt": 2, "steps": [{"say": "T2 after a crash"}]},
    {"role": "planner", "turn": 1, "steps": [{"say": "plan"}]},
    {"turn": 1, "steps": [{"say": "first"}]},
    {"turn": 2, "steps": [{"say": "second"}]},
)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"task_id": "T1"}, "T1"),
        ({"task_id": "T1", "attempt": 3}, "T1"),
        ({"task_id": "T1", "revision": 1, "number": 9}, "T1 again"),
        ({"task_id": "T2"}, "T2"),
        ({"task_id": "T2", "attempt": 2}, "T2 after a crash"),
        ({"role": "planner", "number": 1}, "plan"),
        ({"role": "planner", "number": 2}, "second"),
        ({"role": "judge", "number": 1}, "first"),
        ({"task_id": "T9", "number": 2}, "second"),
    ],
)
async def test_steps_are_found_by_the_turn_whatever_came_before(
    events: Events, asked: dict[str, Any], text: str
) -> None:
    runtime = ScriptRuntime(TEAM, VirtualClock())
    for _ in range(2):
        assert (await runtime.run(turn(**asked), events)).text == text


async def test_turns_at_the_same_time_find_their_own_steps(clock: VirtualClock) -> None:
    slow = {"task": "T1", "steps": [{"wait": 5}, {"say": "T1"}]}
    fast = {"task": "T2", "steps": [{"wait": 1}, {"say": "T2"}]}
    runtime = ScriptRuntime(script(slow, fast), clock)
    answers: dict[str, str] = {}

    async def ask(task: str) -> None:
        answers[task] = (await runtime.run(turn(task_id=task), Events())).text

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "T1")
        tasks.start_soon(ask, "T2")
    assert answers == {"T2": "T2", "T1": "T1"}
    assert list(answers) == ["T2", "T1"]


async def test_missing_steps_are_an_error_that_says_what_there_is(events: Events) -> None:
    runtime = ScriptRuntime(
        script({"task": "T1", "steps": [{"say": "x"}]}, {"turn": 1, "steps": [{"say": "x"}]}),
        VirtualClock(),
    )
    asked = turn(task_id="T7", revision=2, number=4)
    result = await runtime.run(asked, events)
    assert result.outcome is Outcome.FAILED
    assert result.error == (
        "The script of coder-1 has no steps for task T7, revision 2; add a turn to it. "
        "It has: task T1; turn 1."
    )
    result = await runtime.run(turn(role="planner", number=4), events)
    assert "no steps for turn 4 of role planner" in result.error


async def test_left_over_steps_are_named(events: Events) -> None:
    runtime = ScriptRuntime(TEAM, VirtualClock())
    await runtime.run(turn(task_id="T1"), events)
    await runtime.run(turn(number=2), events)
    left = runtime.left_over()
    assert len(left) == 5
    assert left[0].startswith(
        "The script has steps for task T1, revision 1, which was never asked for"
    )
    before = {Address(task="T2"), Address(turn=1)}
    assert len(runtime.left_over(before)) == 3
    everything = {each.address for each in TEAM.turns}
    assert runtime.left_over(everything) == ()
    assert runtime.taken == {Address(task="T1"), Address(turn=2)}


def test_an_address_can_be_kept_on_record() -> None:
    address = Address(task="T1", revision=2)
    assert msgspec.json.decode(msgspec.json.encode(address), type=Address) == address
