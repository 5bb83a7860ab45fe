"""What failed how, what helps, and who has to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import UNSET

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    ScopeViolation,
)
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.failures import (
    FailureType,
    Strategy,
    SuggestedAction,
    failure_in,
    failure_of,
)
from agentcanvas.hub.journal import Choice, ListJournal
from agentcanvas.hub.severity import REACTIONS, Attention, Reaction
from agentcanvas.hub.strategies import WithScope, WithSplit
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import (
    ErrorSeverity,
    Kind,
    TaskAssign,
    TaskConstraints,
)
from tests.hub.helpers import assign, of_kind
from tests.hub.scripted import (
    Script,
    error,
    failing,
    late,
    well,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("H4", "D31")]


async def test_a_scope_violation_is_told_with_the_right_scope(clock: VirtualClock) -> None:
    constraints = TaskConstraints(scope=("src/**", "docs/*.md"), testing_required=False)
    body = TaskAssign(task_id="t1", constraints=constraints)
    asked = of_kind(Kind.TASK_ASSIGN, "a", "b", body)
    script, journal = Script(failing("SCOPE_VIOLATION")), ListJournal()
    with pytest.raises(ScopeViolation, match=r"src/\*\*, docs/\*\.md"):
        await WithScope(script, journal=journal).request(asked)
    assert journal.choices == [Choice.GAVE_SCOPE]
    assert len(script.acks) == 1
    assert (await WithScope(Script(well)).request(asked)).envelope.kind is Kind.TASK_COMPLETE


async def test_a_task_that_is_too_large_is_split_and_its_answers_are_joined(
    clock: VirtualClock,
) -> None:
    async def split(asked: Envelope) -> list[Envelope]:
        return [assign("a", "b", f"{asked.task_id}.{part}") for part in (1, 2)]

    async def join(asked: Envelope, answers: Sequence[Delivery]) -> Delivery:
        for answer in answers[:-1]:
            await answer.ack()
        return answers[-1]

    script, journal = Script(failing("RESOURCE_LIMIT"), well), ListJournal()
    answer = await WithSplit(script, split, join, journal=journal).request(assign("a", "b", "t1"))
    assert answer.envelope.kind is Kind.TASK_COMPLETE
    assert [each.task_id for each, _ in script.asked] == ["t1", "t1.1", "t1.2"]
    assert journal.choices == [Choice.SPLIT]

    async def cannot(asked: Envelope) -> list[Envelope]:
        return []

    script = Script(failing("RESOURCE_LIMIT"))
    answer = await WithSplit(script, cannot, join).request(assign("a", "b", "t1"))
    assert answer.envelope.kind is Kind.TASK_FAIL
    script = Script(failing("RESOURCE_LIMIT"), well, failing())
    answer = await WithSplit(script, split, join).request(assign("a", "b", "t1"))
    assert answer.envelope.kind is Kind.TASK_FAIL
    assert len(script.acks) == 2


@pytest.mark.req("H5", "C13")
def test_each_failure_has_its_type_its_strategy_and_spec022s_word_for_it() -> None:
    asked = assign("a", "b", "t1")
    found = {
        name: failure_in(said(asked), asked)
        for name, said in {
            "timeout": late,
            "exception": failing("SOMETHING_ELSE"),
            "scope": failing("SCOPE_VIOLATION"),
            "resource": failing("RESOURCE_LIMIT"),
            "lost": error("AGENT_LOST", "RESOURCE_ERROR"),
            "final": failing(retry_possible=False),
        }.items()
    }
    assert {
        name: (each.error_type, each.strategy, each.suggested_action)
        for name, each in found.items()
        if each
    } == {
        "timeout": (FailureType.TIMEOUT, Strategy.RETRY_LONGER, SuggestedAction.RETRY),
        "exception": (FailureType.EXCEPTION, Strategy.RETRY_ONCE, SuggestedAction.RETRY),
        "scope": (FailureType.SCOPE_VIOLATION, Strategy.GIVE_SCOPE, SuggestedAction.MANUAL),
        "resource": (FailureType.RESOURCE_LIMIT, Strategy.SPLIT, SuggestedAction.MANUAL),
        "lost": (FailureType.RESOURCE_LIMIT, Strategy.REASSIGN, SuggestedAction.REASSIGN),
        "final": (FailureType.EXCEPTION, Strategy.RETRY_ONCE, SuggestedAction.ABORT),
    }
    refused = failure_of(ScopeViolation("outside"), asked)
    assert (refused.error_type, refused.task_id) == (FailureType.SCOPE_VIOLATION, "t1")


@pytest.mark.req("H9")
async def test_severity_decides_who_is_told_and_what_is_done() -> None:
    done: list[str] = []

    def doing(name: str) -> Callable[[Envelope], Any]:
        async def do(envelope: Envelope) -> None:
            done.append(name)

        return do

    journal = ListJournal()
    attention = Attention(journal, tell=doing("tell"), act=doing("act"), show=doing("show"))
    seen = {}
    for severity in (*ErrorSeverity, UNSET):
        done.clear()
        said = error("X", "EXECUTION_ERROR", severity)(assign("a", "b", "t1"))
        await attention.react(said)
        seen[severity] = list(done)
    assert seen == {
        ErrorSeverity.INFO: [],
        ErrorSeverity.WARNING: [],
        ErrorSeverity.ERROR: ["tell"],
        ErrorSeverity.CRITICAL: ["act", "show", "tell"],
        UNSET: ["tell"],
    }
    assert journal.choices.count(Choice.LOGGED) == 5
    assert Reaction.MAY_RETRY in REACTIONS[ErrorSeverity.WARNING]
    assert await attention.react(assign("a", "b", "t1")) == ()
