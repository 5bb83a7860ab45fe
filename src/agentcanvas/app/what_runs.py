"""What files that wait for trust would run, for whoever has to say whether they may (D43)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agentcanvas.agents.runtimes.script import read_script
from agentcanvas.app.patterns import KNOWN
from agentcanvas.app.settings.load import WORKSPACE_FILE
from agentcanvas.app.settings.yaml_file import Trouble, read_yaml_file
from agentcanvas.app.trust import Standing
from agentcanvas.app.workspace import FOLDER
from agentcanvas.errors import InvalidScript
from agentcanvas.flows.check import said
from agentcanvas.flows.document import Document
from agentcanvas.flows.grants import Grant, grants
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

    def lines(self, path: str) -> Iterator[Grant]:
        """The commands in a file that counts now, and what they are given."""
        if path not in self._now.files:
            return
        if path == WORKSPACE_FILE:
            yield from _in_settings(self._root / path)
            return
        is_script = self.kind(path) == SCRIPTS
        is_flow = self.kind(path) == FLOWS and path.endswith(SUFFIXES)
        if not (is_script or is_flow):
            return
        document = read_flow(self._root / path)
        if document.root is not None and not self._now.covers(path, document.content):
            yield _plain("was changed in this very moment; look again")
        else:
            yield from _in_script(document) if is_script else _in_flow(document)


def _plain(sentence: str) -> Grant:
    return Grant(sentence, is_wide=False)


def _in_settings(path: Path) -> Iterator[Grant]:
    for found in read_yaml_file(path):
        if isinstance(found, Trouble):
            yield _plain(found.sentence.replace(str(path), os.path.relpath(path)))
        else:
            yield Grant(f"sets {found.name}: {found.value}")


def _in_flow(document: Document) -> Iterator[Grant]:
    flow = said(document)
    if flow is None:
        yield _plain("has errors and cannot run: agentcanvas flow check")
        return
    for agent in flow.agents:
        runtime = agent.runtime
        if runtime is None:
            continue
        command = runtime.command
        line = command if isinstance(command, str) else " ".join(command or ())
        if told := line or runtime.call or runtime.script:
            yield _plain(f"{agent.id} runs: {told}")
    for checks in (flow.checks, *(each.checks for each in flow.interactions)):
        for each in checks:
            yield _plain(f"check {each.name} runs: {each.command}")
    yield from grants(flow, KNOWN)


def _in_script(document: Document) -> Iterator[Grant]:
    try:
        script = read_script(document.content)
    except InvalidScript:
        yield _plain("has errors and cannot be played")
        return
    steps = [step for turn in script.turns for step in turn.steps]
    commands = dict.fromkeys(step.run.command for step in steps if step.run)
    yield from (_plain(f"runs: {command}") for command in commands)
