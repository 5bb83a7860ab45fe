"""No team can make a flow need more than ``flow bounds`` says beforehand (D19)."""

from __future__ import annotations

import random
import re
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from agentcanvas.app.patterns import KNOWN
from agentcanvas.clock import VirtualClock
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.emit import lines
from agentcanvas.flows.model import Flow
from agentcanvas.flows.settle import settle
from agentcanvas.flows.subgraph import flow_of
from agentcanvas.pattern import Ask, Fate, Measure
from agentcanvas.patterns import PATTERNS
from agentcanvas.protocol.records import FailureClass, ProposalRef
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.offstage import Scope
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import Done, RunStage, Settled
from agentcanvas.runs.staging import Staging
from agentcanvas.store import Store
from tests.runs.fake_desk import STREAM, FakeDesk

pytestmark = pytest.mark.req("D19", "I4")

IDS = [pattern.id for pattern in PATTERNS]
MOST_TURNS = 5_000
"""More than this proves nothing new and takes long."""


class Adversary(FakeDesk):
    """Nobody here wants the interaction to end; answers mostly have their form.

    One that is ``stubborn`` always has to be told the form once, and never fails.
    """

    def __init__(self, seed: int, clock: VirtualClock, *, stubborn: bool = False) -> None:
        super().__init__(clock=clock)
        self._random = random.Random(seed)
        self._chance = 0.0 if stubborn else self._random.choice([0.0, 0.05, 0.3])
        self._stubborn = stubborn
        self._words = [""]
        """What the message speaks of: topics, tags and names are found there."""
        self.turns = 0
        self.told_count = 0

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        self.turns += 1
        self._words = re.findall(r"[\w-]+", ask.message) or [""]
        if self._random.random() < 0.05 and self._clock is not None:
            await self._clock.sleep(self._random.choice([1, 100]))
        await anyio.lowlevel.checkpoint()
        if self._random.random() < self._chance:
            fate = self._random.choice([Fate.FAILED, Fate.REJECTED, Fate.TIMED_OUT])
            failure = self._random.choice([None, FailureClass.TIMEOUT, FailureClass.TURN_LIMIT])
            return Done(Settled("", fate, "because", failure=failure))
        if schema is None:
            return Done(self._in_words(ask))
        first = step.endswith("try:1") or "/try:1/" in step
        if (self._stubborn and first) or self._random.random() < self._chance:
            return Done(Settled('{"no": 1}', value=msgspec.Raw(b'{"no": 1}')))
        raw = msgspec.json.encode(self._fitting(schema, schema.get("$defs", {})))
        return Done(Settled(raw.decode(), value=msgspec.Raw(raw)))

    def _in_words(self, ask: Ask) -> Settled:
        text = f"{self._random.choice(['Question:', 'Instruction:', 'Solution:', ''])} {self.turns}"
        ref: ProposalRef | None = None
        if not ask.land and ask.work is not None:
            ref = ProposalRef(
                run_id="r", agent_id=ask.to, proposal_id=f"c{self.turns}", generation=0, patch="p"
            )
        return Settled(text, value=UNSET, proposal=ref)

    def _fitting(self, schema: dict[str, Any], definitions: dict[str, Any], deep: int = 0) -> Any:
        """Something of this schema."""
        pick = self._random
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._fitting(definitions[name], definitions, deep)
        if "enum" in schema or "const" in schema:
            return pick.choice(schema.get("enum") or [schema["const"]])
        if "anyOf" in schema:
            return self._fitting(pick.choice(schema["anyOf"]), definitions, deep)
        match schema.get("type"):
            case "object":
                wanted = set(schema.get("required", ()))
                return {
                    key: self._fitting(each, definitions, deep + 1)
                    for key, each in schema.get("properties", {}).items()
                    if key in wanted or pick.random() < 0.7
                }
            case "array" if "items" in schema and schema["items"] is not False:
                count = pick.randint(max(1, schema.get("minItems", 0)), 3)
                return [self._fitting(schema["items"], definitions, deep + 1) for _ in range(count)]
            case "array":
                return [self._fitting(each, definitions) for each in schema.get("prefixItems", ())]
            case "boolean":
                return pick.random() < 0.2
            case "integer" | "number":
                return pick.choice([schema.get("minimum", 0), 1])
            case "string":
                return pick.choice(["a", "result", f"x{self.turns}", pick.choice(self._words)])
            case _:
                return None

    async def tell(self, step: str, to: str, message: str, by: str = "") -> Done:
        del step, to, message, by
        self.told_count += 1
        return Done(result=True)

    async def measure(self, step: str, metric: str) -> Done:
        del step
        return Done(Measure(metric, 0, holds=False))


