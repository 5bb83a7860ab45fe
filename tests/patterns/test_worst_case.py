"""Nobody can make manager_worker ask more often than it says beforehand (D19)."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.pattern import Answer, Ends, Fate, Measure, Size
from agentcanvas.patterns.manager_worker import MANAGER, WORKER, ManagerWorker, Options
from agentcanvas.patterns.scripted import ScriptedStage
from agentcanvas.protocol.plan import Plan, PlannedTask
from agentcanvas.protocol.records import FailureClass

pytestmark = pytest.mark.req("D19")

MOST = 4
FATES = st.sampled_from([Fate.DONE, Fate.REJECTED, Fate.FAILED, Fate.TIMED_OUT])
FAILURES = st.sampled_from([None, FailureClass.TIMEOUT, FailureClass.TURN_LIMIT])


class Adversary:
    """A team that plans too much, nonsense or the same again, and seldom ends well."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self._plans = 0

    def __call__(self, to: str, message: str) -> str | Answer[None]:
        draw = self._data.draw
        if to == "boss" and "Split this request" in message:
            self._plans += 1
            kind = draw(st.sampled_from(["good", "good", "nonsense", "unknown", "big"]))
            if kind == "nonsense":
                return "no idea"
            count = MOST + 1 if kind == "big" else draw(st.integers(1, MOST))
            who = "nobody" if kind == "unknown" else "ann"
            tasks = tuple(
                PlannedTask(f"t{self._plans}.{n}", who, "do it", scope=(f"f{n}",))
                for n in range(count)
            )
            return msgspec.json.encode(Plan(tasks)).decode()
        if to == "boss":
            return "so it is"
        return Answer(to, "", draw(FATES), "because", failure=draw(FAILURES))


@given(st.data(), st.integers(1, 3), st.booleans(), st.integers(0, MOST))
def test_the_worst_case_is_never_passed(
    data: st.DataObject, rounds: int, managed: bool, ready: int
) -> None:
    stage = ScriptedStage(
        Adversary(data),
        measures=[Measure("tests_passed", 0, holds=data.draw(st.booleans())) for _ in range(99)],
        ends=Ends(rounds=rounds),
    )
    plan = tuple(PlannedTask(f"r{n}", "ann", "do it", scope=(f"f{n}",)) for n in range(ready))
    options = Options(max_tasks=MOST, plan=Plan(plan) if plan else None)
    cast = {WORKER: ("ann",)} | ({MANAGER: ("boss",)} if managed else {})
    anyio.run(ManagerWorker().run, stage, cast, "mend it", options)
    asked = sum(said.verb in {"ask", "task"} for said in stage.record)
    size = Size(players={role: len(agents) for role, agents in cast.items()}, tasks=ready)
    size = msgspec.structs.replace(size, rounds=rounds)
    assert asked <= ManagerWorker().most(size, options).turns
