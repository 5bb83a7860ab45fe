"""For each pattern a team that puts its rule to the test, and how that ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agentcanvas.pattern import Fate, Measure
from agentcanvas.patterns.bilateral_negotiation_offer_counteroffer import Offer
from agentcanvas.patterns.blackboard_shared_state import Options as BoardOptions
from agentcanvas.patterns.blackboard_shared_state import Volunteer
from agentcanvas.patterns.broker_facilitator import Options as BrokerOptions
from agentcanvas.patterns.broker_facilitator import Query, Registration
from agentcanvas.patterns.chat_chain_pipeline import DUTIES
from agentcanvas.patterns.chat_chain_pipeline import Options as ChainOptions
from agentcanvas.patterns.contract_net_auction import Bid
from agentcanvas.patterns.contract_net_auction import Options as AuctionOptions
from agentcanvas.patterns.critic_refiner_curator import Flaw, Lesson
from agentcanvas.patterns.factcheck_tool_verifier import Claims, Finding
from agentcanvas.patterns.forms import Score, Steps, Verdict, Vote
from agentcanvas.patterns.hierarchical_tree_of_agents import Gathered, Split
from agentcanvas.patterns.majority_vote_with_tiebreak import Options as VoteOptions
from agentcanvas.patterns.memory_sync_daily_summary import Insight, Log, Summary
from agentcanvas.patterns.plan_execute_observe_reflect import Observation, Reflection
from agentcanvas.patterns.publish_subscribe import Options as NewsOptions
from agentcanvas.patterns.publish_subscribe import Publication, Wish
from agentcanvas.patterns.redteam_defender_judge import Options as AttackOptions
from agentcanvas.patterns.router_targeted import Letter, Routing
from agentcanvas.patterns.self_consistency_ensemble import Sample
from agentcanvas.patterns.sop_assembly_line import Design, Requirements
from agentcanvas.protocol.plan import Plan, PlannedTask
from tests.patterns.team import Part, fails

GREEN = Measure("tests_passed", 1, holds=True)
RED = Measure("tests_passed", 0, holds=False, detail="2 of 9 tests fail")
RUBRIC = "Nothing that was asked for may be lost"


class Scene(msgspec.Struct, frozen=True):
    """A cast, what it answers, and how the interaction ends with it."""

    cast: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, Part]
    reason: str
    options: Any = None
    stage: Mapping[str, Any] = {}
    done: bool = True


def _plan(*ids: str) -> Plan:
    return Plan(tuple(PlannedTask(id_, "ann", f"do {id_}", scope=(id_,)) for id_ in ids))


def _waits(to: str, message: str) -> float:
    return 90.0 if to == "slow" and "proposals" in message else 10.0


def _rex_is_slow(to: str, message: str) -> float:
    return 30.0 if to == "rex" else 1.0


SCENES: dict[str, Scene] = {
    "manager_worker": Scene(
        {"manager": ("boss",), "worker": ("ann",)},
        {
            "boss": [_plan("a"), "all is well", _plan("b"), "all is well now"],
            "ann": lambda message: f"did it: {message[:20]}",
        },
        "quality_gate: tests_passed >= 1",
        stage={"measures": [RED, GREEN]},
    ),
    "role_play_pair": Scene(
        {"user": ("eve",), "assistant": ("sam",)},
        {
            "eve": ["Instruction: fill the sink", "Instruction: wash", "TASK_DONE"],
            "sam": ["Solution: it is full", "Instruction: now you dry"],
        },
        "role_flip: the assistant gave an instruction",
        done=False,
    ),
    "chat_chain_pipeline": Scene(
        {name: (f"a-{name}",) for name in DUTIES},
        {
            "a-planner": [
                "plan one of two",
                Verdict(accept=False, reason="name every plate"),
                Verdict(accept=True),
            ],
            "a-designer": [
                Verdict(accept=True),
                "design one: by hand",
                "design two: every plate by hand",
                "cold, of course",
                Verdict(accept=True),
            ],
            "a-coder": ["Question: hot or cold?", "the plates are clean", Verdict(accept=True)],
            "a-tester": ["they shine", Verdict(accept=True)],
            "a-doc_writer": ["how we wash"],
        },
        "concluded",
        options=ChainOptions(max_rounds=3),
    ),
    "sop_assembly_line": Scene(
        {
            "product_manager": ("pam",),
            "architect": ("art",),
            "engineer": ("eng",),
            "qa": ("quinn",),
        },
        {
            "pam": Requirements("clean plates", ("no stains",), ("they shine",)),
            "art": [Verdict(accept=True), Design("by hand", ("sink.py",))],
            "eng": [Verdict(accept=True), *(f"version {n}" for n in range(1, 9))],
            "quinn": [Verdict(accept=False, reason="a stain"), Verdict(accept=True)],
        },
        "accepted",
        stage={"measures": [RED, GREEN, GREEN]},
    ),
    "debate_judge": Scene(
        {"debater": ("dora", "emil"), "judge": ("judy",)},
        {
            "dora": [f"point {n} in favour" for n in range(1, 9)],
            "emil": [f"point {n} against it" for n in range(1, 9)],
            "judy": '{"choice": "against", "reason": "they were not refuted"}',
        },
        "judge_decision: against",
    ),
    "critic_refiner_curator": Scene(
        {"judge": ("judy",), "critic": ("carl",), "refiner": ("rita",), "curator": ("cora",)},
        {
            "judy": [
                Verdict(accept=False, reason="no soap"),
                Verdict(accept=False, reason="still wet"),
                Verdict(accept=True),
            ],
            "carl": [Flaw(2, "no soap"), Flaw(3, "wet")],
            "rita": [
                Steps(("fill the sink", "wash", "stack")),
                Steps(("wash with soap", "stack wet")),
                Steps(("dry and stack",)),
            ],
            "cora": Lesson("Soap first"),
        },
        "quality_gate: converged >= 1",
    ),
    "majority_vote_with_tiebreak": Scene(
        {"evaluator": ("ann", "bob"), "judge": ()},
        {"ann": Vote("wash", "ann likes water"), "bob": Vote("wipe", "bob likes cloth")},
        "tie_break: wipe by the order of the choices",
        options=VoteOptions(choices=("wipe", "wash")),
    ),
    "self_consistency_ensemble": Scene(
        {"sampler": ("ann", "bob", "cyd")},
        {
            "ann": [Sample("a", "43"), Sample("d", "42")],
            "bob": [Sample("b", "42."), Sample("e", "42")],
            "cyd": "no idea",
        },
        "majority: 3 of 4",
    ),
    "contract_net_auction": Scene(
        {"bidder": ("dear", "cheap", "slow", "busy")},
        {
            "dear": [Bid(propose=True, cost=9, plan="by hand"), "washed by hand"],
            "cheap": [Bid(propose=True, cost=1, plan="quickly"), fails("cheap", "broke a plate")],
            "slow": [Bid(propose=True, cost=0, plan="some day")],
            "busy": [Bid(propose=False)],
        },
        "done: dear for 9",
        options=AuctionOptions(bid_within_ms=60_000),
        stage={"seconds": _waits},
    ),
    "bilateral_negotiation_offer_counteroffer": Scene(
        {"proposer": ("pat",), "responder": ("rob",)},
        {
            "pat": [Offer(10), Offer(12), Offer(6), Offer(6), Offer(6)],
            "rob": [Offer(1), Offer(2), Offer(3), Offer(3), Offer(3)],
        },
        "max_rounds: 5",
        done=False,
    ),
    "blackboard_shared_state": Scene(
        {"agent": ("ann", "bob")},
        {
            "ann": [Volunteer(0.9, "soap"), Volunteer(0.2, "rinse"), "there is soap", Volunteer(0)],
            "bob": [Volunteer(0.5, "water"), "there is water", Volunteer(0)],
        },
        "nothing to add",
        options=BoardOptions(picks=2),
    ),
    "publish_subscribe": Scene(
        {"publisher": ("pia", "paul"), "subscriber": ("sue", "sid"), "broker": ("bea",)},
        {
            "bea": '{"choice": "news"}',
            "pia": [Publication("news", f"pia {n}") for n in range(1, 4)] + [Publication()],
            "paul": [Publication("news", "paul 1"), Publication()],
            "sue": [Wish(("news",)), Wish(), Wish((), ("news",)), Wish()],
            "sid": [Wish(), Wish(("news", "weather")), Wish()],
        },
        "nothing to publish",
        options=NewsOptions(replay=1),
    ),
    "broker_facilitator": Scene(
        {"requester": ("rex", "roy"), "provider": ("slow", "bad", "good")},
        {
            "rex": [Query("washing", "wash it"), Verdict(accept=False), Verdict(accept=True)],
            "roy": [Query("Washing", "wash that too"), Verdict(accept=True)],
            "slow": [Registration(("drying",))],
            "bad": [Registration(("washing",)), "smeared", Registration(("washing",))],
            "good": [
                Registration(("washing",)),
                "clean",
                Registration(("washing",)),
                "that is clean too",
            ],
        },
        "answered",
        options=BrokerOptions(lease_ms=90_000),
        stage={"seconds": _rex_is_slow},
    ),
    "router_targeted": Scene(
        {"router": ("rho",), "agent": ("ann", "bob", "cyd")},
        {
            "rho": Routing(("bob",)),
            "ann": [Letter(ack=True, tags=("result",), text="it is clean")],
            "bob": [Letter(ack=True, tags=("ann",), text="ann, wash it")],
            "cyd": fails("cyd", "was never to be asked"),
        },
        "delivered",
    ),
    "hierarchical_tree_of_agents": Scene(
        {"root": ("top",), "manager": ("m1", "m2"), "worker": ("w1", "w2", "w3")},
        {
            "top": [
                Split(("plates", "cups")),
                Gathered("plates only", "cups"),
                Split(("cups again",)),
                Gathered("plates and cups"),
            ],
            "m1": [
                Split(("big plates", "small plates")),
                Gathered("plates are clean"),
                Split(("cups",)),
                Gathered("cups are clean"),
            ],
            "m2": [Split(("all cups",)), Gathered("no cups", "cups"), fails("m2", "tired")],
            "w1": "done",
            "w2": fails("w2", "no cloth"),
            "w3": "done",
        },
        "gathered",
    ),
    "redteam_defender_judge": Scene(
        {"red_team": ("max",), "defender": ("dan",), "judge": ("judy",)},
        {
            "max": ["a hot plate", "a broken plate"],
            "dan": ["gloves", "a broom"],
            "judy": [Score(0.3, "it burns"), Score(0.8)],
        },
        "quality_gate: score >= 0.7 (0.8)",
        options=AttackOptions(rubric=RUBRIC),
    ),
    "factcheck_tool_verifier": Scene(
        {"producer": ("pro",), "verifier": ("vic",), "judge": ()},
        {
            "pro": [
                Claims(("water is wet", "soap is dry", "plates are square")),
                Claims(("water is wet", "plates are round")),
            ],
            "vic": lambda message: (
                Finding("refuted", "plates.md", "round")
                if "square" in message
                else Finding("supported", "" if "soap" in message else "water.md:1", "as it says")
            ),
        },
        "quality_gate: citations_count >= 1",
    ),
    "plan_execute_observe_reflect": Scene(
        {"planner": ("pla",), "executor": ("exe",), "observer": ("obs",), "reflector": ("ref",)},
        {
            "pla": [Steps(("rub", "scrub", "scratch", "polish")), Steps(("soak", "wash"))],
            "exe": "did it",
            "obs": [Observation(progress=False, seen="stains")] * 3
            + [Observation(progress=True), Observation(progress=True, done=True)],
            "ref": Reflection(("Soak before you scrub",)),
        },
        "done",
    ),
    "memory_sync_daily_summary": Scene(
        {"agent": ("ann", "bob"), "memory_curator": ("cora",)},
        {
            "ann": Log(("hot water helps", "the cloth is old")),
            "bob": Log(("buy a cloth",)),
            "cora": Summary(
                (
                    Insight("A new cloth is needed", ("ann:2", "bob:1")),
                    Insight("Plates are fun", ()),
                    Insight("Somebody said so", ("eve:1",)),
                )
            ),
        },
        "summarised: 3 entries, 2 without sources left out",
    ),
    "protocol_bridge_mcp_acp_a2a_anp": Scene(
        {"local": ("ann", "bob", "cyd", "dan"), "bridge": ("bea",)},
        {
            "ann": "",
            "bob": "washed",
            "cyd": fails("cyd", "no water", Fate.TIMED_OUT),
            "dan": "dry",
            "bea": lambda message: next(s for s in message.splitlines() if s.startswith("{")),
        },
        "failed: cyd: timed_out",
        done=False,
    ),
}
