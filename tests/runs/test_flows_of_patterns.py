"""What a flow says of its interactions holds in real runs: parts, budgets, forms, verification."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_premises
from agentcanvas.clock import VirtualClock
from agentcanvas.hub.guard import Principal
from agentcanvas.protocol.kinds import Kind
from agentcanvas.runs.events import InteractionStarted, MessagePassed, TurnEnded, TurnStarted
from agentcanvas.runs.state import RunState, RunStatus
from tests.runs.workspaces import engine_on, order, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I1", "I2", "I4")]

TEAM = """\
version: 0.2
agents:
  - {id: ann, role: debater, runtime: {kind: python, call: "team:say", cwdMode: workspace}}
  - {id: bob, role: debater, runtime: {kind: python, call: "team:say", cwdMode: workspace}}
  - {id: eve, role: voter, runtime: {kind: python, call: "team:say", cwdMode: workspace}}
  - {id: fay, role: voter, runtime: {kind: python, call: "team:say", cwdMode: workspace}}
interactions:
"""
DEBATE = """\
  - id: debate
    patternId: debate_judge
    roles: {debater: [ann, bob], judge: %s}
    data:
      %s
      termination: [{type: max_rounds, rounds: 1}, {type: timeout_ms, ms: 600000}]
"""
VOTE = """\
  - id: vote
    patternId: majority_vote_with_tiebreak
    roles: {evaluator: [eve, fay]}
    data:
      params: {choices: [against, for], threshold: 0.5}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"README.md": "# Hi\n"})


def team(**replies: str | list[str]) -> dict[str, Callable[[Turn], str]]:
    everybody = {"ann": "", "bob": "", "eve": "", "fay": "", **replies}
    left = {who: list(r) if isinstance(r, list) else [r] for who, r in everybody.items()}

    def say(who: str) -> Callable[[Turn], str]:
        def reply(turn: Turn) -> str:
            del turn
            return left[who].pop(0) if len(left[who]) > 1 else left[who][0]

        return reply

    return {who: say(who) for who in left}


async def ran(root: Path, flow: str, replies: dict[str, Any]) -> tuple[RunState, list[Any]]:
    async with engine_on(root, functions=team(**replies)) as engine:
        run_id = await engine.start(order(flow, "Tabs?"))
        entries = [entry async for entry in engine.events(run_id)]
        return await engine.state(run_id), entries


FOR = json.dumps({"choice": "for", "reason": "it is shorter"})


async def test_a_role_is_played_by_another_interaction(root: Path) -> None:
    flow = TEAM + DEBATE % ("vote", "sync: req_res") + VOTE
    state, entries = await ran(root, flow, {"ann": "tabs", "bob": "spaces", "eve": FOR, "fay": FOR})
    assert (state.status, state.reason) == (RunStatus.DONE, "judge_decision: for")
    asked = [e.event.payload.to for e in entries if isinstance(e.event, TurnStarted)]
    assert asked[:2] == ["ann", "bob"]
    assert sorted(asked[2:]) == ["eve", "fay"]
    begun = [e.event.interaction_id for e in entries if isinstance(e.event, InteractionStarted)]
    assert begun == ["debate"], "a part is not played on its own"


@pytest.mark.req("D19")
async def test_the_budget_of_an_interaction_ends_it_and_says_so(root: Path) -> None:
    flow = TEAM + DEBATE % ("eve", "sync: req_res") + "    budgets: {turns: 2}\n"
    state, _ = await ran(root, flow, {"ann": "tabs", "bob": "spaces", "eve": FOR})
    assert (state.status, state.reason) == (RunStatus.STOPPED, "budget of debate: 2 turns")
    assert "spaces" in state.result


async def test_a_reply_has_the_message_form_of_the_flow_or_is_asked_for_once_more(
    root: Path,
) -> None:
    flow = TEAM + DEBATE % ("eve", "messageForm: structured_json")
    replies = {"ann": ["tabs!", '{"argument": "tabs"}'], "bob": '{"argument": "no"}', "eve": FOR}
    state, entries = await ran(root, flow, replies)
    assert state.reason == "judge_decision: for"
    texts = [e.event.payload.text for e in entries if isinstance(e.event, TurnStarted)]
    assert "not in the form structured_json" in texts[1]


