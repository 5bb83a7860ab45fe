"""The most a flow can need before it ends: turns, messages, minutes, tokens (D19).

Each pattern declares its worst case; here they are capped by ends and budgets and added up along
``after``. What has no bound is said by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from agentcanvas.flows.axes import MessageForm, Sync
from agentcanvas.flows.guards import PERSON
from agentcanvas.flows.model import Flow
from agentcanvas.flows.order import side_by_side
from agentcanvas.flows.pattern_info import Case, Cost, Patterns
from agentcanvas.flows.settle import Settled, settle
from agentcanvas.flows.team import DEFAULT_KIND, OF_A_SERVICE, WITH_TOOLS
from agentcanvas.protocol.turns import MOST_PARTS

TURN_MINUTES: Final = 30.0
"""How long one turn may take when the agent's runtime does not say (D32)."""
CHECK_MINUTES: Final = 10.0
"""How long one check may take when it does not say."""
MAX_PARALLEL: Final = 5
_MINUTE_MS: Final = 60_000
CONTINUATIONS: Final = 4
"""How often one turn may run into a limit; a service that never lets it through is no service."""
_MESSAGES_A_TURN: Final = 2
_TURNS_A_FORM: Final = 2
"""An answer without its message form is asked for once more."""


class Bound(Struct, frozen=True, kw_only=True):
    """The worst case of one interaction, or of all; None is: without a bound."""

    name: str
    turns: int | None
    messages: int | None
    minutes: float | None
    tokens: int | None
    """The budget; what is already running when it is reached comes on top."""
    cost: float | None
    running: int
    """Agents that may be in the middle of a turn at the same time."""
    unbounded: tuple[str, ...] = ()
    """What has no bound, and how to give it one."""
    on_top: tuple[str, ...] = ()
    """What no pattern asks for and costs turns all the same; a budget holds it, if there is one."""

    @property
    def tokens_in_words(self) -> str:
        return _overrun(self.tokens, self.running)

    @property
    def cost_in_words(self) -> str:
        return _overrun(self.cost, self.running)


class Bounds(Struct, frozen=True):
    """The worst case of each interaction, in the order of the file, and of the flow."""

    interactions: tuple[Bound, ...]
    total: Bound


def bounds(flow: Flow, patterns: Patterns, *, max_parallel: int = MAX_PARALLEL) -> Bounds:
    """The worst case of a sound flow."""
    settled = settle(flow, patterns)
    every = _Worst(flow, settled, patterns)
    played = [each for each in settled if not each.is_part]
    parts = tuple(_bound(flow, each, every.of(each.id), max_parallel) for each in played)
    whole = flow.budgets
    minutes = _minutes_in_all(played, parts, max_parallel)
    players = frozenset().union(*(each.players for each in settled))
    total = Bound(
        name="total",
        turns=_least(_sum(part.turns for part in parts), whole and whole.turns),
        messages=_least(_sum(part.messages for part in parts), whole and whole.messages),
        minutes=_least(minutes, whole and whole.minutes),
        tokens=_least(_sum(part.tokens for part in parts), whole and whole.tokens),
        cost=_least(_sum(part.cost for part in parts), whole and whole.cost),
        running=min(max_parallel, len(players)),
        unbounded=tuple(sentence for part in parts for sentence in part.unbounded),
        on_top=tuple(dict.fromkeys(sentence for part in parts for sentence in part.on_top)),
    )
    return Bounds(parts, total)


def _bound(flow: Flow, each: Settled, worst: Cost, max_parallel: int) -> Bound:
    budgets = each.budgets
    turns = _least(worst.turns, budgets.turns)
    messages = _least(_messages(worst, turns), budgets.messages)
    timeout = each.timeout_ms / _MINUTE_MS if each.timeout_ms else None
    by_turns = turns * _turn_minutes(flow, each) if turns is not None else None
    minutes = _least(timeout, budgets.minutes, by_turns)
    found = {"turns": turns, "messages": messages, "minutes": minutes, "tokens": budgets.tokens}
    return Bound(
        name=each.id,
        turns=turns,
        messages=messages,
        minutes=minutes,
        tokens=budgets.tokens,
        cost=budgets.cost,
        running=min(max_parallel, len(each.players)),
        unbounded=tuple(
            f"{each.id}: no bound on {name}; set budgets.{name}"
            for name, value in found.items()
            if value is None
        ),
        on_top=tuple(_on_top(flow, each)),
    )


def _on_top(flow: Flow, each: Settled) -> Iterator[str]:
    """Turns that agents take of their own accord, or because of their service."""
    kinds = {
        agent.id: agent.runtime.kind if agent.runtime else DEFAULT_KIND for agent in flow.agents
    }
    limited = sorted(name for name in each.players if kinds[name] in OF_A_SERVICE)
    if limited:
        yield (
            f"{', '.join(limited)}: a turn that runs into a limit of the service, or is handed "
            f"over, is taken up again, at most {CONTINUATIONS} times"
        )
    asking = sorted(name for name in each.players if kinds[name] in WITH_TOOLS)
    if asking and len(kinds) > 1:
        held = (
            "; budgets.turns holds them"
            if each.budgets.turns
            else "; set budgets.turns to hold them"
        )
        yield (
            f"{', '.join(asking)}: may ask others in the middle of a turn; each question is a "
            f"turn{held}"
        )


def _messages(worst: Cost, turns: int | None) -> int | None:
    """A turn that a budget does not allow sends no messages either."""
    if worst.messages is None or worst.turns is None or turns is None:
        return worst.messages
    return worst.messages - _MESSAGES_A_TURN * (worst.turns - turns)


