"""Workspaces to run in: small repositories of a user, with an engine on them."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentcanvas.app.office import open_engine
from agentcanvas.clock import Clock
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.office import RunOrder

GIT = ("-c", "user.name=U", "-c", "user.email=u@example.invalid", "-c", "commit.gpgsign=false")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *GIT, *words], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """A repository with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "start")
    return root


SOLO = """\
version: 0.2
agents:
  - id: coder
    name: Coder
    role: worker
    runtime: {{kind: command, command: {command}}}
interactions:
  - id: work
    patternId: manager_worker
    roles: {{worker: coder}}
    data:
      termination:
        - {{type: max_rounds, rounds: 1}}
checks:
  - {{name: greeting, command: grep -q world greeting.txt}}
review: {{reviewer: person, max_iterations: 3}}
budgets: {{turns: 20, minutes: 60}}
"""


def solo(command: str) -> str:
    """A flow of one command agent; you review."""
    return SOLO.format(command=f'"{command}"')


def order(flow_text: str, request: str = "Greet the world", **more: Any) -> RunOrder:
    return RunOrder(flow="solo", flow_text=flow_text, request=request, **more)


@asynccontextmanager
async def engine_on(
    root: Path,
    *,
    clock: Clock | None = None,
    resume: bool = False,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> AsyncIterator[Engine]:
    async with open_engine(root, clock=clock, resume=resume, functions=functions) as (engine, _):
        yield engine