@pytest.mark.parametrize(
    ("votes", "reason", "status"),
    [
        (["yes", "yes"], "judge_decision: for", RunStatus.DONE),
        (["yes", "no"], "cross_check_vote: 1 of 2 agree. because", RunStatus.STOPPED),
    ],
)
async def test_the_result_counts_when_those_who_check_it_agree(
    root: Path, votes: list[str], reason: str, status: RunStatus
) -> None:
    look = "verification: [sandbox_constraints, cross_check_vote, audit_log]"
    say = f"{look}\n      params: {{checkers: [ann, bob]}}"
    ballots = [json.dumps({"agree": vote == "yes", "reason": "because"}) for vote in votes]
    replies = {"ann": ["tabs", ballots[0]], "bob": ["spaces", ballots[1]], "eve": FOR}
    state, _ = await ran(root, TEAM + DEBATE % ("eve", say), replies)
    assert (state.reason, state.status) == (reason, status)


async def test_a_run_cut_off_within_a_part_goes_on_there(root: Path) -> None:
    flow = TEAM + DEBATE % ("vote", "sync: req_res") + VOTE
    functions = team(ann="tabs", bob="spaces", eve=FOR, fay=FOR)
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(flow, "Tabs?"))
        async for entry in engine.events(run_id):
            if isinstance(entry.event, TurnStarted) and entry.event.payload.to == "fay":
                break
    async with engine_on(root, functions=functions, resume=True) as engine:
        async for _ in engine.events(run_id):
            pass
        state = await engine.state(run_id)
    assert (state.status, state.reason) == (RunStatus.DONE, "judge_decision: for")


