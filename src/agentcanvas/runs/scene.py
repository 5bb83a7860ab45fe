"""One interaction as it is played: who is in it, when it ends, and what it has come to so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agentcanvas.errors import StageEnded
from agentcanvas.flows.axes import (
    ConsensusThreshold,
    JudgeDecision,
    MaxRounds,
    MessageForm,
    QualityGate,
    Sync,
    Termination,
    TimeoutMs,
    Topology,
)
from agentcanvas.pattern import Ask, Cast, Ends, Gate, Role, Share, Work
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs.board import Board, Retention
from agentcanvas.runs.budget import Purse
from agentcanvas.runs.rates import Rates
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.topology import Ways

_MINUTE_S = 60
_DEEPEST = 16


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


class Limit(msgspec.Struct, frozen=True):
    """So many seconds of the run's work after a scene began, it ends with this reason."""

    scene: str
    seconds: float
    reason: str


class Forms(msgspec.Struct, frozen=True):
    """How replies are read, and those of agents whose edge says otherwise."""

    of_all: MessageForm = MessageForm.NL_TEXT
    to: Mapping[str, MessageForm] = {}


class Pace(msgspec.Struct, frozen=True):
    """How turns follow each other, and those of agents whose edge says otherwise."""

    of_all: Sync = Sync.REQ_RES
    to: Mapping[str, Sync] = {}


class Scene:
    """What all stages of one interaction share; ``within`` is the scene it is a part of."""

    def __init__(
        self,
        id: str,  # noqa: A002 - what an interaction's name is called everywhere
        *,
        ends: Ends | None = None,
        cast: Cast | None = None,
        roles: Sequence[Role] = (),
        retention: Retention | None = None,
        words: Wording = WORDING,
        share: Share | None = None,
        rates: Rates | None = None,
        topology: Topology | None = None,
        forms: Forms | None = None,
        seed: int = 0,
        pace: Pace | None = None,
        tasks: str = "",
        within: Scene | None = None,
    ) -> None:
        self.id = id
        self.words = words
        self.ends = ends or Ends()
        self.retention = retention or Retention()
        self.board = Board(self.retention)
        self.rates = rates or Rates()
        self.topology = topology
        self.ways = Ways(topology, roles, cast or {})
        self.seed = seed
        self._forms = forms or Forms()
        self.share = share or Share()
        self.purses: tuple[Purse, ...] = (
            Purse(id, self.share),
            *(within.purses if within else ()),
        )
        self.pace = pace or Pace()
        self._in_turn = Slots(1)
        self.depth: int = 0 if within is None else within.depth + 1
        self.candidates: dict[str, ProposalRef] = {}
        """Proposals that were neither landed nor let go of."""
        self.begun: dict[str, float] = {} if within is None else within.begun
        """When each scene began, in seconds that the run has worked."""
        self.subscribers: dict[str, dict[str, None]] = {}
        self.kept = ""
        """What it has come to so far."""
        self.looks_itself = False
        """Whether the pattern looks at the flow's gates, and the Stage need not."""
        self.held: Gate | None = None
        """The gate that was good enough after a round."""
        self.ended: StageEnded | None = None
        """The limit that struck while several were asked; the next verb ends."""
        self._within = within
        self._cast = cast or {}
        self._writing = frozenset(role.name for role in roles if role.writes)
        self._turns: dict[str, int] = {}
        self._tasks = tasks if within is None else within.tasks_of(id)
        """What the names of its tasks begin with, so that each is there once in the run."""
        self._inner: dict[str, int] = {}

    def inner(
        self, name: str, *, ends: Ends, cast: Cast, roles: Sequence[Role], share: Share
    ) -> Scene:
        """A scene for an interaction within this one; what is not said is as it is here."""
        if self.depth >= _DEEPEST:
            raise StageEnded(f"depth: {_DEEPEST} interactions within each other")
        return Scene(
            name,
            ends=ends,
            cast=cast,
            roles=roles,
            retention=self.retention,
            share=share,
            rates=self.rates,
            forms=self._forms,
            seed=self.seed,
            pace=self.pace,
            words=self.words,
            within=self,
        )

    def form_of(self, to: str) -> MessageForm:
        """How a reply of this agent is read."""
        return self._forms.to.get(to, self._forms.of_all)

    def sync_of(self, to: str) -> Sync:
        """How a turn of this agent follows the others."""
        return self.pace.to.get(to, self.pace.of_all)

    def slots_of(self, to: str) -> Slots | None:
        """The one place there is for turns that follow one another."""
        return self._in_turn if self.sync_of(to) is Sync.TURN_BASED else None

    def limits(self) -> list[Limit]:
        """Every limit of time that holds here, those of the scenes around it included."""
        found = []
        if self.ends.timeout_ms is not None:
            reason = f"timeout_ms: {self.ends.timeout_ms}"
            found.append(Limit(self.id, self.ends.timeout_ms / 1000, reason))
        if self.share.minutes is not None:
            reason = f"budget of {self.id}: {self.share.minutes:g} minutes"
            found.append(Limit(self.id, self.share.minutes * _MINUTE_S, reason))
        return found + (self._within.limits() if self._within else [])

    def tasks_of(self, inner: str) -> str:
        """What the names of tasks begin with in the next scene of this name within this one."""
        name = inner.rpartition("/")[2]
        count = self._inner[name] = self._inner.get(name, 0) + 1
        return f"{self._tasks}{name}{f'-{count}' if count > 1 else ''}."

    def numbered(self, ask: Ask) -> Ask:
        """The ask with its role, the how-manieth turn of this role it is, and its task's name.

        Asks are numbered in the order the pattern makes them, not in the order they begin, so the
        numbers are the same in every life of the run.
        """
        role = ask.role or self._role(ask)
        number = self._turns[role] = self._turns.get(role, 0) + 1
        work = ask.work and self._named(ask.work)
        return msgspec.structs.replace(ask, role=role, number=number, work=work)

    def _named(self, work: Work) -> Work:
        after = tuple(
            msgspec.structs.replace(other, task_id=f"{self._tasks}{other.task_id}")
            for other in work.after
        )
        return msgspec.structs.replace(work, task_id=f"{self._tasks}{work.task_id}", after=after)

    def _role(self, ask: Ask) -> str:
        """The part an agent plays here; of several, one that writes exactly when it is to work."""
        parts = [role for role, agents in self._cast.items() if ask.to in agents]
        fitting = [role for role in parts if (role in self._writing) is (ask.work is not None)]
        return next(iter(fitting or parts), "")