class _Worst:
    """The worst case of each interaction, what fills its roles included."""

    def __init__(self, flow: Flow, settled: Sequence[Settled], patterns: Patterns) -> None:
        self._flow = flow
        self._settled = {each.id: each for each in settled}
        self._patterns = patterns

    def of(self, name: str) -> Cost:
        """Whatever is asked of a role may go to what fills it, and ask as much as that may ask."""
        each = self._settled[name]
        own = self._alone(each)
        if own.turns is None:
            return own
        asks = self._alone(each, tasks_as_asks=True)
        rest = (asks.turns or 0) - sum(asks.by_role.values())
        turns: int | None = own.turns
        messages = own.messages
        for role, inner in self._filling(each).items():
            asked = asks.by_role.get(role, rest)
            turns = _plus(turns, asked, _more([cost.turns for cost in inner], 1))
            said = _more([cost.messages for cost in inner], _MESSAGES_A_TURN)
            messages = _plus(messages, asked, said)
        return Cost(turns, messages)

    def _filling(self, each: Settled) -> dict[str, list[Cost]]:
        """The roles that interactions fill, and what those need."""
        parts = {name for name, other in self._settled.items() if other.is_part}
        filled = {
            role: [self._within_budget(name) for name in names if name in parts]
            for role, names in each.roles.items()
        }
        return {role: inner for role, inner in filled.items() if inner}

    def _within_budget(self, name: str) -> Cost:
        cost, budgets = self.of(name), self._settled[name].budgets
        turns = _least(cost.turns, budgets.turns)
        return Cost(turns, _least(_messages(cost, turns), budgets.messages))

    def _alone(self, each: Settled, *, tasks_as_asks: bool = False) -> Cost:
        info = self._patterns.get(each.pattern_id)
        if info is None or info.worst_case is None:
            return Cost(None, None)
        case = Case(
            players={role: len(agents) for role, agents in each.roles.items()},
            rounds=each.rounds,
            timeout_minutes=each.timeout_ms / _MINUTE_MS if each.timeout_ms else None,
            tasks=len(_tasks(self._flow, each)),
            iterations=each.review.max_iterations,
            params=each.params,
            tasks_as_asks=tasks_as_asks,
            agent_reviews=each.review.reviewer != PERSON and not each.review.auto_approve,
            turns_an_ask=1 if _is_free(each) else _TURNS_A_FORM,
            verification=each.verification,
            checkers=len(each.checkers),
        )
        cost = info.worst_case(case)
        if cost.turns is None or cost.messages is None:
            return cost
        heard = cost.turns * MOST_PARTS * _listeners(each)
        return Cost(cost.turns, cost.messages + heard, cost.by_role)


def _is_free(each: Settled) -> bool:
    forms = {each.message_form, *(edge.message_form for edge in each.edges)}
    return forms == {MessageForm.NL_TEXT}


def _listeners(each: Settled) -> int:
    """How many at most hear an answer before it is complete."""
    streamed = [edge.target for edge in each.edges if edge.sync is Sync.STREAMING]
    return max((streamed.count(target) for target in streamed), default=0)


def _tasks(flow: Flow, settled: Settled) -> Sequence[object]:
    return next(each.tasks for each in flow.interactions if each.id == settled.id)


def _turn_minutes(flow: Flow, each: Settled) -> float:
    """One turn and the evidence for what it changed, before and after (D13)."""
    limits = [
        agent.runtime.timeout_ms / _MINUTE_MS
        if agent.runtime and agent.runtime.timeout_ms
        else TURN_MINUTES
        for agent in flow.agents
        if agent.id in each.players
    ]
    checks = [
        check.timeout_ms / _MINUTE_MS if check.timeout_ms else CHECK_MINUTES
        for check in each.checks
    ]
    # Where no check is declared, one may be found in the project.
    return max(limits, default=TURN_MINUTES) + 2 * sum(checks or [CHECK_MINUTES])


def _minutes_in_all(
    settled: Sequence[Settled], parts: Sequence[Bound], max_parallel: int
) -> float | None:
    """The longest way along ``after``; the sum, where some would wait for each other's agents."""
    minutes = {part.name: part.minutes for part in parts}
    if any(value is None for value in minutes.values()):
        return None
    if not _undisturbed(settled, max_parallel):
        return sum(value or 0 for value in minutes.values())
    ends: dict[str, float] = {}

    def end(each: Settled) -> float:
        if each.id not in ends:
            befores = [end(other) for other in settled if other.id in each.after]
            ends[each.id] = max(befores, default=0.0) + (minutes[each.id] or 0)
        return ends[each.id]

    return max((end(each) for each in settled), default=0.0)


def _undisturbed(settled: Sequence[Settled], max_parallel: int) -> bool:
    by_id = {each.id: each for each in settled}
    pairs = side_by_side({each.id: each.after for each in settled})
    crowd = frozenset().union(*(by_id[one].players | by_id[other].players for one, other in pairs))
    apart = all(not by_id[one].players & by_id[other].players for one, other in pairs)
    return apart and len(crowd) <= max_parallel


def _overrun(budget: float | None, running: int) -> str:
    if budget is None:
        return "unbounded"
    return f"{budget:,} + one turn of each of up to {running} running agents"


def _least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


def _more(values: Sequence[int | None], than: int) -> int | None:
    """How much more the dearest of these takes than what it stands in for."""
    known = [value for value in values if value is not None]
    return max(0, max(known) - than) if len(known) == len(values) else None


def _plus(whole: int | None, times: int, each: int | None) -> int | None:
    if not times:
        return whole
    return None if whole is None or each is None else whole + times * each


def _sum(values: Iterable[Any]) -> Any:
    listed = list(values)
    return None if None in listed else sum(listed)
