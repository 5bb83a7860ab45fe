"""The options of a command line, judged in the words that a person typed.

Judged as a flow they would be told in the words of its text, which that person never saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from agentcanvas.agents.command_line import missing_program, unfit
from agentcanvas.app.composing import Wishes, network_of
from agentcanvas.errors import FlowError, ValidationError
from agentcanvas.flows.model import Flow
from agentcanvas.flows.problem import Problem
from agentcanvas.flows.rules.agents import variables
from agentcanvas.flows.rules.guards import globs
from agentcanvas.flows.team import NetworkMode
from agentcanvas.sandbox.egress.providers import PROVIDERS
from agentcanvas.sandbox.selection import unmatched


def refuse_slips(command: str | None, wishes: Wishes, root: Path) -> None:
    """Refuse options that no run could have been meant by; ``command`` is the one that is used."""
    if command is not None:
        _refuse_command(command, root)
    if wishes.network is not None:
        _refuse_network(wishes.network, command, wishes)
    for option, found in (
        ("--env", variables(wishes.env, "")),
        ("--bring", globs("", wishes.bring)),
        ("--scope", globs("", wishes.scope)),
    ):
        for problem in found:
            raise FlowError(_in_words(option, problem))


def _refuse_command(command: str, root: Path) -> None:
    if problem := unfit((command,)):
        raise FlowError(f"--command {problem}")
    if program := missing_program(command, root):
        raise FlowError(
            f"There is no program {program} here, so --command would fail; install it, or correct "
            "its name"
        )


def _refuse_network(network: str, command: str | None, wishes: Wishes) -> None:
    network_of(network)
    is_aimless = command is not None and not PROVIDERS.keys() & set(wishes.env)
    if network == NetworkMode.MODEL and is_aimless:
        raise FlowError(
            "--network model does not say which model; add --env ANTHROPIC_API_KEY (or "
            f"{', '.join(sorted(PROVIDERS.keys() - {'ANTHROPIC_API_KEY'}))}). The agent uses the "
            "key without seeing it."
        )


def _in_words(option: str, problem: Problem) -> str:
    sentence = f"{option}: {problem.sentence}"
    return f"{sentence}; {problem.suggestion}" if problem.suggestion else sentence


def told_before(
    flow: Flow, wishes: Wishes, root: Path, environ: Mapping[str, str]
) -> Iterator[str]:
    """What was asked for and will not be there; a run goes on without it."""
    for agent in flow.agents:
        runtime = agent.runtime
        if runtime is None:
            continue
        who = "the agent" if len(flow.agents) == 1 else agent.id
        for name in runtime.env:
            if name not in environ:
                yield f"{name} is not set here, so {who} will not have it."
    try:
        for glob in unmatched(root, wishes.bring):
            yield f"--bring {glob}: nothing to take."
    except ValidationError:  # what cannot be read is told by the run itself
        return
