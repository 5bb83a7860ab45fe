"""What files that wait for trust would run, for whoever has to say whether they may (D43)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agentcanvas.agents.runtimes.script import read_script
from agentcanvas.app.trust import Standing
from agentcanvas.app.workspace import FOLDER
from agentcanvas.errors import InvalidScript
from agentcanvas.flows.check import said
from agentcanvas.flows.document import Document
from agentcanvas.flows.load import SUFFIXES, read_flow
from agentcanvas.flows.named_files import scripts_in

FLOWS: Final = "Flows: they say which agents and commands run, confined"
SCRIPTS: Final = "Scripts: what scripted agents say, and commands that they run, confined"
KINDS: Final = {
    f"{FOLDER}/flows/": FLOWS,
    "scripts": SCRIPTS,
    f"{FOLDER}/prompts/": "Prompts: what patterns ask agents, in the place of the built-in words",
    f"{FOLDER}/patterns/": "Patterns: Python code that runs with all your rights, not confined",
    f"{FOLDER}/skills/": "Skills: instructions and scripts that agents are given",
    f"{FOLDER}/hooks/": "Hooks: commands that run at certain moments",
    "": "Settings and MCP servers",
}
"""What to call each kind of file, by how its path begins."""


class WhatRuns:
    """The files of a workspace, each with its kind and with what it would run."""

    def __init__(self, root: Path, found: Standing, flows: Sequence[str]) -> None:
        self._root = root
        self._now = found.now
        self._flows = flows
        read = (read_flow(root / flow).content for flow in flows)
        self._scripts = {path for content in read for path in scripts_in(root, content)}

    def kind(self, path: str) -> str:
        """The title under which a file belongs."""
        if path in self._scripts:
            return SCRIPTS
        if path in self._flows:
            return FLOWS
        return next(title for start, title in KINDS.items() if path.startswith(start))

    def lines(self, path: str) -> Iterator[str]:
        """The commands in a file that counts now, since those are what one looks for."""
        is_script = self.kind(path) == SCRIPTS
        is_flow = self.kind(path) == FLOWS and path.endswith(SUFFIXES)
        if path not in self._now.files or not (is_script or is_flow):
            return
        document = read_flow(self._root / path)
        if document.root is not None and not self._now.covers(path, document.content):
            yield "was changed in this very moment; look again"
        else:
            yield from _in_script(document) if is_script else _in_flow(document)


def _in_flow(document: Document) -> Iterator[str]:
    flow = said(document)
    if flow is None:
        yield "has errors and cannot run: agentcanvas flow check"
        return
    if flow.setup is not None:
        yield f"setup runs: {flow.setup.command}"
    for agent in flow.agents:
        runtime = agent.runtime
        if runtime is None:
            continue
        command = runtime.command
        line = command if isinstance(command, str) else " ".join(command or ())
        if told := line or runtime.call or runtime.script or runtime.url:
            yield f"{agent.id} runs: {told}"
    for checks in (flow.checks, *(each.checks for each in flow.interactions)):
        for each in checks:
            yield f"check {each.name} runs: {each.command}"


def _in_script(document: Document) -> Iterator[str]:
    try:
        script = read_script(document.content)
    except InvalidScript:
        yield "has errors and cannot be played"
        return
    steps = [step for turn in script.turns for step in turn.steps]
    yield from dict.fromkeys(f"runs: {step.run.command}" for step in steps if step.run)
