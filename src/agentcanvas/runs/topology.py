"""Who may speak to whom in an interaction (I1), as its topology says."""

from __future__ import annotations

from collections.abc import Sequence

from agentcanvas.errors import PermissionDenied
from agentcanvas.flows.axes import Topology
from agentcanvas.pattern import Cast, Role

_STARS = frozenset(
    {
        Topology.MANAGER_WORKER,
        Topology.MARKET_AUCTION,
        Topology.BROKER,
        Topology.ROUTER_TARGETED,
        Topology.BROADCAST,
    }
)
"""One in the middle, with whom all others speak and with nobody else."""


class Ways:
    """The ways along which the players of one interaction may speak."""

    def __init__(self, topology: Topology | None, roles: Sequence[Role], cast: Cast) -> None:
        self._topology = topology
        self._parts: dict[str, list[int]] = {}
        for index, role in enumerate(roles):
            for agent in cast.get(role.name, ()):
                self._parts.setdefault(agent, []).append(index)
        middle = [i for i, role in enumerate(roles) if role.system]
        self._middle = set(middle or [i for i, role in enumerate(roles) if not role.writes])

    def require(self, speaker: str, to: str) -> None:
        """Refuse a message that this topology has no way for."""
        if not self.open(speaker, to):
            raise PermissionDenied(
                f"{speaker} may not address {to}: the topology {self._topology} has no way "
                "between them. Have the pattern go through the one in the middle."
            )

    def open(self, speaker: str, to: str) -> bool:
        """Whether one may address the other; whoever plays no part here may be addressed by all."""
        mine, theirs = self._parts.get(speaker), self._parts.get(to)
        if mine is None or theirs is None or self._topology is None:
            return True
        if self._topology is Topology.BLACKBOARD:
            return bool(self._middle & {*mine, *theirs})
        if self._topology in _STARS:
            return bool(self._middle & {*mine, *theirs})
        if self._topology is Topology.PIPELINE:
            return any(abs(one - other) <= 1 for one in mine for other in theirs)
        return True
