"""The words of the built-in roles: one short file a prompt, ``prompts/<pattern>.<name>.md``.

They are text that ships with the code, read like code is; whoever reads a user's own files hands
them over as ``Wording``. ``{fact}`` in a prompt is filled in once, so that braces in what is filled
in stay what they are, and a paragraph whose fact is empty is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Final

from agentcanvas.errors import NotFound

_GAP = re.compile(r"\{([a-z_]+)\}")


class Wording:
    """Prompts by their name."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        self.templates = dict(templates)

    def over(self, own: Mapping[str, str]) -> Wording:
        """The same with some prompts as a user has them."""
        return Wording(self.templates | dict(own))

    def facts(self, name: str) -> frozenset[str]:
        """What a prompt wants to have filled in."""
        return frozenset(_GAP.findall(self._template(name)))

    def fill(self, name: str, facts: Mapping[str, object]) -> str:
        """One prompt as an agent reads it."""
        said = {fact: str(value).strip() for fact, value in facts.items()}
        paragraphs = self._template(name).strip().split("\n\n")
        kept = [each for each in paragraphs if all(said.get(g, g) for g in _GAP.findall(each))]
        return _GAP.sub(lambda gap: said.get(gap[1], gap[0]), "\n\n".join(kept))

    def _template(self, name: str) -> str:
        if name not in self.templates:
            raise NotFound(f"There is no prompt {name}.md; add it, or use the pattern's own.")
        return self.templates[name]


def listed(sayings: Iterable[object]) -> str:
    """Things without an order, a line each."""
    return "\n".join(f"- {saying}" for saying in sayings)


def numbered(sayings: Iterable[object]) -> str:
    """Things in their order, a line each."""
    return "\n".join(f"{number}. {saying}" for number, saying in enumerate(sayings, 1))


def _shipped() -> dict[str, str]:
    folder = files("agentcanvas.patterns") / "prompts"
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".md")
    }


WORDING: Final = Wording(_shipped())
"""The prompts that come with AgentCanvas."""
