"""The rules that hold for each agent: those of all, then its own (F1, S9).

Rules that last are files, read anew by every run; what cannot be read, or not whole, is told. Those
of a project are read from the frozen files of the run: a flow can have an agent told nothing that
agents do not see anyway, be it behind a link, ignored by git, or outside the workspace. Of the
user's home only Markdown can be named, which is what rules are written in and keys are not.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from agentcanvas.errors import PathRefused
from agentcanvas.flows.model import Flow
from agentcanvas.protocol.packet import Rule
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.paths import workspace_relative

_LARGEST: Final = 64_000
_MARKDOWN: Final = ".md"
_HOME: Final = "~/"
_PATHS: Final = (_HOME, "/", "./", "../")


def rules_of(flow: Flow, base: Generation) -> tuple[dict[str, tuple[Rule, ...]], list[str]]:
    """Rules by agent, and a sentence for each file that could not be read whole."""
    files = _RuleFiles(base)
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

    def __init__(self, base: Generation) -> None:
        self._base = base
        self.told: dict[str, None] = {}

    def named(self, ref: str) -> list[Rule]:
        """The rules of a file, given as ``SCOPE:path`` or as a path."""
        scope, _, name = ref.partition(":")
        return self._rules(ref, name or scope)

    def or_words(self, agent_id: str, said: str) -> list[Rule]:
        """What an agent's own rule says: the words themselves, unless they name a file."""
        if not self._is_there(said) and not _is_named_like_a_file(said):
            return [Rule(agent_id, said)]
        return self._rules(said, said)

    def _rules(self, ref: str, name: str) -> list[Rule]:
        try:
            content = self._content(name)
        except PathRefused as why:
            self.told[f"The rules {ref} are left out: {why}."] = None
            return []
        if content is None:
            self.told[f"The rules {ref} were not found and are left out."] = None
            return []
        if len(content) > _LARGEST:
            self.told[f"Of the rules {ref} only the first {_LARGEST:,} bytes are in effect."] = None
        return [Rule(ref, content[:_LARGEST].decode("utf-8", "replace"))]

    def _content(self, name: str) -> bytes | None:
        """The beginning of a file; one byte more than is taken, to see whether there is more."""
        if name.startswith(_HOME):
            return _at_home(name)
        path = workspace_relative(name)
        stamp = self._base.seen.get(path)
        if stamp is None:
            if not _is_file(self._base.workspace / os.fsdecode(path)):
                return None
            raise PathRefused(
                f"agents do not see {name}, which git ignores or a link leads to; name it under "
                "bring: or move it"
            )
        if not stat.S_ISREG(stamp[0]):
            raise PathRefused(f"{name} is a link; put the file itself there")
        return _beginning(self._base.tree / os.fsdecode(path))

    def _is_there(self, said: str) -> bool:
        try:
            path = workspace_relative(said)
        except (PathRefused, ValueError):
            return False
        return path in self._base.seen or _is_file(self._base.workspace / os.fsdecode(path))


def _at_home(name: str) -> bytes | None:
    """Read a file of the home folder, where many have links to the place they keep it in."""
    home, found = Path.home().resolve(), Path(name).expanduser().resolve()
    if found.suffix != _MARKDOWN or not found.is_relative_to(home):
        raise PathRefused(
            f"{name} is no Markdown file in your home; only those are taken from outside the "
            "workspace"
        )
    return _beginning(found) if found.is_file() else None


def _is_named_like_a_file(said: str) -> bool:
    return (said.endswith(_MARKDOWN) or said.startswith(_PATHS)) and len(said.split()) == 1


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or a null byte
        return False


def _beginning(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST + 1)
    except OSError:
        return None
