"""An agent in a process of its own: it doubles numbers until it is ended."""

from __future__ import annotations

import sys

import anyio

from agentcanvas.hub.agent import Agent, Task

doubler = Agent("doubler", capabilities=["arithmetic"])


@doubler.task("double")
async def double(task: Task) -> object:
    """Double a number."""
    return {"twice": 2 * int(task.input)}


if __name__ == "__main__":
    anyio.run(lambda: doubler.serve(sys.argv[1], token=sys.argv[2]))
