"""What the rules look at: the sound parts of a flow, and where each of them came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentcanvas.flows.model import Flow, Interaction
from agentcanvas.flows.pattern_info import PatternInfo, Patterns
from agentcanvas.flows.problem import Problem, Rule, at, shown
from agentcanvas.flows.team import Agent

_RESERVED: Final = frozenset({"broadcast", "engine", "hub", "person", "system"})
_ID: Final = re.compile(r"[^\s/\\:\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Scene:
    """Parts that could not be read are absent from ``flow``, but their ids are known."""

    flow: Flow
    agents: Sequence[tuple[str, Agent]]
    """With their pointers."""
    interactions: Sequence[tuple[str, Interaction]]
    agent_ids: Sequence[str]
    interaction_ids: Sequence[str]
    patterns: Patterns
    runtimes: frozenset[str]
    whole: bool
    """Whether everything could be read, so that what is not there is really missing."""

    def info(self, interaction: Interaction) -> PatternInfo | None:
        info = self.patterns.get(interaction.pattern_id)
        return None if info is None or info.refused else info


def repeated(names: Iterable[tuple[str, str]], what: str) -> Iterator[Problem]:
    """A problem for each (pointer, name) whose name was there before."""
    seen: set[str] = set()
    for pointer, name in names:
        if name in seen:
            sentence = f"there are two {what} called {shown(name)}"
            yield Problem(Rule.DUPLICATE_ID, sentence, "rename one of them", pointer)
        seen.add(name)


def unfit_id(name: str, pointer: str) -> Iterator[Problem]:
    """An id is a word that files, logs and addresses can hold."""
    if not _ID.fullmatch(name):
        advice = "use letters, digits, - and _, without spaces, colons or slashes"
        yield Problem(Rule.ID_FORM, f"{shown(name)} cannot be an id", advice, pointer)
    elif name.casefold() in _RESERVED:
        sentence = f"{name} means something else to the hub"
        yield Problem(Rule.ID_FORM, sentence, "take another id", pointer)


def items(pointer: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Each name of a list with its pointer."""
    return [(at(pointer, index), name) for index, name in enumerate(names)]
