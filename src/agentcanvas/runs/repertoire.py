"""The patterns that can be played here, and the words of their roles.

Built-in patterns and a user's own come through the same door. The text of each is taken when it is
loaded, because a run resumes only with the patterns it began with (D4), not with what is on disk by
then.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agentcanvas.errors import FlowError
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.model import Flow
from agentcanvas.flows.pattern_info import PatternInfo, Patterns
from agentcanvas.pattern import Pattern
from agentcanvas.patterns import verified
from agentcanvas.patterns.wording import WORDING, Wording

_OURS = "agentcanvas.patterns"


@dataclass(frozen=True)
class Repertoire:
    """What can be played; ``infos`` is what a flow has to know of each."""

    patterns: Mapping[str, Pattern]
    infos: Patterns
    words: Wording = WORDING
    texts: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    """Patterns of the user that may not be played, and why."""
    odd_prompts: tuple[str, ...] = ()
    """What is wrong with prompts of the user."""

    @classmethod
    def of(
        cls,
        patterns: Iterable[Pattern],
        *,
        infos: Patterns = CATALOGUE,
        words: Wording = WORDING,
        texts: Mapping[str, str] | None = None,
        refused: Mapping[str, str] | None = None,
        odd_prompts: tuple[str, ...] = (),
    ) -> Repertoire:
        """Patterns by their id; ``texts`` are the sources of those not imported as usual."""
        known = {pattern.id: pattern for pattern in patterns}
        given = dict(texts or {})
        sources = {name: source_of(pattern) for name, pattern in known.items() if name not in given}
        around = {"verified": inspect.getsource(verified)}
        return cls(known, infos, words, sources | given | around, refused or {}, odd_prompts)

    def pattern(self, name: str) -> Pattern:
        """A pattern that can be played, or what there is instead."""
        if name in self.refused:
            raise FlowError(f"The pattern {name} is refused: {self.refused[name]}.")
        if name not in self.patterns:
            known = ", ".join(sorted(self.patterns))
            raise FlowError(f"The pattern {name} cannot be run yet; there is {known}.")
        return self.patterns[name]

    def info(self, name: str) -> PatternInfo:
        """What a flow has to know of it."""
        return self.infos[name]

    def options(self, name: str, params: Mapping[str, Any]) -> msgspec.Struct:
        """The options of a pattern from params that may hold more than them."""
        pattern = self.pattern(name)
        fields = {each.name for each in msgspec.structs.fields(pattern.options)}
        given = {key: value for key, value in params.items() if key in fields}
        try:
            return msgspec.convert(given, pattern.options, from_attributes=True)
        except msgspec.ValidationError as wrong:
            raise FlowError(f"{name} cannot take these params: {wrong}") from None

    def fingerprint(self, flow: Flow) -> str:
        """What a run resumes only with: the text of its patterns and of their prompts."""
        whole = hashlib.sha256()
        names = {each.pattern_id for each in flow.interactions}
        for name in [*sorted(names), "verified"]:  # what may be done around any of them
            whole.update(self.texts.get(name, "").encode())
            for prompt, text in sorted(self.words.templates.items()):
                if prompt.startswith(f"{name}."):
                    whole.update(f"{prompt}\n{text}".encode())
        return whole.hexdigest()[:32]


def source_of(pattern: Pattern) -> str:
    """The text of a pattern, and of what it uses of our own beside it."""
    module = inspect.getmodule(type(pattern))
    if module is None:
        return inspect.getsource(type(pattern))
    used = {getattr(value, "__module__", "") or "" for value in vars(module).values()}
    beside = sorted(name for name in used - {module.__name__} if name.startswith(_OURS))
    texts = [inspect.getsource(module)]
    texts += [inspect.getsource(sys.modules[name]) for name in beside if name in sys.modules]
    return "\n".join(texts)
