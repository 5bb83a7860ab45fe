"""Answers that are still good."""

from __future__ import annotations

from typing import Any

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.caching import Caching
from agentcanvas.hub.journal import Choice, ListJournal
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.kinds import (
    Kind,
    TaskAssign,
)
from agentcanvas.protocol.limits import AcpPerformance
from agentcanvas.protocol.values import freeze
from tests.hub.helpers import TIME
from tests.hub.scripted import (
    Reply,
    Script,
    failing,
    well,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("H4", "D31")]


def question(sender: str = "a", task: str = "t1", text: str = "x", **fields: Any) -> Envelope:
    body = TaskAssign(task_id=task, task_type="lint", input=freeze(text))
    return Envelope(
        id=f"{sender}-{task}",
        kind=Kind.TASK_ASSIGN,
        time=TIME,
        sender=AgentRef(sender),
        recipient=AgentRef("b"),
        body=body,
        **fields,
    )


@pytest.mark.req("L1")
async def test_only_what_is_declared_cacheable_is_recalled_for_an_hour(
    clock: VirtualClock,
) -> None:
    script, journal = Script(well), ListJournal()
    asking = Caching(script, lambda *asked: asked == ("b", "lint"), clock, journal=journal)
    first = await asking.request(question())
    again = await asking.request(question(task="t2"))
    assert len(script.asked) == 1
    assert (again.envelope.reply_to, again.envelope.task_id) == ("a-t2", "t2")
    assert first.envelope.id != again.envelope.id
    assert not await again.ack()
    assert journal.choices == [Choice.RECALLED]
    await asking.request(question(text="y", task="t3"))
    await asking.request(question(sender="z"))  # nobody sees what somebody else asked for
    await asking.request(question(task="t4", session="run-1"))
    assert len(script.asked) == 4
    await clock.advance(3599)
    await asking.request(question(task="t5"))
    assert len(script.asked) == 4
    await clock.advance(2)
    await asking.request(question(task="t6"))
    assert len(script.asked) == 5


@pytest.mark.req("L1")
@pytest.mark.parametrize(
    ("declared", "said", "enabled"),
    [(False, well, True), (True, failing(), True), (True, well, False)],
)
async def test_nothing_else_is_cached(
    clock: VirtualClock, declared: bool, said: Reply, enabled: bool
) -> None:
    script = Script(said)
    settings = AcpPerformance(enable_caching=enabled)
    asking = Caching(script, lambda *_: declared, clock, settings=settings)
    for number in range(3):
        await asking.request(question(task=f"t{number}"))
    assert len(script.asked) == 3
    assert len(asking.cache) == 0
