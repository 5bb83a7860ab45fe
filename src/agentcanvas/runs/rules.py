"""The rules that hold for each agent: those of all, then its own (F1, S9).

Rules that last are files, read anew by every run; what cannot be read, or not whole, is told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentcanvas.flows.model import Flow
from agentcanvas.protocol.packet import Rule

_LARGEST: Final = 64_000
_MARKDOWN: Final = ".md"


def rules_of(flow: Flow, workspace: Path) -> tuple[dict[str, tuple[Rule, ...]], list[str]]:
    """Rules by agent, and a sentence for each file that could not be read whole."""
    files = _RuleFiles(workspace)
    common = [rule for ref in flow.common_rules.rule_chain_refs for rule in files.named(ref)]
    rules = {
        agent.id: (
            *common,
            *[rule for said in agent.rules for rule in files.or_words(agent.id, said)],
        )
        for agent in flow.agents
    }
    return rules, list(files.told)


class _RuleFiles:
    """Reads rule files; ``told`` has a sentence for each that was not read whole, once."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.told: dict[str, None] = {}

    def named(self, ref: str) -> list[Rule]:
        """The rules of a file, given as ``SCOPE:path`` or as a path."""
        scope, _, name = ref.partition(":")
        return self._rules(ref, name or scope)

    def or_words(self, agent_id: str, said: str) -> list[Rule]:
        """What an agent's own rule says: the words themselves, unless they name a file."""
        if self._path(said) is None and not _is_named_like_a_file(said):
            return [Rule(agent_id, said)]
        return self._rules(said, said)

    def _rules(self, ref: str, name: str) -> list[Rule]:
        path = self._path(name)
        content = None if path is None else _beginning(path)
        if content is None:
            self.told[f"The rules {ref} were not found and are left out."] = None
            return []
        if len(content) > _LARGEST:
            self.told[f"Of the rules {ref} only the first {_LARGEST:,} bytes are in effect."] = None
        return [Rule(ref, content[:_LARGEST].decode("utf-8", "replace"))]

    def _path(self, name: str) -> Path | None:
        """The file of that name; a pipe or a device, which might never end, is none."""
        try:
            path = self._workspace / Path(name).expanduser()
            return path if path.is_file() else None
        except (OSError, RuntimeError, ValueError):  # too long, no home, a null byte: no name
            return None


def _is_named_like_a_file(said: str) -> bool:
    return said.endswith(_MARKDOWN) and len(said.split()) == 1


def _beginning(path: Path) -> bytes | None:
    """One byte more than is taken, to see whether there is more; None for what cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST + 1)
    except OSError:
        return None
