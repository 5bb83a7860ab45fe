"""Putting small teams together, and seeing their runs through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentcanvas.agents.runtime import Turn
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.office import RunOrder

PYTHON = {"kind": "python", "call": "tests.chaos.driving:unused"}
"""An agent whose function the engine is given."""

HELLO = {"name": "greeting", "command": "grep -q hello greeting.txt"}


BY_ITSELF = {"autoApprove": True, "allowUnverified": True}
"""A review that lands what no check has judged; for tests about something else."""


def unused(turn: Turn) -> str:
    raise AssertionError(turn)


def command(line: str, **more: Any) -> dict[str, Any]:
    """An agent that is a command line."""
    return {"kind": "command", "command": line, **more}


def flow(
    workers: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    manager: Mapping[str, Any] | None = None,
    critic: Mapping[str, Any] | None = None,
    checks: Sequence[Mapping[str, Any]] = (HELLO,),
    review: Mapping[str, Any] | None = None,
    budgets: Mapping[str, Any] | None = None,
    tasks: Sequence[Mapping[str, Any]] = (),
    rounds: int = 1,
) -> str:
    """A flow as text; one function as worker and you as reviewer, unless said otherwise.

    Without a manager the task is called t1.
    """
    workers = workers or {"coder": PYTHON}
    if manager is None and len(workers) == 1 and not tasks:
        tasks = [{"id": "t1", "agent": next(iter(workers)), "description": "Say hello"}]
    agents = [
        {"id": name, "name": name.capitalize(), "role": "worker", "runtime": runtime}
        for name, runtime in workers.items()
    ]
    roles: dict[str, Any] = {"worker": list(workers)}
    if manager is not None:
        agents.append({"id": "boss", "role": "orchestrator", "runtime": manager})
        roles["manager"] = "boss"
    if critic is not None:
        agents.append({"id": "critic", "role": "reviewer", "runtime": critic})
    interaction = {
        "id": "work",
        "patternId": "manager_worker",
        "roles": roles,
        "data": {"termination": [{"type": "max_rounds", "rounds": rounds}]},
        **({"tasks": list(tasks)} if tasks else {}),
    }
    written = {
        "version": 0.2,
        "agents": agents,
        "interactions": [interaction],
        "checks": list(checks),
        "review": review or {"reviewer": "person" if critic is None else "critic"},
        "budgets": budgets or {"turns": 20, "minutes": 60},
    }
    return msgspec.json.encode(written).decode()  # JSON is YAML


def order(flow_text: str, request: str = "Say hello", **more: Any) -> RunOrder:
    return RunOrder(flow="faults", flow_text=flow_text, request=request, **more)


def tree_of(turn: Turn) -> Path:
    """Where a turn works."""
    assert turn.place is not None
    return turn.place.tree


def writing(name: str, content: str) -> Any:
    """A function that writes one file."""

    def write(turn: Turn) -> str:
        (tree_of(turn) / name).write_text(content)
        return f"I wrote {name}."

    return write


async def rests(engine: Engine, run_id: str, after: int = 0) -> list[e.Recorded]:
    """What happens until the run can do nothing more by itself."""
    return [entry async for entry in engine.events(run_id, after=after)]


async def so_far(engine: Engine, run_id: str) -> list[e.Recorded]:
    """What has happened."""
    return [entry async for entry in engine.events(run_id, follow=False)]


async def ask_of(engine: Engine, run_id: str) -> PersonAsk:
    """The one ask that waits."""
    (ask,) = await engine.asks(run_id)
    return ask


async def judged(engine: Engine, run_id: str, **verdict: str) -> list[e.Recorded]:
    """Answer the one ask that waits, and see how it goes on."""
    ask = await ask_of(engine, run_id)
    seen = await so_far(engine, run_id)
    await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
    return await rests(engine, run_id, seen[-1].seq)


def kinds(entries: Sequence[e.Recorded]) -> list[str]:
    return [e.kind_of(entry.event) for entry in entries]


def payloads(entries: Sequence[e.Recorded], kind: type[Any]) -> list[Any]:
    """What the events of one kind say."""
    return [entry.event.payload for entry in entries if isinstance(entry.event, kind)]
