"""Runs from Python: put a team together, give it a request, get what came of it.

    from agentcanvas import Team, run_flow

    team = Team()

    @team.worker("coder")
    def coder(turn):
        (turn.place.tree / "hello.txt").write_text("hello")
        return "wrote hello.txt"

    result = team.run("Write hello.txt", workspace=".", review=lambda proposal: "apply")

Functions run in this process; what they change goes through sandbox, evidence and verdict like
everybody's work.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec

from agentcanvas.app.office import open_engine
from agentcanvas.app.workspace import find_root
from agentcanvas.errors import FlowError, ValidationError
from agentcanvas.flows.load import find_flow, read_flow
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.events import Recorded
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.report import markdown
from agentcanvas.runs.state import RunState, RunStatus

Function = TypeVar("Function", bound=Callable[..., Any])
Answer = str | Mapping[str, Any]
Answering = Callable[[PersonAsk], Answer | Awaitable[Answer]]
"""Answers what is asked of a person: ``"apply"``, ``"reject: why"``, ``"revise: how"``, or data."""


class RunResult(msgspec.Struct, frozen=True):
    """What a run came to; ``report`` is Markdown."""

    run_id: str
    state: RunState
    report: str

    @property
    def done(self) -> bool:
        """Whether it reached its goal."""
        return self.state.status is RunStatus.DONE


class Team:
    """Members and how they work together; a small flow, written in Python."""

    def __init__(self, *, checks: Mapping[str, str] | None = None, rounds: int = 2) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._agents: list[dict[str, Any]] = []
        self._roles: dict[str, list[str]] = {}
        self._reviewer = "person"
        self._checks = dict(checks or {})
        self._rounds = rounds

    def worker(self, name: str, *, command: str | None = None) -> Callable[[Function], Function]:
        """Add somebody who changes files: the decorated function, or a command line."""
        return self._member(name, "worker", "worker", command)

    def planner(self, name: str, *, command: str | None = None) -> Callable[[Function], Function]:
        """Add the one who splits the request into tasks; without one there is one task."""
        return self._member(name, "orchestrator", "manager", command)

    def reviewer(self, name: str, *, command: str | None = None) -> Callable[[Function], Function]:
        """Add the one who judges; without one you do."""
        self._reviewer = name
        return self._member(name, "reviewer", None, command)

    def run(
        self,
        request: str,
        *,
        workspace: str | Path = ".",
        review: Answering | None = None,
        auto_approve: bool = False,
    ) -> RunResult:
        """Work on a request until it is done; for programs without an event loop of their own."""
        return anyio.run(
            lambda: self.arun(
                request, workspace=workspace, review=review, auto_approve=auto_approve
            )
        )

    async def arun(
        self,
        request: str,
        *,
        workspace: str | Path = ".",
        review: Answering | None = None,
        auto_approve: bool = False,
    ) -> RunResult:
        """The same inside an event loop."""
        order = RunOrder(
            flow="team", flow_text=self.flow(auto_approve=auto_approve), request=request
        )
        root = find_root(Path(workspace))
        async with open_engine(root, functions=self._functions) as (engine, _):
            return await _see_through(engine, await engine.start(order), review)

    def flow(self, *, auto_approve: bool = False) -> str:
        """The team as a flow, in the form that files have (JSON is YAML)."""
        if "worker" not in self._roles:
            raise ValidationError("The team has no worker; add one with @team.worker(name).")
        ends = [{"type": "max_rounds", "rounds": self._rounds}]
        flow = {
            "version": 0.2,
            "agents": self._agents,
            "interactions": [
                {
                    "id": "work",
                    "patternId": "manager_worker",
                    "roles": self._roles,
                    "data": {"termination": ends},
                }
            ],
            "checks": [
                {"name": name, "command": command} for name, command in self._checks.items()
            ],
            "review": {"reviewer": self._reviewer, "autoApprove": auto_approve},
        }
        return msgspec.json.encode(flow).decode()

    def _member(
        self, name: str, kind: str, role: str | None, command: str | None
    ) -> Callable[[Function], Function]:
        if any(agent["id"] == name for agent in self._agents):
            raise ValidationError(f"The team has a {name} already; names are unique.")
        runtime: dict[str, Any] = {"kind": "python", "call": f"team:{name}"}
        if command is not None:
            runtime = {"kind": "command", "command": command}
        self._agents.append({"id": name, "role": kind, "runtime": runtime})
        if role is not None:
            self._roles.setdefault(role, []).append(name)

        def take(function: Function) -> Function:
            self._functions[name] = function
            return function

        return take


async def run_flow(
    flow: str | Path,
    request: str = "",
    *,
    workspace: str | Path = ".",
    answer: Answering | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> RunResult:
    """Run a flow of a workspace, by its name or the path of its file.

    ``answer`` answers what a person is asked; without it a run that needs one is left parked.
    ``functions`` are Python agents by their ids, in place of what the flow names.
    """
    root = find_root(Path(workspace))
    document = read_flow(find_flow(root, str(flow)))
    if document.problems:
        raise FlowError("; ".join(str(problem) for problem in document.problems))
    order = RunOrder(
        flow=Path(document.file).stem, flow_text=document.content.decode(), request=request
    )
    async with open_engine(root, functions=functions) as (engine, _):
        return await _see_through(engine, await engine.start(order), answer)


async def _see_through(engine: Engine, run_id: str, answer: Answering | None) -> RunResult:
    """Follow a run, answering for the person, until it ends or nobody answers."""
    seen = 0
    while True:
        async for entry in engine.events(run_id, after=seen):
            seen = entry.seq
        asks = await engine.asks(run_id)
        if answer is None or not asks:
            break
        for ask in asks:
            said = answer(ask)
            content = await said if inspect.isawaitable(said) else said
            await engine.answer(ask.ask_id, PersonAnswer(_verdict(content), ask.person))
    entries: list[Recorded] = [each async for each in engine.events(run_id, follow=False)]
    return RunResult(run_id, await engine.state(run_id), markdown(entries))


def _verdict(content: object) -> object:
    """A word as a verdict: ``"revise: add a test"`` is {decision, reason}."""
    if not isinstance(content, str):
        return content
    word, _, reason = content.partition(":")
    if word.strip().lower() in {"apply", "reject", "revise"}:
        return {"decision": word.strip().lower(), "reason": reason.strip()}
    return content