def flow_with(
    names: list[str],
    *,
    filled: str | None,
    rounds: int,
    deeper: str | None = None,
    hasty: bool = False,
    staffed: bool = False,
    works: bool = False,
) -> Flow | None:
    """These patterns one after the other; the first role that can be is played by another one.

    With ``deeper`` a role of that one is played by a third; with ``hasty`` all that can go on
    without an answer do; ``staffed`` has agents play what is built in otherwise; with ``works`` it
    is a role with tasks that another one plays.
    """
    agents: dict[str, Any] = {}
    interactions = []
    for index, name in enumerate(names, 1):
        info = KNOWN[name]
        nodes = {role.name: 1 for role in info.roles if role.system}
        made = flow_of(info, nodes if staffed else None)
        (interaction,) = made["interactions"]
        agents |= {agent["id"]: agent for agent in made["agents"]}
        interaction["id"] = f"i{index}"
        for end in interaction["data"]["termination"]:
            if end["type"] == "max_rounds":
                end["rounds"] = min(end["rounds"], rounds)
        interaction["review"] = {"reviewer": "person", "max_iterations": 1}
        if hasty and KNOWN[name].goes_on:
            interaction["data"]["sync"] = "async"
        interactions.append(interaction)
    outer = interactions[0]
    for name in (each for each in (filled, deeper) if each is not None):
        inner = flow_of(KNOWN[name])
        (part,) = inner["interactions"]
        part |= {"id": f"part-{name}", "review": {"reviewer": "person", "max_iterations": 1}}
        for end in part["data"]["termination"]:
            if end["type"] == "max_rounds":
                end["rounds"] = min(end["rounds"], rounds)
        agents |= {agent["id"]: agent for agent in inner["agents"]}
        if not _filled(outer, part, works=works):
            return None
        interactions.append(part)
        outer = part
    plain = {"version": 0.2, "agents": list(agents.values()), "interactions": interactions}
    found = check(read_document(lines(plain, 0).encode(), "flow.yaml"), KNOWN)
    return found.sound()


def _filled(outer: dict[str, Any], part: dict[str, Any], *, works: bool) -> bool:
    """Have the part play a role of the outer one, with work or without, if it has one."""
    writing = {role.name for role in KNOWN[outer["patternId"]].roles if role.writes}
    role = next((each for each in outer["roles"] if (each in writing) is works), None)
    if role is None or part["id"] in outer["roles"][role]:
        return False
    first, *rest = outer["roles"][role]
    outer["roles"][role] = [part["id"], *rest]
    outer["edges"] = [e for e in outer["edges"] if first not in (e["source"], e["target"])]
    return True


async def played(flow: Flow, seed: int, stubborn: bool = False) -> Adversary:
    clock = VirtualClock()
    desk = Adversary(seed, clock, stubborn=stubborn)
    interactions = settle(flow, KNOWN)
    staging = Staging(flow, interactions, Repertoire.of(PATTERNS))
    async with await Store.in_memory(clock=clock) as store:
        journal = await Journal.open(store, STREAM)
        meter = Meter(Budget(), clock)
        scope = Scope(desk, journal, meter, Slots(5), clock, staging.parts(lambda _: desk))
        for each in interactions:
            if not each.is_part:
                stage = RunStage(scope, staging.scene(each))
                pattern = staging.parts(lambda _: desk).pattern(each.pattern_id)
                await stage.perform(pattern, each.roles, "Wash up", staging.options(each))
    return desk


@settings(max_examples=60)
@given(
    names=st.lists(st.sampled_from(IDS), min_size=1, max_size=2),
    filled=st.none() | st.sampled_from(IDS),
    rounds=st.integers(1, 3),
    hasty=st.booleans(),
    staffed=st.booleans(),
    works=st.booleans(),
    stubborn=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_a_flow_never_needs_more_than_its_bound(
    *,
    names: list[str],
    filled: str | None,
    rounds: int,
    hasty: bool,
    staffed: bool,
    works: bool,
    stubborn: bool,
    seed: int,
) -> None:
    flow = flow_with(names, filled=filled, rounds=rounds, hasty=hasty, staffed=staffed, works=works)
    if flow is None:
        return
    total = bounds(flow, KNOWN).total
    assert total.turns is not None
    assert total.messages is not None
    if total.turns > MOST_TURNS * 20:
        return
    desk = anyio.run(played, flow, seed, stubborn)
    assert desk.turns <= total.turns
    assert 2 * desk.turns + desk.told_count <= total.messages


@settings(max_examples=40)
@given(
    chain=st.lists(st.sampled_from(IDS), min_size=3, max_size=3, unique=True),
    works=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_a_flow_of_interactions_two_deep_never_needs_more_than_its_bound(
    *, chain: list[str], works: bool, seed: int
) -> None:
    outer, filled, deeper = chain
    flow = flow_with([outer], filled=filled, deeper=deeper, rounds=1, works=works)
    if flow is None:
        return
    total = bounds(flow, KNOWN).total
    assert total.turns is not None
    assert total.messages is not None
    if total.turns > MOST_TURNS * 20:
        return
    desk = anyio.run(played, flow, seed)
    assert desk.turns <= total.turns
    assert 2 * desk.turns + desk.told_count <= total.messages


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("stubborn", [False, True], ids=["wavering", "stubborn"])
@pytest.mark.parametrize("staffed", [False, True], ids=["built in", "staffed"])
def test_no_pattern_needs_more_than_it_declares(
    name: str, *, rounds: int, stubborn: bool, staffed: bool
) -> None:
    flow = flow_with([name], filled=None, rounds=rounds, staffed=staffed)
    assert flow is not None
    total = bounds(flow, KNOWN).total
    assert total.turns is not None
    assert total.messages is not None
    for seed in range(4):
        desk = anyio.run(played, flow, seed, stubborn)
        assert desk.turns <= total.turns
        assert 2 * desk.turns + desk.told_count <= total.messages
