"""A team that is cut off at any moment: two tasks side by side, one revised, a third on both.

The agents do the same whenever they are asked, so every way through a run has to end in the same
tree. ``main`` is a process that carries the run out, or goes on with it, and prints every event
when it is on disk, to be killed in the middle.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_engine
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.office import RunOrder
from tests.runs.workspaces import repository

PLAN = {
    "tasks": [
        {"task_id": "t1", "agent": "ada", "description": "Write one.txt", "scope": ["one.txt"]},
        {"task_id": "t2", "agent": "ben", "description": "Write two.txt", "scope": ["two.txt"]},
        {
            "task_id": "t3",
            "agent": "ada",
            "description": "Write three.txt",
            "depends_on": [{"task_id": "t1"}, {"task_id": "t2"}],
        },
    ]
}

FINAL = {
    "README.md": "# Hi\n",
    "one.txt": "draft\nmended\n",
    "two.txt": "two\n",
    "three.txt": "draft\nmended\ntwo\n",
}

_FLOW = """\
version: 0.2
agents:
  - {{id: boss, name: Boss, role: orchestrator, runtime: {boss}}}
  - {{id: ada, name: Ada, role: worker, runtime: {ada}}}
  - {{id: ben, name: Ben, role: worker, runtime: {ben}}}
  - {{id: critic, name: Critic, role: reviewer, runtime: {critic}}}
interactions:
  - id: build
    patternId: manager_worker
    roles: {{manager: boss, worker: [ada, ben]}}
    data:
      termination:
        - {{type: max_rounds, rounds: 1}}
checks:
  - {{name: readme, command: test -f README.md}}
review: {{reviewer: critic, max_iterations: 3}}
budgets: {{turns: 30, minutes: 60}}
"""

# What the workers do; a revision goes on from what the turn before has left.
_ONE = "if test -f one.txt; then echo mended >> one.txt; else echo draft > one.txt; fi"
_TWO = "echo two > two.txt"
_THREE = "cat one.txt two.txt > three.txt"


def python_flow() -> str:
    """The team as functions of this process."""
    runtime = "{kind: python, call: tests.runs.crash_child:unused}"
    return _FLOW.format(boss=runtime, ada=runtime, ben=runtime, critic=runtime)


def process_flow() -> str:
    """The team as scripts and commands, whose work is done by real processes."""
    scripts = {
        name: f"{{kind: script, script: .agentcanvas/flows/{name}.yaml}}" for name in SCRIPTS
    }
    return _FLOW.format(ben=f"{{kind: command, command: {_TWO}}}", **scripts)


SCRIPTS: dict[str, dict[str, Any]] = {
    "boss": {
        "turns": [
            {"turn": 1, "steps": [{"say": PLAN}]},
            {"turn": 2, "steps": [{"say": "All there."}]},
        ]
    },
    "ada": {
        "turns": [
            {"task": "t1", "steps": [{"run": _ONE}]},
            {"task": "t1", "revision": 1, "steps": [{"run": _ONE}]},
            {"task": "t3", "steps": [{"run": _THREE}]},
        ]
    },
    "critic": {
        "turns": [
            {"task": "review-t1", "steps": [{"say": "REVISE: mend it"}]},
            {"task": "review-t1", "revision": 1, "steps": [{"say": "APPLY"}]},
            {"task": "review-t2", "steps": [{"say": "APPLY"}]},
            {"task": "review-t3", "steps": [{"say": "APPLY"}]},
        ]
    },
}


def unused(turn: Turn) -> str:
    """Stand in for the functions that ``functions`` gives."""
    raise AssertionError(turn)


def boss(turn: Turn) -> Any:
    return PLAN if turn.number == 1 else "All there."


def worker(turn: Turn) -> str:
    assert turn.place is not None
    tree = turn.place.tree
    one, two, three = (tree / f"{name}.txt" for name in ("one", "two", "three"))
    if turn.task_id == "t1":
        one.write_text(one.read_text() + "mended\n" if one.exists() else "draft\n")
    elif turn.task_id == "t2":
        two.write_text("two\n")
    else:
        three.write_text(one.read_text() + two.read_text())
    return "Done."


def critic(turn: Turn) -> str:
    first_draft = turn.task_id == "review-t1" and turn.revision == 0
    return "REVISE: mend it" if first_draft else "APPLY"


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "boss": boss,
    "ada": worker,
    "ben": worker,
    "critic": critic,
}


def workspace(root: Path) -> Path:
    """A repository for the team, with its scripts."""
    repository(root, {"README.md": "# Hi\n"})
    flows = root / ".agentcanvas" / "flows"
    flows.mkdir(parents=True)
    for name, script in SCRIPTS.items():
        (flows / f"{name}.yaml").write_bytes(msgspec.json.encode(script))  # JSON is YAML
    return root


def order(flow_text: str) -> RunOrder:
    return RunOrder(flow="team", flow_text=flow_text, request="Write three files")


async def the_run(engine: Engine) -> str:
    """The one run there is, begun now if there is none."""
    runs = await engine.runs()
    return runs[0].run_id if runs else await engine.start(order(process_flow()))


async def main(root: Path) -> None:
    """Carry the run out, or go on with it, to its end."""
    async with open_engine(root, resume=True) as (engine, _):
        async for entry in engine.events(await the_run(engine)):
            os.write(1, f"{entry.seq} {e.kind_of(entry.event)}\n".encode())


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
