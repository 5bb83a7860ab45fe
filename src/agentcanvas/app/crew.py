"""Bringing a team to a run: for each agent of the flow a connection, a runtime and a host.

The one place that knows which runtime a word in a flow stands for.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from agentcanvas.agents.asking import asker
from agentcanvas.agents.cassette import Recording, Replaying, Tape, tape_folder
from agentcanvas.agents.cli.runtime import CliRuntime
from agentcanvas.agents.command_line import unfit
from agentcanvas.agents.host import Host
from agentcanvas.agents.orders import Member
from agentcanvas.agents.runtime import Runtime
from agentcanvas.agents.runtimes.command import CommandRuntime
from agentcanvas.agents.runtimes.human import HumanRuntime
from agentcanvas.agents.runtimes.model import ModelRuntime, read_options
from agentcanvas.agents.runtimes.python import PythonRuntime
from agentcanvas.agents.runtimes.script import ScriptRuntime, load_script
from agentcanvas.agents.way_out import WayOut
from agentcanvas.app.clis import Choice, choose, wishes_of
from agentcanvas.app.lines import Extension, Lines
from agentcanvas.app.prices import load_prices
from agentcanvas.app.seats import HandingOver, Place, open_seats, tools_for
from agentcanvas.app.settings_here import settings_here
from agentcanvas.app.ways_out import way_out
from agentcanvas.app.workspace import FOLDER
from agentcanvas.clock import Clock
from agentcanvas.errors import FlowError, ValidationError
from agentcanvas.flows.model import Flow
from agentcanvas.flows.team import Agent
from agentcanvas.flows.team import Runtime as Said
from agentcanvas.hub.client import Connection
from agentcanvas.hub.images import check_images
from agentcanvas.protocol.limits import Limits
from agentcanvas.runs.crew import CrewCall
from agentcanvas.runs.office import RunOrder

NO_SECRETS = frozenset(
    {
        "HOME",
        "PATH",
        "PWD",
        "SHELL",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "LANG",
        "LC_ALL",
        "TERM",
        "EDITOR",
    }
)
"""Variables whose values are all over what agents say; leaving them out would garble it."""

USUAL_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "CODEX_API_KEY")
"""Looked for on tape even where a flow does not name them."""


class LocalCrew:
    """Hosts in this process; ``functions`` are Python agents by their ids."""

    def __init__(
        self,
        lines: Lines,
        clock: Clock,
        *,
        limits: Limits | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._lines = lines
        self._clock = clock
        self._limits = limits or Limits()
        self._functions = dict(functions or {})

    @asynccontextmanager
    async def __call__(self, call: CrewCall) -> AsyncIterator[None]:
        """Have everybody at work until the block ends; then nothing of theirs is left."""
        async with AsyncExitStack() as stack:
            hosts = []
            server = await stack.enter_async_context(open_seats(call))
            remote = [] if call.replay else remote_agents(call.flow, self._functions)
            for agent in call.flow.agents:
                if agent.id in remote:
                    continue
                self._lines.know(secrets_of(agent.runtime or Said(), os.environ))
                extension = await stack.enter_async_context(
                    self._lines.extension(agent.id, call.run_id)
                )
                place = Place(server) if server is not None else None
                hosts.append(self._host(agent, call, extension, place))
            raised: Exception | None = None
            async with anyio.create_task_group() as tasks:
                for host in hosts:
                    tasks.start_soon(host.serve)
                try:
                    await self._lines.wait_for(remote)
                    yield
                except Exception as error:  # noqa: BLE001 - raised again below
                    raised = error
                finally:
                    tasks.cancel_scope.cancel()
            if raised is not None:
                raise raised

    def _host(
        self, agent: Agent, call: CrewCall, extension: Extension, place: Place | None
    ) -> Host:
        said = agent.runtime or Said()
        way = WayOut() if call.replay else self._way_out(agent, said)
        is_person = said.kind == "human"
        usual = self._limits.cli_turn
        return Host(
            Member(
                id=agent.id,
                env=said.env,
                way_out=place.reached_by(way) if place is not None else way,
                timeout_s=_seconds(said.timeout_ms, None if is_person else usual.timeout_s),
                silent_s=None if is_person else _seconds(said.silent_ms, usual.silent_s),
                capabilities=(agent.role,),
            ),
            self._taped(agent, said, call, extension.connection, place),
            extension,
            workspace=call.workspace,
            confinement=call.confinement,
            clock=self._clock,
            keep=call.keep(agent.id),
            next_seq=call.spoken.get(agent.id, 0),
            beats=self._limits.heartbeat,
            limits=self._limits.task,
        )

    def _taped(
        self,
        agent: Agent,
        said: Said,
        call: CrewCall,
        connection: Connection,
        place: Place | None,
    ) -> Runtime:
        """The agent's runtime, or what it said when it was recorded."""
        if call.replay:
            return Replaying(Tape(tape_folder(call.workspace, call.replay)), call.workspace)
        runtime = self._runtime(agent, said, call, connection, place)
        if not call.record:
            return runtime
        tape = Tape(tape_folder(call.workspace, call.record))
        return Recording(runtime, tape, call.workspace, secrets_of(said, os.environ))

    def _way_out(self, agent: Agent, said: Said) -> WayOut:
        if said.kind != "cli" or agent.id in self._functions:
            return way_out(agent)
        choice = self._cli(said)
        if choice.provider is not None:
            return way_out(agent, models=(choice.provider.endpoint,))
        return way_out(agent, hosts=choice.adapter.facts.hosts)

    def _cli(self, said: Said) -> Choice:
        return choose(said, os.environ, self._limits.cli.order.split())

    def _runtime(
        self,
        agent: Agent,
        said: Said,
        call: CrewCall,
        connection: Connection,
        place: Place | None,
    ) -> Runtime:
        if agent.id in self._functions:
            return PythonRuntime(self._functions[agent.id], self._clock)
        match said.kind:
            case "command" if said.command is not None:
                return CommandRuntime(said.command, call.confinement, self._clock)
            case "script" if said.script is not None:
                script = load_script(call.workspace / said.script)
                ask = asker(connection, agent.id, self._clock)
                return ScriptRuntime(script, self._clock, call.confinement, ask_member=ask)
            case "python" if said.call is not None:
                return PythonRuntime(_function(said.call), self._clock)
            case "model" if said.model is not None:
                tools = tools_for(agent.id, call, connection, self._clock)
                model = ModelRuntime(
                    said.model,
                    call.confinement,
                    self._clock,
                    url=said.url,
                    key_env=said.key_env,
                    options=read_options(said.options, agent.id),
                    offer=tools.during,
                )
                return HandingOver(model, tools)
            case "cli":
                choice = self._cli(said)
                retries = self._limits.cli_turn.retries
                runtime = CliRuntime(
                    choice.adapter,
                    call.confinement,
                    self._clock,
                    wishes=wishes_of(agent, choice, retries=retries),
                    price=load_prices(os.environ).estimate,
                    servers=place.servers if place is not None else None,
                )
                if place is None:
                    return runtime
                tools = tools_for(agent.id, call, connection, self._clock, over_mcp=True)
                return place.seated(runtime, tools)
            case "human":
                person = said.options.get("person", "you")
                return HumanRuntime(str(person), call.ask_person, self._clock)
        raise FlowError(
            f"The runtime '{said.kind}' of {agent.id} is not available; use cli, command, "
            "script, python, model or human, and say what to run."
        )


