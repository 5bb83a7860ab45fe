"""The coding CLIs that can be driven, and which of them a member gets (``backendId: auto``).

The one list of adapters; each is imported only when it is looked at.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from agentcanvas.agents.cli.adapter import Adapter
from agentcanvas.agents.cli.find import on_the_path
from agentcanvas.agents.cli.kit import CliWishes
from agentcanvas.agents.cli.providers import Api, Provider, provider_for
from agentcanvas.app.logins import Login, login_of
from agentcanvas.errors import FlowError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.flows.team import Agent, Runtime
from agentcanvas.protocol.limits import CLI_ORDER

AUTO: Final = "auto"
CLIS: Final = tuple(CLI_ORDER.split())
"""Every CLI there is an adapter for, in the order in which ``auto`` looks for them."""

_OPTIONS: Final[Mapping[str, type]] = {
    "system": str,
    "max_turns": int,
    "bypass": bool,
    "api": str,
}


class Choice(Struct, frozen=True):
    """A CLI for a member, with the way to its model: a key, or a login of its own."""

    adapter: Adapter
    provider: Provider | None = None
    login: Login | None = None


@cache
def adapter_of(name: str) -> Adapter:
    """The adapter of a CLI by its id."""
    if name not in CLIS:
        advice = did_you_mean(name, CLIS)
        raise FlowError(f"There is no coding CLI '{name}' here; {advice}.")
    found = importlib.import_module(f"agentcanvas.agents.runtimes.cli.{name}").ADAPTER
    assert isinstance(found, Adapter)
    return found


def choose(said: Runtime, environ: Mapping[str, str], order: Iterable[str] = CLIS) -> Choice:
    """The CLI that a flow asks for, or the first in order that is here and has a way to a model."""
    wanted = said.backend_id or AUTO
    if wanted != AUTO:
        return _fit(adapter_of(wanted), said, environ)
    reasons = []
    for name in order:
        adapter = adapter_of(name)
        if not on_the_path(adapter.facts, environ).usable:
            continue
        try:
            return _fit(adapter, said, environ)
        except FlowError as why:
            reasons.append(str(why).rstrip("."))
    if reasons:
        raise FlowError(f"No coding CLI here can be used yet: {'; '.join(reasons)}.")
    raise FlowError(
        f"No coding CLI was found on the PATH ({', '.join(order)}). Install one, for example: npm "
        "install -g @anthropic-ai/claude-code"
    )


def _fit(adapter: Adapter, said: Runtime, environ: Mapping[str, str]) -> Choice:
    """A CLI with its way to a model; an error says which key or login it lacks."""
    facts = adapter.facts
    if said.command is None:
        found = on_the_path(facts, environ)
        if not found.usable:
            raise FlowError(f"{found.problem}.")
    api = str(said.options.get("api", ""))
    if api and api not in {each.api for each in facts.providers}:
        known = ", ".join(dict.fromkeys(each.api for each in facts.providers)) or "none"
        raise FlowError(f"{facts.title} does not speak the API '{api}'; it speaks {known}.")
    provider = provider_for(
        facts.providers, environ, url=said.url or "", key_env=said.key_env or "", api=api
    )
    if provider is not None:
        if provider.key_env and not environ.get(provider.key_env):
            raise FlowError(
                f"{provider.key_env} is not set, and {facts.title} needs it; export it, or name "
                "another variable with keyEnv."
            )
        return Choice(adapter, provider)
    login = login_of(facts, environ)
    if login is not None:
        return Choice(adapter, login=login)
    raise FlowError(f"{facts.title} has no key and no login of its own: {remedy(adapter)}.")


def remedy(adapter: Adapter) -> str:
    """How a CLI gets a way to its model."""
    facts = adapter.facts
    keys = " or ".join(dict.fromkeys(p.key_env for p in facts.providers))
    steps = [f"export {keys}"] if keys else []
    if facts.credentials:
        steps.append(f"agentcanvas login {facts.id}")
    return ", or ".join(steps)


def wishes_of(agent: Agent, choice: Choice, *, retries: int) -> CliWishes:
    """What a flow says about a member that is a CLI."""
    said = agent.runtime or Runtime()
    options = dict(_checked(agent.id, said.options))
    command = said.command or ()
    return CliWishes(
        model=said.model or "",
        provider=choice.provider,
        login=choice.login,
        program=(command,) if isinstance(command, str) else command,
        system=options.get("system", ""),
        max_turns=options.get("max_turns"),
        retries=retries,
        bypass=options.get("bypass", False),
    )


def _checked(agent_id: str, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        wanted = _OPTIONS.get(name)
        if wanted is None:
            advice = did_you_mean(name, _OPTIONS)
            raise FlowError(f"A cli runtime has no option '{name}' ({agent_id}); {advice}.")
        fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        if not fits or (name == "max_turns" and value < 1) or (name == "api" and value not in Api):
            raise FlowError(
                f"The option {name} of {agent_id} cannot be {value!r}; see docs/agents.md."
            )
        yield name, value
