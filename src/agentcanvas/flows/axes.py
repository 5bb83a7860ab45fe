"""The six axes of an interaction (I1), and the five ways to end one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from agentcanvas.protocol.forms.message_form import MessageForm

__all__ = [
    "HARD_ENDS",
    "ConsensusThreshold",
    "Intent",
    "JudgeDecision",
    "MaxRounds",
    "MessageForm",
    "QualityGate",
    "Sync",
    "Termination",
    "TimeoutMs",
    "Topology",
    "Verification",
]

_WEEK_MS: Final = 7 * 24 * 3_600_000


class Intent(StrEnum):
    """What the agents are together for."""

    SOLVE = "solve"
    VERIFY = "verify"
    NEGOTIATE = "negotiate"
    EXPLORE = "explore"
    SIMULATE = "simulate"
    ALIGN = "align"


class Topology(StrEnum):
    """Who may address whom."""

    P2P = "p2p"
    MANAGER_WORKER = "manager_worker"
    PIPELINE = "pipeline"
    BLACKBOARD = "blackboard"
    MARKET_AUCTION = "market_auction"
    DEBATE_JUDGE = "debate_judge"
    BROKER = "broker"
    ROUTER_TARGETED = "router_targeted"
    BROADCAST = "broadcast"


class Sync(StrEnum):
    """How turns follow each other."""

    TURN_BASED = "turn_based"
    REQ_RES = "req_res"
    ASYNC = "async"
    STREAMING = "streaming"


class Verification(StrEnum):
    """What is done so that a result can be believed."""

    CRITIC_LOOP = "critic_loop"
    CROSS_CHECK_VOTE = "cross_check_vote"
    TOOL_BASED = "tool_based"
    SANDBOX_CONSTRAINTS = "sandbox_constraints"
    AUDIT_LOG = "audit_log"


class MaxRounds(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="max_rounds"
):
    """Ends after so many rounds."""

    rounds: Annotated[int, Meta(ge=1, le=1_000, description="How many rounds at most.")]


class TimeoutMs(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="timeout_ms"
):
    """Ends after so much time."""

    ms: Annotated[int, Meta(ge=1, le=_WEEK_MS, description="Milliseconds; 300000 is 5 minutes.")]


class JudgeDecision(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="judge_decision"
):
    """Ends when the judge has decided; needs a hard end beside it."""


class ConsensusThreshold(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="consensus_threshold"
):
    """Ends when so large a share agrees; needs a hard end beside it."""

    threshold: Annotated[float, Meta(gt=0, le=1, description="A share: 0.6 is 60 %.")]


class QualityGate(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="quality_gate"
):
    """Ends when a metric is good enough; needs a hard end beside it."""

    metric: Annotated[
        str, Meta(min_length=1, description="tests_passed, score, converged, or a check's name.")
    ]
    op: Annotated[Literal[">=", "<="], Meta(description="How metric and value compare.")]
    value: Annotated[float, Meta(description="A number; metrics that are yes or no count 1 or 0.")]


Termination = MaxRounds | TimeoutMs | JudgeDecision | ConsensusThreshold | QualityGate

# The others wait for something that may never come about, so alone they are no end (PR5).
HARD_ENDS: Final = (MaxRounds, TimeoutMs)
