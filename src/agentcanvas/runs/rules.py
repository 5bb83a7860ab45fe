"""The rules that hold for each agent: those of all, then its own (F1, S9)."""

from __future__ import annotations

from pathlib import Path

from agentcanvas.flows.model import Flow
from agentcanvas.protocol.packet import Rule

_LARGEST = 64_000


def rules_of(flow: Flow, workspace: Path) -> tuple[dict[str, tuple[Rule, ...]], list[str]]:
    """Rules by agent, and a sentence for each file that could not be read."""
    missing: list[str] = []
    common = []
    for ref in flow.common_rules.rule_chain_refs:
        scope, _, name = ref.partition(":")
        text = _text(name or scope, workspace)
        if text is None:
            missing.append(f"The rules {ref} were not found and are left out.")
        else:
            common.append(Rule(ref, text))
    rules = {}
    for agent in flow.agents:
        own = [Rule(agent.id, _text(rule, workspace) or rule) for rule in agent.rules]
        rules[agent.id] = (*common, *own)
    return rules, missing


def _text(name: str, workspace: Path) -> str | None:
    """The content of a rule file; None for what is no file that can be read."""
    if "\n" in name or len(name) > _LARGEST:
        return None
    path = Path(name).expanduser()
    path = path if path.is_absolute() else workspace / path
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
