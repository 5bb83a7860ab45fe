"""A repository, and a coder who proposes a change to it, is sent back, and does better.

The engine, the store, git and the server are the product's own; only the agents are functions.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_engine
from agentcanvas.app.planning import WorkspacePlanner
from agentcanvas.app.server import serve_beside
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.office import RunOrder
from tests.chaos.driving import tree_of
from tests.runs.workspaces import repository

BUCKET = '''\
"""Limits of the public API."""

import time


class TokenBucket:
    """Lets so many requests pass."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._updated = time.time()

    def take(self, cost: int = 1) -> bool:
        self._refill()
        if self._tokens < cost:
            return False
        self._tokens -= cost
        return True

    def _refill(self) -> None:
        now = time.time()
        gained = (now - self._updated) * self.rate
        self._tokens = min(self.burst, self._tokens + gained)
        self._updated = now
'''
SETTINGS = "".join(f"option_{n} = {n}\n" for n in range(1, 31))
OLD_NAME = "".join(f"    step {n} of the guide\n" for n in range(1, 12))


def dot(red: int, size: int = 24) -> bytes:
    """A PNG of one colour."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((red, 90, 160)) * size for _ in range(size))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def first(tree: Path) -> str:
    """A limiter that divides by zero, a guide that moves, a picture, a setting at either end."""
    bucket = tree / "ledger" / "limits" / "bucket.py"
    text = bucket.read_text()
    text = text.replace("self._tokens = burst", "self._tokens = float(burst)")
    text = text.replace("time.time()", "time.monotonic()")
    text = text.replace(
        "            return False\n",
        "            wait = (cost - self._tokens) / self.rate\n"
        "            return Decision.deny(retry_after=wait)\n",
    )
    bucket.write_text(text.replace("-> bool", "-> Decision").replace("return True", "return OK"))
    (tree / "ledger" / "limits" / "decision.py").write_text(
        '"""What a limit says."""\n\nOK = "ok"\n'
    )
    (tree / "docs" / "limits.md").write_text(OLD_NAME + "    and a last one\n")
    (tree / "docs" / "guide.md").unlink()
    (tree / "docs" / "logo.png").write_bytes(dot(200))
    settings = (tree / "settings.ini").read_text()
    settings = settings.replace("option_2 = 2", "option_2 = two")
    (tree / "settings.ini").write_text(settings.replace("option_29 = 29", "option_29 = many"))
    return "Token-bucket limiter: refills by a clock that only goes forward, and tells the wait."


def second(tree: Path) -> str:
    """The same without the division by zero."""
    bucket = tree / "ledger" / "limits" / "bucket.py"
    bucket.write_text(
        bucket.read_text().replace(
            "            wait = (cost - self._tokens) / self.rate\n",
            "            wait = (cost - self._tokens) / self.rate if self.rate else None\n",
        )
    )
    return "Token-bucket limiter: a rate of 0 blocks a key without dividing by it."


def coder(turn: Turn) -> str:
    """What the coder does in this turn."""
    is_second = "was not accepted yet" in turn.prompt
    return (second if is_second else first)(tree_of(turn))


def critic(turn: Turn) -> str:
    """Finds the division by zero as long as it is there."""
    line = "            wait = (cost - self._tokens) / self.rate\n"
    text = (tree_of(turn) / "ledger" / "limits" / "bucket.py").read_text()
    del text
    if f"+{line}" not in turn.prompt:
        return "APPLY"
    number = 1 + first_lines().index(line.rstrip("\n"))
    found = [
        finding("major", "Settings allow `rate: 0` to block a key. This divides by zero.", number),
        finding("minor", "The name `wait` reads like a verb.", number),
    ]
    said = {"decision": "revise", "reason": "A rate of 0 divides by zero.", "findings": found}
    return json.dumps(said)


def finding(severity: str, description: str, line: int) -> dict[str, Any]:
    place = {"file": "ledger/limits/bucket.py", "line_start": line}
    return {"severity": severity, "description": description, "location": place}


def first_lines() -> list[str]:
    """The bucket after the first attempt."""
    text = BUCKET.replace(
        "            return False\n",
        "            wait = (cost - self._tokens) / self.rate\n"
        "            return Decision.deny(retry_after=wait)\n",
    )
    return text.splitlines()


def rival(turn: Turn) -> str:
    """Change the line that the other one changes, too."""
    path = tree_of(turn) / "settings.ini"
    path.write_text(path.read_text().replace("option_2 = 2", f"option_2 = {turn.agent_id}"))
    return f"The second option is {turn.agent_id}'s."


def lock_file(turn: Turn) -> str:
    """A file that nobody reads."""
    (tree_of(turn) / "all.lock").write_text("".join(f"package {n}\n" for n in range(31_000)))
    return "A lock file of many lines."


PYTHON = {"kind": "python", "call": "tests.chaos.driving:unused"}


def flow(*, reviewed_by: str = "person", check: str = "true") -> str:
    """One coder; a critic who is overruled by you after one round, or you alone."""
    agents = [{"id": "coder", "name": "Coder", "role": "worker", "runtime": PYTHON}]
    if reviewed_by != "person":
        agents.append({"id": "critic", "name": "Critic", "role": "reviewer", "runtime": PYTHON})
    return json.dumps(
        {
            "version": 0.2,
            "agents": agents,
            "interactions": [
                {
                    "id": "work",
                    "patternId": "manager_worker",
                    "roles": {"worker": ["coder"]},
                    "data": {"termination": [{"type": "max_rounds", "rounds": 1}]},
                    "tasks": [
                        {
                            "id": "limiter",
                            "agent": "coder",
                            "description": "Write an async token bucket; deny with the wait.",
                        }
                    ],
                }
            ],
            "checks": [{"name": "unit tests", "command": check}],
            "review": {
                "reviewer": reviewed_by,
                "max_iterations": 1 if reviewed_by != "person" else 3,
            },
            "budgets": {"turns": 20, "minutes": 60},
        }
    )


def rivals() -> str:
    """Two coders side by side, who know nothing of each other."""
    return json.dumps(
        {
            "version": 0.2,
            "agents": [
                {"id": name, "name": name.capitalize(), "role": "worker", "runtime": PYTHON}
                for name in ("ada", "ben")
            ],
            "interactions": [
                {
                    "id": f"work-{name}",
                    "patternId": "manager_worker",
                    "roles": {"worker": [name]},
                    "data": {"termination": [{"type": "max_rounds", "rounds": 1}]},
                    "tasks": [{"id": name, "agent": name, "description": "Set the second option"}],
                    "after": [],
                }
                for name in ("ada", "ben")
            ],
            "review": {"reviewer": "person"},
            "budgets": {"turns": 20, "minutes": 60},
        }
    )


@dataclass
class Served:
    """A workspace that is served while a test looks at it."""

    root: Path
    engine: Engine
    link: str
    run_id: str

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def ledger(root: Path) -> Path:
    """The repository as the user has it."""
    made = repository(
        root,
        {
            "ledger/limits/bucket.py": BUCKET,
            "docs/guide.md": OLD_NAME,
            "settings.ini": SETTINGS,
        },
    )
    (made / "docs" / "logo.png").write_bytes(dot(40))
    return made


@asynccontextmanager
async def proposed(
    root: Path,
    page: Path,
    *,
    flow_text: str | None = None,
    by: Callable[[Turn], str] = coder,
) -> AsyncIterator[Served]:
    """A run whose first proposal waits for a verdict."""
    functions = {"coder": by, "critic": critic, "ada": by, "ben": by}
    async with open_engine(ledger(root), functions=functions) as (engine, store):
        order = RunOrder(
            flow="limits",
            flow_text=flow_text or flow(),
            request="Add rate limiting to the public API",
        )
        run_id = await engine.start(order)
        async for _ in engine.events(run_id):
            pass
        planner = WorkspacePlanner(engine, root)
        serving = serve_beside(engine, store, root, port=0, static=page, planner=planner)
        async with serving as info:
            yield Served(root, engine, info.link, run_id)
