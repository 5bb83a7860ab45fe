"""The interaction patterns, one file each: short coroutines over ``Stage``.

They hold behaviour only. Limits, records and files are the Stage's; who plays which role is said by
a flow. ``forms``, ``messages``, ``planning``, ``register``, ``subtrees``, ``tally``, ``tasks`` and
``wording`` are nouns that they speak of; no pattern speaks of another.
"""

from __future__ import annotations

from agentcanvas.pattern import Pattern
from agentcanvas.patterns.bilateral_negotiation_offer_counteroffer import BilateralNegotiation
from agentcanvas.patterns.blackboard_shared_state import BlackboardSharedState
from agentcanvas.patterns.broker_facilitator import BrokerFacilitator
from agentcanvas.patterns.chat_chain_pipeline import ChatChainPipeline
from agentcanvas.patterns.contract_net_auction import ContractNetAuction
from agentcanvas.patterns.critic_refiner_curator import CriticRefinerCurator
from agentcanvas.patterns.debate_judge import DebateJudge
from agentcanvas.patterns.factcheck_tool_verifier import FactcheckToolVerifier
from agentcanvas.patterns.hierarchical_tree_of_agents import HierarchicalTree
from agentcanvas.patterns.majority_vote_with_tiebreak import MajorityVoteWithTiebreak
from agentcanvas.patterns.manager_worker import ManagerWorker
from agentcanvas.patterns.memory_sync_daily_summary import MemorySyncDailySummary
from agentcanvas.patterns.plan_execute_observe_reflect import PlanExecuteObserveReflect
from agentcanvas.patterns.protocol_bridge_mcp_acp_a2a_anp import ProtocolBridge
from agentcanvas.patterns.publish_subscribe import PublishSubscribe
from agentcanvas.patterns.redteam_defender_judge import RedteamDefenderJudge
from agentcanvas.patterns.role_play_pair import RolePlayPair
from agentcanvas.patterns.router_targeted import RouterTargeted
from agentcanvas.patterns.self_consistency_ensemble import SelfConsistencyEnsemble
from agentcanvas.patterns.sop_assembly_line import SopAssemblyLine

PATTERNS: tuple[Pattern, ...] = (
    ManagerWorker(),
    RolePlayPair(),
    ChatChainPipeline(),
    SopAssemblyLine(),
    DebateJudge(),
    CriticRefinerCurator(),
    MajorityVoteWithTiebreak(),
    SelfConsistencyEnsemble(),
    ContractNetAuction(),
    BilateralNegotiation(),
    BlackboardSharedState(),
    PublishSubscribe(),
    BrokerFacilitator(),
    RouterTargeted(),
    HierarchicalTree(),
    RedteamDefenderJudge(),
    FactcheckToolVerifier(),
    PlanExecuteObserveReflect(),
    MemorySyncDailySummary(),
    ProtocolBridge(),
)
"""All twenty, in the order of their numbers."""
