"""Making the ground ready before anybody works: the setup of a flow, once for a run.

What it made is given to every sandbox and evidence copy of the run. It runs confined like an agent,
with the network that the flow gives it and no other.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from msgspec import Struct

from agentcanvas.flows.ground import Setup
from agentcanvas.runs import events as e
from agentcanvas.runs.context import RunContext
from agentcanvas.sandbox.confine import Door, Network
from agentcanvas.sandbox.egress.log import Request, Tell
from agentcanvas.sandbox.egress.proxy import open_egress
from agentcanvas.sandbox.egress.rules import Rules, host_rule
from agentcanvas.sandbox.limits import Limits
from agentcanvas.sandbox.setup import LIMITS, run_setup

_HOSTS_NAMED = 5
_STEP = "setup"


class _Ready(Struct, frozen=True):
    """That it was done, with what the user should know of it."""

    notes: tuple[str, ...] = ()


async def prepare(run: RunContext, setup: Setup) -> None:
    """Run the setup, unless this run has done so; one that fails ends the run with its words."""

    async def effect() -> tuple[_Ready, Sequence[e.RunEvent]]:
        base = await run.ground.current()
        refused: dict[str, None] = {}

        def tell(request: Request) -> None:
            if not request.allowed:
                refused[f"{request.host}:{request.port}"] = None

        run.clock.hold()  # a process takes real time
        try:
            async with _door(setup, tell) as (network, door):
                done = await run_setup(
                    base,
                    setup.command,
                    run.confinement,
                    network=network,
                    door=door,
                    env={name: os.environ[name] for name in setup.env if name in os.environ},
                    limits=_limits(setup),
                    fresh=setup.fresh,
                )
        finally:
            run.clock.release()
        run.ground.adopt(done.base)
        notes = (*done.notes, *_missing(setup), *_refused(refused))
        log = done.log.relative_to(run.ground.workspace).as_posix()
        payload = e.Setup(setup.command, log, notes)
        return _Ready(notes), [
            e.SetupDone(actor="engine", provenance=e.Provenance.SYSTEM, payload=payload)
        ]

    await run.once(_STEP, setup.command, _Ready, effect)


@asynccontextmanager
async def _door(setup: Setup, tell: Tell) -> AsyncIterator[tuple[Network, Door | None]]:
    said = setup.network
    network = Network.NONE if said is None else Network(said.mode.value)
    if said is None or not network.is_behind_a_door:
        yield network, None
        return
    rules = Rules(hosts=tuple(map(host_rule, said.hosts)))
    async with open_egress(rules, tell) as door:
        yield network, door


def _limits(setup: Setup) -> Limits:
    if setup.timeout_ms is None:
        return LIMITS
    return replace(LIMITS, deadline_s=setup.timeout_ms / 1000)


def _missing(setup: Setup) -> list[str]:
    return [
        f"{name} is not set here and could not be passed on."
        for name in setup.env
        if name not in os.environ
    ]


def _refused(hosts: dict[str, None]) -> list[str]:
    if not hosts:
        return []
    more = len(hosts) - _HOSTS_NAMED
    named = ", ".join(list(hosts)[:_HOSTS_NAMED]) + (f" and {more} more" if more > 0 else "")
    return [f"The setup may not reach {named}; name them in setup.network if that is meant."]
