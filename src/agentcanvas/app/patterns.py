"""The patterns that run here, with what a flow has to know of each (D19)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from agentcanvas.app.own_patterns import has_own, own_patterns
from agentcanvas.app.trust import standing
from agentcanvas.app.workspace import FOLDER
from agentcanvas.errors import FlowError
from agentcanvas.flows.axes import (
    ConsensusThreshold,
    JudgeDecision,
    MaxRounds,
    QualityGate,
    Termination,
    TimeoutMs,
    Topology,
)
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.pattern_info import Case, Cost, PatternInfo, Patterns, RoleInfo
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.pattern import Ends, Pattern, Size
from agentcanvas.patterns import PATTERNS as RUNNABLE
from agentcanvas.patterns.verified import Verified
from agentcanvas.patterns.wording import WORDING, Wording
from agentcanvas.runs.budget import most_turns_a_task
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.runs.staging import looks_of

PROMPTS: Final = "prompts"
_MESSAGES_A_TURN = 2
_LONGEST_PROMPT = 64_000


def worst_case(pattern: Pattern) -> Callable[[Case], Cost]:
    """What a pattern declares as its worst case, in the words of a flow."""

    def worst(case: Case) -> Cost:
        task = most_turns_a_task(case.iterations, agent_reviews=case.agent_reviews)
        size = Size(
            players=case.players,
            rounds=case.rounds,
            tasks=case.tasks,
            ask=case.turns_an_ask,
            task=1 if case.tasks_as_asks else task,
        )
        played = _verified(pattern, case)
        most = played.most(size, _options(pattern, case.params))
        messages = _MESSAGES_A_TURN * most.turns + most.told
        return Cost(most.turns, messages, most.by_role)

    return worst


def _verified(pattern: Pattern, case: Case) -> Pattern:
    if not case.verification:
        return pattern
    return Verified(pattern, looks_of(case.verification, case.params, ("",) * case.checkers))


def _options(pattern: Pattern, params: Mapping[str, Any]) -> msgspec.Struct:
    names = {field.name for field in msgspec.structs.fields(pattern.options)}
    given = {name: value for name, value in params.items() if name in names}
    try:
        return msgspec.convert(given, pattern.options)
    except msgspec.ValidationError as wrong:
        raise FlowError(f"{pattern.id} cannot take these params: {wrong}") from None


_WORST: Final = {pattern.id: worst_case(pattern) for pattern in RUNNABLE}

_OPTIONS: Final = {pattern.id: pattern.options for pattern in RUNNABLE}

KNOWN: Final[Patterns] = MappingProxyType(
    {
        name: msgspec.structs.replace(info, worst_case=_WORST.get(name), options=_OPTIONS.get(name))
        for name, info in CATALOGUE.items()
    }
)
"""Every pattern of the specification; those that run here with their worst case."""


def repertoire_here(
    root: Path, environ: Mapping[str, str], built_in: Iterable[Pattern] = RUNNABLE
) -> Repertoire:
    """Our patterns and the user's, with the prompts as the user has them."""
    ours = {pattern.id: pattern for pattern in built_in}
    own = own_patterns(root, environ, frozenset(ours))
    infos = dict(KNOWN) | {name: info_of(pattern) for name, pattern in own.patterns.items()}
    words = words_here(root, environ)
    return Repertoire.of(
        [*ours.values(), *own.patterns.values()],
        infos=infos,
        words=WORDING.over(words),
        texts=own.texts,
        refused=own.refused,
        odd_prompts=odd_prompts(words, own.patterns),
    )


def infos_here(root: Path, environ: Mapping[str, str]) -> Patterns:
    """What a flow of this workspace may name; quick where nobody has patterns of their own."""
    if not has_own(root):
        return KNOWN
    here = repertoire_here(root, environ)
    refused = {name: PatternInfo(name, (), refused=why) for name, why in here.refused.items()}
    return refused | dict(here.infos)


def info_of(pattern: Pattern) -> PatternInfo:
    """What a flow has to know of a pattern that no specification lists; it says so itself.

    Beside what every pattern has, it may have ``topologies``, ``edges`` between its roles,
    ``ends``, ``needs_timeout``, ``goes_on`` if it collects what it hands over, and
    ``looks_at_gates`` if the Stage need not.
    """
    topologies = getattr(pattern, "topologies", ("p2p",))
    return PatternInfo(
        pattern.id,
        tuple(Topology(name) for name in topologies),
        tuple(
            RoleInfo(role.name, role.least, role.most, role.system, role.writes)
            for role in pattern.roles
        ),
        tuple(getattr(pattern, "edges", ())),
        _terminations(getattr(pattern, "ends", Ends(rounds=3))),
        needs_timeout=bool(getattr(pattern, "needs_timeout", False)),
        goes_on=bool(getattr(pattern, "goes_on", False)),
        options=pattern.options,
        worst_case=worst_case(pattern),
    )


def _terminations(ends: Ends) -> tuple[Termination, ...]:
    found: list[Termination] = []
    if ends.rounds is not None:
        found.append(MaxRounds(ends.rounds))
    if ends.judge:
        found.append(JudgeDecision())
    if ends.consensus is not None:
        found.append(ConsensusThreshold(ends.consensus))
    found += [QualityGate(gate.metric, gate.op, gate.value) for gate in ends.gates]
    if ends.timeout_ms is not None:
        found.append(TimeoutMs(ends.timeout_ms))
    return tuple(found)


def words_here(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's own prompts (``.agentcanvas/prompts/``); none before they are trusted (D43)."""
    folder = root / FOLDER / PROMPTS
    files = sorted(folder.glob("*.md")) if folder.is_dir() else []
    if not files:
        return {}
    found = standing(root, environ)
    read = {path: path.read_bytes() for path in files if found.decision.may_run}
    return {
        path.stem: content.decode("utf-8", "replace")[:_LONGEST_PROMPT]
        for path, content in read.items()
        if found.now.covers(path.relative_to(root).as_posix(), content)
    }


def odd_prompts(own: Mapping[str, str], patterns: Iterable[str]) -> tuple[str, ...]:
    """What of a user's prompts has no effect, or stays a gap in what agents read."""
    users = tuple(f"{name}." for name in patterns)
    return tuple(filter(None, (_odd(name, text, users) for name, text in own.items())))


def _odd(name: str, text: str, users: tuple[str, ...]) -> str:
    if name.startswith(users):
        return ""
    file = f"{FOLDER}/{PROMPTS}/{name}.md"
    if name not in WORDING.templates:
        return f"{file} is read by nobody; {did_you_mean(name, list(WORDING.templates))}"
    known = WORDING.facts(name)
    gaps = sorted(Wording({name: text}).facts(name) - known)
    if not gaps:
        return ""
    there = ", ".join(f"{{{fact}}}" for fact in sorted(known)) or "nothing"
    return f"{file}: nobody fills in {{{gaps[0]}}}; what can be filled in is {there}"
