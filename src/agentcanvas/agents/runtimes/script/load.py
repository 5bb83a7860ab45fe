"""Reading a script from YAML or plain data: every problem at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentcanvas.agents.runtimes.script.model import VERBS, Address, Edit, Script, ScriptedTurn
from agentcanvas.errors import InvalidScript, PathRefused
from agentcanvas.flows.document import Document, read_document
from agentcanvas.flows.problem import Problem, Rule, at
from agentcanvas.flows.shape import made
from agentcanvas.sandbox.paths import workspace_relative


def load_script(path: Path) -> Script:
    """Read a script file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        sentence = f"The script {path} cannot be read: {error.strerror}; check its path"
        raise InvalidScript(sentence, problems=(sentence,)) from None
    return read_script(content, str(path))


def read_script(source: bytes | str | Mapping[str, Any], name: str = "script") -> Script:
    """Read a script from its text, or from data such as YAML would give."""
    document = None if isinstance(source, Mapping) else read_document(source, name)
    found = [] if document is None else [p for p in document.problems if p.is_error]
    data = source if document is None else document.data
    script, shape_problems = (None, []) if found else _made(data)
    found += shape_problems
    if script is not None:
        found += _problems(script)
    if script is None or found:
        raise _refusal(name, document, found)
    return script


def _refusal(name: str, document: Document | None, found: list[Problem]) -> InvalidScript:
    told = tuple(_told(problem, document) for problem in found)
    listing = "\n".join(f"- {sentence}" for sentence in told)
    return InvalidScript(f"{name} is not a script that can be played:\n{listing}", problems=told)


def _told(problem: Problem, document: Document | None) -> str:
    placed = document.located(problem) if document else problem
    where = f"{placed.line}:{placed.column}: " if placed.line else ""
    if document is None and problem.pointer:
        where = f"{problem.pointer}: "
    advice = f"; {problem.suggestion}" if problem.suggestion else ""
    return f"{where}{problem.sentence}{advice}"


def _made(data: Any) -> tuple[Script | None, list[Problem]]:
    if not isinstance(data, dict):
        return None, [Problem(Rule.TYPE, "a script has the key turns", "write turns: below it")]
    return made(data, Script)


def _problems(script: Script) -> Iterator[Problem]:
    seen: dict[Address, int] = {}
    for index, turn in enumerate(script.turns):
        pointer = at("", "turns", index)
        yield from _address_problems(turn, pointer)
        if turn.address in seen:
            yield Problem(
                Rule.DUPLICATE_ID,
                f"{turn.address} is there twice, first as turns[{seen[turn.address]}]",
                "keep one",
                pointer,
            )
        seen.setdefault(turn.address, index)
        yield from _step_problems(turn, pointer)


def _address_problems(turn: ScriptedTurn, pointer: str) -> Iterator[Problem]:
    if (turn.task is None) == (turn.turn is None):
        yield Problem(
            Rule.MISSING if turn.task is None else Rule.CHOICE,
            "a turn is named by its task or by its number, and by one of them",
            "write task: T1, or role: planner and turn: 1",
            pointer,
        )
    elif turn.task is not None and turn.role is not None:
        yield Problem(Rule.CHOICE, "a task needs no role", "leave role out", at(pointer, "role"))
    elif turn.turn is not None and turn.revision:
        yield Problem(
            Rule.CHOICE,
            "only a task has revisions",
            "name the task, or count on in turn",
            at(pointer, "revision"),
        )


def _step_problems(turn: ScriptedTurn, pointer: str) -> Iterator[Problem]:
    if not turn.steps:
        yield Problem(Rule.MISSING, f"{turn.address} has no step", "add - say: …", pointer)
    for index, step in enumerate(turn.steps):
        here = at(pointer, "steps", index)
        if len(step.verbs) != 1:
            both = " and ".join(step.verbs) or "nothing"
            yield Problem(
                Rule.CHOICE, f"a step does one thing, not {both}", f"use {', '.join(VERBS)}", here
            )
        elif step.edit is not None:
            yield from _edit_problems(step.edit, at(here, "edit"))
        elif step.fail is not None and index + 1 < len(turn.steps):
            left = len(turn.steps) - index - 1
            yield Problem(
                Rule.CHOICE, f"{left} steps after fail are never done", "remove them", here
            )


def _edit_problems(edit: Edit, pointer: str) -> Iterator[Problem]:
    try:
        workspace_relative(edit.file)
    except PathRefused as refused:
        yield Problem(Rule.SCOPE, str(refused), "", at(pointer, "file"))
    ways = [edit.write is not None, edit.replace is not None, edit.delete]
    if sum(ways) != 1:
        yield Problem(
            Rule.CHOICE,
            f"an edit of {edit.file} does one of write, replace and delete",
            "use exactly one",
            pointer,
        )
    if (edit.replace is None) != (edit.with_ is None):
        yield Problem(
            Rule.MISSING, "replace and with belong together", "write both or none", pointer
        )
