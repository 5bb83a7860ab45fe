"""A task that came as a message in any dialect becomes a packet."""

from __future__ import annotations

import msgspec
import pytest

from agentcanvas.protocol.kinds import (
    AttemptSummary,
    ContextFile,
    TaskAssign,
    TaskConstraints,
    TaskContext,
)
from agentcanvas.protocol.packet import Packet, Rule, Skill, packet_of

pytestmark = pytest.mark.req("S9")

FILE = ContextFile("docs/api.md", "the contract", ("Logout",))
ATTEMPT = AttemptSummary(1, "changes_requested", "Add a test.")


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def test_all_that_a_message_says_is_in_the_packet() -> None:
    assign = TaskAssign(
        task_id="T1",
        input=raw("Add a logout endpoint."),
        context=TaskContext((FILE,), (FILE, FILE), (ATTEMPT,)),
        constraints=TaskConstraints(
            scope=("src/**",),
            testing_required=True,
            must_not_break=("login",),
            style_guide="Short functions.",
        ),
        acceptance_criteria=("pytest passes",),
    )
    rules, skills = (Rule("r", "x"),), (Skill("s", "y"),)
    assert packet_of(assign, rules=rules, skills=skills) == Packet(
        task="Add a logout endpoint.",
        task_id="T1",
        scope=("src/**",),
        testing_required=True,
        must_not_break=("login",),
        acceptance_criteria=("pytest passes",),
        specs=(FILE,),
        reference_files=(FILE, FILE),
        style_guide="Short functions.",
        previous_attempts=(ATTEMPT,),
        rules=rules,
        skills=skills,
    )


def test_data_for_a_task_is_shown_as_data() -> None:
    assign = TaskAssign(
        task_type="code_review", input=raw({"pr": 7}), requirements=raw(["be strict"])
    )
    assert packet_of(assign).task == ('{\n  "pr": 7\n}\n\nRequirements:\n[\n  "be strict"\n]')


def test_a_message_that_says_next_to_nothing_has_a_task_all_the_same() -> None:
    assert packet_of(TaskAssign(task_type="code_review")) == Packet(task="code_review")
    assert packet_of(TaskAssign()).scope is None
