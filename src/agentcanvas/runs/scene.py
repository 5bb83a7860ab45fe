"""One interaction as it is played: who is in it, when it ends, and what it has come to so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from agentcanvas.flows.axes import (
    ConsensusThreshold,
    JudgeDecision,
    MaxRounds,
    QualityGate,
    Termination,
    TimeoutMs,
)
from agentcanvas.pattern import Ask, Cast, Ends, Gate, Role
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs.board import Board, Retention


def ends_of(termination: Iterable[Termination]) -> Ends:
    """A flow's list of ends, as the stage keeps them; of several alike the narrowest."""
    listed = tuple(termination)
    rounds = [end.rounds for end in listed if isinstance(end, MaxRounds)]
    times = [end.ms for end in listed if isinstance(end, TimeoutMs)]
    shares = [end.threshold for end in listed if isinstance(end, ConsensusThreshold)]
    return Ends(
        rounds=min(rounds, default=None),
        timeout_ms=min(times, default=None),
        gates=tuple(
            Gate(end.metric, end.op, end.value) for end in listed if isinstance(end, QualityGate)
        ),
        judge=any(isinstance(end, JudgeDecision) for end in listed),
        consensus=min(shares, default=None),
    )


class Scene:
    """What all stages of one interaction share."""

    def __init__(
        self,
        id: str,  # noqa: A002 - what an interaction's name is called everywhere
        *,
        ends: Ends | None = None,
        cast: Cast | None = None,
        roles: Sequence[Role] = (),
        retention: Retention | None = None,
        words: Wording = WORDING,
    ) -> None:
        self.id = id
        self.words = words
        self.ends = ends or Ends()
        self.board = Board(retention or Retention())
        self.candidates: dict[str, ProposalRef] = {}
        """Proposals that were neither landed nor let go of."""
        self.begun: float | None = None
        """When it began, in seconds that the run has worked."""
        self._cast = cast or {}
        self._writing = frozenset(role.name for role in roles if role.writes)
        self._turns: dict[str, int] = {}

    def numbered(self, ask: Ask) -> Ask:
        """The ask with its role, and the how-manieth turn of this role it is.

        Asks are numbered in the order the pattern makes them, not in the order they begin, so the
        numbers are the same in every life of the run.
        """
        role = ask.role or self._role(ask)
        number = self._turns[role] = self._turns.get(role, 0) + 1
        return msgspec.structs.replace(ask, role=role, number=number)

    def _role(self, ask: Ask) -> str:
        """The part an agent plays here; of several, one that writes exactly when it is to work."""
        parts = [role for role, agents in self._cast.items() if ask.to in agents]
        fitting = [role for role in parts if (role in self._writing) is (ask.work is not None)]
        return next(iter(fitting or parts), "")
