"""A plan on many agents: how near a run comes to the shortest schedule there is.

The agents sleep, on the real clock, in the real engine: whatever is over the shortest is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from unittest.mock import patch

import anyio

from agentcanvas.agents.runtime import Turn
from agentcanvas.app import office
from agentcanvas.app.office import open_engine
from agentcanvas.pattern import Ask, Cast, Outcome, Role, Work
from agentcanvas.protocol.plan import Dependency
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.stage import RunStage
from bench.harness import Contender, Contest, Figure, at_most
from bench.runs import NoOptions, follow, make_repository

TASKS, AGENTS, TASK_S = 200, 20, 0.2
LAYERS = TASKS // AGENTS
BOUND_S = max(LAYERS * TASK_S, TASKS * TASK_S / AGENTS)
"""The critical path, or all the work on all the agents: no schedule is shorter."""

TEAM = """
version: 0.2
agents:
{agents}
interactions:
  - id: work
    patternId: manager_worker
    roles: {{worker: [{names}]}}
    data: {{termination: [{{type: max_rounds, rounds: 1}}]}}
"""


async def work(turn: Turn) -> str:
    """Take 200 ms, and leave a file where there is a place for it."""
    await anyio.sleep(TASK_S)
    if turn.place is not None:
        (turn.place.tree / f"{turn.task_id}.txt").write_text("done\n")
    return "done"


class Layers:
    """A pattern that has 200 tasks done in layers of 20, and tells how long that took.

    As tasks each waits for one of the layer before, and comes to a candidate: a sandbox, a diff,
    evidence. As questions a whole layer waits for the one before.
    """

    id = "manager_worker"
    options = NoOptions
    roles = (Role("worker", "works", most=None, writes=True),)

    def __init__(self, *, as_tasks: bool) -> None:
        self.seconds = 0.0
        self._as_tasks = as_tasks

    async def run(self, stage: RunStage, cast: Cast, request: str, options: NoOptions) -> Outcome:
        """Have everything done."""
        del request, options
        agents = cast["worker"]
        layers = [[Ask(agent, "work") for agent in agents] for _ in range(LAYERS)]
        if self._as_tasks:
            layers = [[_task(agents, number) for number in range(TASKS)]]
        begun = perf_counter()
        for layer in layers:
            for each in await stage.ask_all(layer):
                assert each.done, each.reason
        self.seconds = perf_counter() - begun
        return Outcome("done", done=True)


def _task(agents: Sequence[str], number: int) -> Ask:
    layer, place = divmod(number, AGENTS)
    before = (layer - 1) * AGENTS + (place + 1) % AGENTS
    after = (Dependency(f"t{before}"),) if layer else ()
    return Ask(agents[place], "work", Work(f"t{number}", after=after), land=False)


async def times_the_bound(place: Callable[[], Path], *, as_tasks: bool) -> float:
    """Play it once; how many times as long it took as the shortest schedule there is."""
    names = [f"w{number}" for number in range(AGENTS)]
    runtime = '{kind: python, call: "bench.schedule:work"}'
    agents = "\n".join(f"  - {{id: {name}, role: worker, runtime: {runtime}}}" for name in names)
    order = RunOrder(
        flow="bench",
        flow_text=TEAM.format(agents=agents, names=", ".join(names)),
        request="x",
        max_parallel=AGENTS,
    )
    folder, pattern = place(), Layers(as_tasks=as_tasks)
    make_repository(folder)
    with patch.object(office, "PATTERNS", (pattern,)):
        async with open_engine(folder, functions=dict.fromkeys(names, work)) as (engine, _):
            await follow(engine, await engine.start(order))
    assert pattern.seconds, "the run did not come to its end"
    return pattern.seconds / BOUND_S


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bar of the schedule."""
    del quick
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        numbers = count()

        def place() -> Path:
            path = Path(name) / str(next(numbers))
            path.mkdir()
            return path

        yield Contest(
            name="200 tasks of 200 ms on 20 agents",
            figure=Figure("times the shortest schedule", better="lower"),
            contenders=[
                Contender(
                    "asked as questions",
                    partial(times_the_bound, place, as_tasks=False),
                    bar=at_most(1.15),
                ),
                Contender(
                    "as tasks: sandbox, diff, evidence",
                    partial(times_the_bound, place, as_tasks=True),
                    bar=at_most(1.15),
                ),
            ],
            note=f"the shortest is {BOUND_S:g} s; max_parallel {AGENTS}; what is over it is ours, "
            "and for tasks also git's",
        )
