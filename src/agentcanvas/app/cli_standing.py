"""How each coding CLI stands on this machine, and what exactly would mend it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
from msgspec import UNSET, Struct

from agentcanvas.agents.cli.find import Found, find, on_the_path
from agentcanvas.agents.cli.runtime import CliRuntime
from agentcanvas.agents.outbound import Outbound, open_door
from agentcanvas.agents.runtime import Turn, TurnResult
from agentcanvas.app.clis import CLIS, Choice, adapter_of, choose, remedy, wishes_of
from agentcanvas.app.prices import load_prices
from agentcanvas.app.ways_out import way_out
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentCanvasError, FlowError
from agentcanvas.flows.team import Agent, Runtime
from agentcanvas.protocol.records import FailureClass
from agentcanvas.sandbox.pick import pick

_QUESTION: Final = "Reply with the single word READY. Do nothing else."
_LIMIT_S: Final = 120.0
_LONGEST: Final = 120
_CENT: Final = 0.01

_FIXES: Final = {
    FailureClass.RATE_LIMIT: "wait until the limit ends, or use another CLI",
    FailureClass.QUOTA: "look at the billing of the account that the key belongs to",
    FailureClass.MODEL_NOT_FOUND: "name a model that the key may use: model: … in the flow",
    FailureClass.NETWORK: "see whether this machine reaches the service",
    FailureClass.SERVER: "try again later; the service answers with errors",
    FailureClass.TIMEOUT: "try it by hand; it did not answer in time",
    FailureClass.STALLED: "try it by hand; it says nothing",
}


class Standing(Struct, frozen=True):
    """A CLI as it stands: found or not, which version, with which way to a model."""

    name: str
    found: Found
    choice: Choice | None = None
    lacks: str = ""

    @property
    def is_here(self) -> bool:
        """Whether there is a program of its name."""
        return bool(self.found.program)

    @property
    def is_usable(self) -> bool:
        """Whether a member of a team could be it."""
        return self.found.usable and self.choice is not None

    @property
    def sentence(self) -> str:
        """How it stands."""
        if not self.found.usable:
            return self.found.problem.partition("; ")[0]
        return f"{self.found.shown} ({self._tried}), {self._way}"

    @property
    def _tried(self) -> str:
        facts = adapter_of(self.name).facts
        if not facts.tested:
            return "untried"
        same = self.found.shown == facts.tested
        return f"tried on {facts.tested_on}" if same else f"tried with {facts.tested}"

    @property
    def _way(self) -> str:
        if self.choice is None:
            return "no key and no login"
        provider = self.choice.provider
        if provider is None:
            return f"login in {self.choice.login.home}" if self.choice.login else "no key"
        return f"key in {provider.key_env}" if provider.key_env else "no key needed"

    @property
    def fix(self) -> str:
        """What to do; empty if nothing."""
        if not self.found.usable:
            return self.found.problem.partition("; ")[2]
        return self.lacks


class Tried(Struct, frozen=True):
    """What came of asking once; ``fix`` is empty when it went well."""

    sentence: str
    fix: str = ""


async def standing_of(
    name: str, environ: Mapping[str, str], said: Runtime | None = None
) -> Standing:
    """Look at one CLI; ``said`` is what a flow would say of its model and key."""
    adapter = adapter_of(name)
    found = await find(adapter.facts, environ)
    said = said or Runtime()
    try:
        choice = choose(
            Runtime(backend_id=name, model=said.model, url=said.url, key_env=said.key_env), environ
        )
    except FlowError as why:
        named = said.url or said.key_env
        return Standing(name, found, lacks=str(why).rstrip(".") if named else remedy(adapter))
    return Standing(name, found, choice)


async def all_standings(environ: Mapping[str, str]) -> tuple[Standing, ...]:
    """Look at every CLI that is on the PATH, all at once: most take a second to say hello."""
    here = [name for name in CLIS if on_the_path(adapter_of(name).facts, environ).program]
    found: dict[str, Standing] = {}

    async def look(name: str) -> None:
        found[name] = await standing_of(name, environ)

    async with anyio.create_task_group() as tasks:
        for name in here:
            tasks.start_soon(look, name)
    return tuple(found[name] for name in here)


async def ask_once(
    standing: Standing, environ: Mapping[str, str], said: Runtime | None = None
) -> Tried:
    """Ask it for one word, confined and with the way to its model that a run would give it."""
    assert standing.choice is not None
    try:
        result = await _asked(standing, standing.choice, environ, said or Runtime())
    except AgentCanvasError as error:
        return Tried(str(error).rstrip("."), "mend that, then look again")
    if result.ok:
        answer = " ".join(result.text.split())[:_LONGEST]
        return Tried(f"answered {answer!r}{_cost(result)}")
    return Tried(result.error.rstrip("."), _fix(standing, result))


async def _asked(
    standing: Standing, choice: Choice, environ: Mapping[str, str], said: Runtime
) -> TurnResult:
    confinement = (await pick()).confinement
    runtime = Runtime(kind="cli", backend_id=standing.name, model=said.model)
    agent = Agent(id="trial", runtime=runtime)
    models = (choice.provider.endpoint,) if choice.provider else ()
    hosts = () if choice.provider else choice.adapter.facts.hosts
    cli = CliRuntime(
        choice.adapter,
        confinement,
        SystemClock(),
        wishes=wishes_of(agent, choice, retries=0),
        environ=environ,
        price=load_prices(environ).estimate,
    )
    turn = Turn(
        turn_id="trial",
        run_id="trial",
        agent_id="trial",
        prompt=_QUESTION,
        timeout_s=_LIMIT_S,
        silent_s=_LIMIT_S,
    )
    way = way_out(agent, models=models, hosts=hosts)
    return await Outbound(cli, way, opening=open_door).run(turn, lambda _: None)


def _cost(result: TurnResult) -> str:
    cost = result.usage.cost
    if cost is UNSET:
        return ""
    about = "about " if result.usage.estimated is True else ""
    return f" for {about}${cost:.2f}" if cost >= _CENT else " for under $0.01"


def _fix(standing: Standing, result: TurnResult) -> str:
    failure = result.error_class or FailureClass.UNKNOWN
    if failure is FailureClass.AUTH:
        return f"mend its key or login: {remedy(adapter_of(standing.name))}"
    return _FIXES.get(failure, f"try it by hand: {standing.found.program}")