def log_of(root: Path) -> list[dict[str, Any]]:
    (file,) = (root / ".agentcanvas" / "logs" / "solo").glob("*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.req("V3")
async def test_the_steps_of_the_log_are_numbered_from_one_on(root: Path) -> None:
    flow = TEAM + DEBATE % ("eve", "sync: req_res")
    await ran(root, flow, {"ann": "tabs", "bob": "spaces", "eve": FOR})
    lines = log_of(root)
    assert [line["event"] for line in lines] == ["configured", *["step"] * 6, "terminated"]
    assert [line["step"] for line in lines if line["event"] == "step"] == [1, 2, 3, 4, 5, 6]
    assert lines[-1]["reason"] == "judge_decision: for"


@pytest.mark.req("V3", "I2")
async def test_a_flow_may_want_no_steps_in_the_log(root: Path) -> None:
    flow = TEAM + DEBATE % ("eve", "observability: {logs: false}")
    await ran(root, flow, {"ann": "tabs", "bob": "spaces", "eve": FOR})
    assert [line["event"] for line in log_of(root)] == ["configured", "terminated"]


@pytest.mark.req("V3", "I2")
async def test_logs_that_are_older_than_the_flow_wants_go_and_stay_away(root: Path) -> None:
    flow = TEAM + DEBATE % ("eve", "observability: {retain_days: 2}")
    replies = {"ann": "tabs", "bob": "spaces", "eve": FOR}
    await ran(root, flow, replies)
    (file,) = (root / ".agentcanvas" / "logs" / "solo").glob("*.jsonl")
    old = file.with_name("2020-01-01.jsonl")
    kept = file.with_name("mine.jsonl")
    for path in (old, kept):
        path.write_text("{}\n")
    await ran(root, flow, replies)
    assert file.exists()
    assert kept.exists()
    assert not old.exists()


AUCTION = """\
version: 0.2
agents:
  - {id: quick, role: worker, runtime: {kind: python, call: "team:say"}}
  - {id: slow, role: worker, runtime: {kind: python, call: "team:say"}}
interactions:
  - id: auction
    patternId: contract_net_auction
    roles: {bidder: [quick, slow]}
    data: {params: {bid_within_ms: 3000}}
review: {autoApprove: true, allowUnverified: true}
"""


REMOTE = "slow, role: worker, runtime: {kind: remote"


async def test_a_bid_that_comes_too_late_is_told_so_and_wins_nothing(root: Path) -> None:
    clock = VirtualClock(jumps=False)
    both_asked, stopped = anyio.Event(), anyio.Event()

    async def quick(turn: Turn) -> str:
        if not turn.task_id:
            return json.dumps({"propose": True, "cost": 9})
        await stopped.wait()
        return "done"

    async def slow(turn: Turn) -> str:
        del turn
        both_asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        raise AssertionError

    async with engine_on(root, clock=clock, functions={"quick": quick, "slow": slow}) as engine:
        run_id = await engine.start(order(AUCTION, "Wash up"))
        entries = []
        async for entry in engine.events(run_id):
            entries.append(entry)
            if isinstance(entry.event, TurnEnded) and clock.monotonic() == 0:
                # The quick one's bid is on record; only the slow one's is missing at the deadline.
                await both_asked.wait()
                await clock.advance(3)
        state = await engine.state(run_id)
    assert state.reason == "done: quick for 9"
    told = [e.event.payload for e in entries if isinstance(e.event, MessagePassed)]
    assert [(each.to, "late" in each.text) for each in told] == [("slow", True)]
    turns = [e.event for e in entries if isinstance(e.event, TurnEnded)]
    assert [turn.payload.reason for turn in turns if turn.actor == "slow"] == ["late"]


async def test_a_bid_that_nobody_has_taken_up_in_time_is_not_begun_later(root: Path) -> None:
    clock, lies = VirtualClock(jumps=False), []

    async def quick(turn: Turn) -> str:
        if not turn.task_id:
            return json.dumps({"propose": True, "cost": 9})
        lies.extend(await premises.hub.broker.waiting("slow"))
        return "done"

    flow = AUCTION.replace('slow, role: worker, runtime: {kind: python, call: "team:say"', REMOTE)
    async with open_premises(root, clock=clock, functions={"quick": quick}) as premises:
        await premises.hub.hub.greet(Principal("slow"))
        run_id = await premises.engine.start(order(flow, "Wash up"))
        missing = {(TurnStarted, "slow"), (TurnEnded, "quick")}
        async for entry in premises.engine.events(run_id):
            event = entry.event
            who = event.payload.to if isinstance(event, TurnStarted) else event.actor
            missing.discard((type(event), who))
            if not missing and clock.monotonic() == 0:
                await clock.advance(3)
    kinds = [envelope.kind for _, envelope in lies]
    assert (Kind.TASK_CANCEL in kinds, Kind.TASK_ASSIGN in kinds) == (True, False)


BOARD = """\
version: 0.2
agents:
  - {id: ann, role: worker, runtime: {kind: python, call: "team:say"}}
  - {id: bob, role: worker, runtime: {kind: python, call: "team:say"}}
interactions:
  - id: board
    patternId: blackboard_shared_state
    roles: {agent: [ann, bob]}
    data: {params: {picks: 2}}
review: {autoApprove: true, allowUnverified: true}
"""


@pytest.mark.req("D4")
async def test_a_board_does_not_wait_for_the_slow_one_and_a_run_cut_off_meanwhile_goes_on(
    root: Path,
) -> None:
    first_life = True

    def ann(turn: Turn) -> str:
        willing = 0 if "a part of ann" in turn.prompt else 1
        return "a part of ann" if turn.task_id else json.dumps({"willing": willing})

    async def bob(turn: Turn) -> str:
        if turn.task_id and first_life:
            await anyio.sleep_forever()
        willing = 0 if "a part of bob" in turn.prompt else 1
        return "a part of bob" if turn.task_id else json.dumps({"willing": willing})

    asked: list[tuple[str, bool]] = []
    async with engine_on(root, functions={"ann": ann, "bob": bob}) as engine:
        run_id = await engine.start(order(BOARD, "A poem"))
        async for entry in engine.events(run_id):
            if isinstance(entry.event, TurnStarted):
                asked.append((entry.event.payload.to, bool(entry.event.payload.task_id)))
                if asked.count(("ann", False)) == 2:
                    break  # she is asked again while he is still at work
    assert asked.count(("bob", True)) == 1
    assert asked.count(("bob", False)) == 1
    first_life = False
    async with engine_on(root, functions={"ann": ann, "bob": bob}, resume=True) as engine:
        async for _ in engine.events(run_id):
            pass
        state = await engine.state(run_id)
    assert (state.status, state.reason) == (RunStatus.DONE, "nothing to add")
    assert state.result == "[1] A poem\n\n[2] a part of ann\n\n[3] a part of bob"