def vet_crew(flow: Flow, order: RunOrder, workspace: Path, functions: Container[str] = ()) -> None:
    """Refuse a run whose team, whose images, or whose cassette is not there."""
    check_images(workspace / FOLDER, order.images)
    if order.record and order.replay:
        raise ValidationError("A run is recorded or replayed, not both; name one cassette.")
    if order.record:
        tape_folder(workspace, order.record)
    if not order.replay:
        check_crew(flow.agents, workspace, functions)
    elif not tape_folder(workspace, order.replay).is_dir():
        raise ValidationError(
            f"There is no cassette {order.replay}; make one by the same "
            f"command with --record {order.replay} in place of --replay {order.replay}"
        )


def remote_agents(flow: Flow, functions: Container[str] = ()) -> list[str]:
    """Those who come by themselves, over a door of the hub: no host is started for them (D40)."""
    return [
        agent.id
        for agent in flow.agents
        if agent.id not in functions and agent.runtime and agent.runtime.kind == "remote"
    ]


def secrets_of(said: Said, environ: Mapping[str, str]) -> dict[str, str]:
    """What an agent gets by name, and the keys of models: none of it belongs into a record."""
    names = {*said.env, *((said.key_env,) if said.key_env else ()), *USUAL_KEYS} - NO_SECRETS
    return {name: environ[name] for name in names if environ.get(name)}


def check_crew(agents: tuple[Agent, ...], workspace: Path, functions: Container[str] = ()) -> None:
    """Refuse a team before anything starts; ``functions`` are agents that need no runtime."""
    for agent in agents:
        if agent.id in functions:
            continue
        way_out(agent)
        said = agent.runtime or Said()
        known = {
            "command": said.command,
            "script": said.script,
            "python": said.call,
            "model": said.model,
            "cli": True,
            "human": True,
            "remote": True,
        }
        if not known.get(said.kind):
            raise FlowError(
                f"The runtime '{said.kind}' of {agent.id} is not available, or lacks what it "
                "needs; use cli, command (with command:), script (with script:), python (with "
                "call:), model (with model:), human or remote."
            )
        if said.kind == "command" and said.command is not None:
            _check_command(agent, said.command)
        if said.script is not None:
            load_script(workspace / said.script)
        if said.kind == "model":
            read_options(said.options, agent.id)
        if said.kind == "cli":
            limits = settings_here(workspace, os.environ).limits
            wishes_of(agent, choose(said, os.environ, limits.cli.order.split()), retries=0)


def _check_command(agent: Agent, command: str | tuple[str, ...]) -> None:
    words = (command,) if isinstance(command, str) else command
    if problem := unfit(words):
        raise FlowError(f"The command of {agent.id} {problem}")


def _seconds(ms: int | None, default: float | None) -> float | None:
    return default if ms is None else ms / 1000


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as wrong:
        raise FlowError(f"The function {name} cannot be imported: {wrong}.") from wrong
    if not callable(found):
        raise FlowError(f"{name} is not a function; name one as package.module:function.")
    return found  # type: ignore[no-any-return]  # whatever the user's module holds
