"""What the specification itself says of its twenty patterns: topology, roles and default ends.

For reading and checking flows where no pattern can be asked; whoever has the patterns passes what
they declare instead. There are no worst cases here, since those follow from behaviour.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from agentcanvas.flows.axes import (
    ConsensusThreshold,
    JudgeDecision,
    MaxRounds,
    QualityGate,
    Sync,
    Termination,
    TimeoutMs,
    Topology,
)
from agentcanvas.flows.pattern_info import ROUND_MS, PatternInfo, RoleInfo


def _many(name: str, least: int = 1, *, writes: bool = False) -> RoleInfo:
    return RoleInfo(name, least, None, writes=writes)


def _one(name: str, *, writes: bool = False) -> RoleInfo:
    return RoleInfo(name, writes=writes)


def _system(name: str, *, unless: tuple[str, str] | None = None) -> RoleInfo:
    return RoleInfo(name, 0, 1, system=True, unless=unless)


def _timed(rounds: int = 1) -> TimeoutMs:
    return TimeoutMs(ROUND_MS * rounds)


def _gate(metric: str, value: float = 1) -> QualityGate:
    return QualityGate(metric, ">=", value)


def _chain(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(pairwise(names))


def _pattern(
    id_: str,
    topology: Topology | tuple[Topology, ...],
    roles: tuple[RoleInfo, ...],
    edges: tuple[tuple[str, str], ...],
    *ends: Termination,
    needs_timeout: bool = False,
    sync: Sync = Sync.REQ_RES,
    goes_on: bool = False,
    metrics: tuple[str, ...] = (),
    in_rounds: bool = True,
    takes_tasks: bool = False,
    ends_as: tuple[str, ...] = (),
) -> PatternInfo:
    topologies = topology if isinstance(topology, tuple) else (topology,)
    return PatternInfo(
        id_,
        topologies,
        roles,
        edges,
        ends,
        needs_timeout=needs_timeout,
        sync=sync,
        goes_on=goes_on,
        metrics=metrics,
        in_rounds=in_rounds,
        takes_tasks=takes_tasks,
        ends_as=frozenset({*ends_as, *(("max_rounds",) if in_rounds else ())}),
    )


_STAGES: Final = ("planner", "designer", "coder", "tester", "doc_writer")
_LINE: Final = ("product_manager", "architect", "engineer", "qa")
_LOOP: Final = ("planner", "executor", "observer", "reflector")

_ALL: Final = (
    _pattern(
        "manager_worker",
        Topology.MANAGER_WORKER,
        (_system("manager"), _many("worker", writes=True)),
        (("manager", "worker"),),
        MaxRounds(2),
        _gate("tests_passed"),
        goes_on=True,
        takes_tasks=True,
        ends_as=("gate",),
    ),
    _pattern(
        "role_play_pair",
        Topology.P2P,
        (_one("user"), _one("assistant", writes=True)),
        (("user", "assistant"),),
        MaxRounds(6),
    ),
    _pattern(
        "chat_chain_pipeline",
        Topology.PIPELINE,
        tuple(_one(stage, writes=True) for stage in _STAGES),
        _chain(*_STAGES),
        MaxRounds(2),
    ),
    _pattern(
        "sop_assembly_line",
        Topology.PIPELINE,
        tuple(_one(name, writes=name == "engineer") for name in _LINE),
        _chain(*_LINE),
        MaxRounds(4),
    ),
    _pattern(
        "debate_judge",
        Topology.DEBATE_JUDGE,
        (_many("debater", 2), _system("judge", unless=("variant", "consensus"))),
        (("debater", "judge"),),
        MaxRounds(3),
        JudgeDecision(),
        _timed(3),
        needs_timeout=True,
    ),
    _pattern(
        "critic_refiner_curator",
        Topology.P2P,
        (_system("judge"), _one("critic"), _one("refiner"), _one("curator")),
        _chain("judge", "critic", "refiner", "curator"),
        MaxRounds(3),
        _gate("converged"),
        _timed(3),
        needs_timeout=True,
        metrics=("converged",),
    ),
    _pattern(
        "majority_vote_with_tiebreak",
        Topology.BROADCAST,
        (_many("evaluator", 2), _system("judge")),
        (("evaluator", "judge"),),
        ConsensusThreshold(0.6),
        MaxRounds(1),
        in_rounds=False,
        ends_as=("threshold",),
    ),
    _pattern(
        "self_consistency_ensemble",
        Topology.BROADCAST,
        (_many("sampler", writes=True), _system("aggregator")),
        (("sampler", "aggregator"),),
        MaxRounds(1),
        in_rounds=False,
    ),
    _pattern(
        "contract_net_auction",
        Topology.MARKET_AUCTION,
        (_system("manager"), _many("bidder", writes=True)),
        (("manager", "bidder"),),
        _timed(),
        in_rounds=False,
    ),
    _pattern(
        "bilateral_negotiation_offer_counteroffer",
        Topology.P2P,
        (_one("proposer"), _one("responder")),
        (("proposer", "responder"),),
        MaxRounds(5),
        _timed(5),
        needs_timeout=True,
    ),
    _pattern(
        "blackboard_shared_state",
        Topology.BLACKBOARD,
        (_many("agent", writes=True), _system("blackboard")),
        (("agent", "blackboard"),),
        _timed(),
        sync=Sync.ASYNC,
        goes_on=True,
    ),
    _pattern(
        "publish_subscribe",
        Topology.BROKER,
        (_many("publisher"), _many("subscriber"), _system("broker")),
        (("publisher", "subscriber"),),
        _timed(),
        goes_on=True,
    ),
    _pattern(
        "broker_facilitator",
        (Topology.ROUTER_TARGETED, Topology.BROKER),
        (_many("requester"), _many("provider", writes=True), _system("broker")),
        (("requester", "provider"),),
        _timed(),
        goes_on=True,
        in_rounds=False,
    ),
    _pattern(
        "router_targeted",
        Topology.ROUTER_TARGETED,
        (_system("router"), _many("agent")),
        (("router", "agent"),),
        _timed(),
        goes_on=True,
        in_rounds=False,
    ),
    _pattern(
        "hierarchical_tree_of_agents",
        Topology.MANAGER_WORKER,
        (_one("root"), RoleInfo("manager", 0, None), _many("worker", writes=True)),
        (),
        MaxRounds(2),
    ),
    _pattern(
        "redteam_defender_judge",
        Topology.DEBATE_JUDGE,
        (_many("red_team"), _one("defender", writes=True), _system("judge")),
        (("red_team", "defender"), ("defender", "judge")),
        MaxRounds(2),
        _gate("score", 0.7),
        _timed(2),
        needs_timeout=True,
        metrics=("score",),
        ends_as=("pass_at",),
    ),
    _pattern(
        "factcheck_tool_verifier",
        Topology.PIPELINE,
        (_one("producer"), _one("verifier"), _system("judge")),
        _chain("producer", "verifier", "judge"),
        _gate("citations_count"),
        MaxRounds(3),
        goes_on=True,
        metrics=("citations_count", "tool_check_pass"),
        ends_as=("citations",),
    ),
    _pattern(
        "plan_execute_observe_reflect",
        Topology.PIPELINE,
        tuple(_one(name, writes=name == "executor") for name in _LOOP),
        _chain(*_LOOP),
        MaxRounds(1),
    ),
    _pattern(
        "memory_sync_daily_summary",
        Topology.BLACKBOARD,
        (_many("agent"), _system("memory_curator")),
        (("agent", "memory_curator"),),
        MaxRounds(1),
        goes_on=True,
        in_rounds=False,
    ),
    _pattern(
        "protocol_bridge_mcp_acp_a2a_anp",
        Topology.BROKER,
        (_many("local", 2), _system("bridge")),
        (("local", "bridge"),),
        _timed(),
        in_rounds=False,
    ),
)

CATALOGUE: Final = {info.id: info for info in _ALL}
