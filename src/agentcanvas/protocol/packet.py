"""The context packet: all that an agent gets to know for one turn, and nothing else (S9, PR3).

A value that the engine builds and the host renders (D40); ``prompt`` turns it into text. It names
files and sections; their contents are read only when it is rendered.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agentcanvas.protocol.kinds import AttemptSummary, ContextFile, TaskAssign
from agentcanvas.protocol.values import as_text, is_text


class Rule(Struct, frozen=True):
    """A rule in effect; ``source`` is the file or setting it comes from."""

    source: str
    text: str


class Skill(Struct, frozen=True):
    """A skill the agent was assigned; ``text`` is its SKILL.md without the front matter."""

    name: str
    description: str
    text: str = ""


class Packet(Struct, frozen=True, kw_only=True):
    """What a turn is about.

    ``scope`` is None where any file may change and empty where none may. ``previous_attempts`` are
    earlier tries at this task with what was said about them.
    """

    task: str
    task_id: str = ""
    scope: tuple[str, ...] | None = None
    testing_required: bool = False
    must_not_break: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    specs: tuple[ContextFile, ...] = ()
    reference_files: tuple[ContextFile, ...] = ()
    style_guide: str = ""
    previous_attempts: tuple[AttemptSummary, ...] = ()
    rules: tuple[Rule, ...] = ()
    skills: tuple[Skill, ...] = ()


def packet_of(
    assign: TaskAssign, *, rules: tuple[Rule, ...] = (), skills: tuple[Skill, ...] = ()
) -> Packet:
    """The packet of a task that came as a message, in whichever dialect."""
    context, constraints = assign.context or None, assign.constraints or None
    wishes = _text_of(assign.requirements)
    task = _text_of(assign.input) or (assign.task_type or "")
    return Packet(
        task=f"{task}\n\nRequirements:\n{wishes}" if wishes else task,
        task_id=assign.task_id or "",
        scope=constraints.scope if constraints else None,
        testing_required=bool(constraints and constraints.testing_required),
        must_not_break=(constraints and constraints.must_not_break) or (),
        acceptance_criteria=assign.acceptance_criteria or (),
        specs=context.specs if context else (),
        reference_files=context.reference_files if context else (),
        style_guide=(constraints and constraints.style_guide) or "",
        previous_attempts=(context and context.previous_attempts) or (),
        rules=rules,
        skills=skills,
    )


def _text_of(raw: Raw | UnsetType) -> str:
    """A JSON string as its text, anything else as JSON for people."""
    if raw is UNSET:
        return ""
    if is_text(raw):
        return as_text(raw)
    return msgspec.json.format(bytes(raw), indent=2).decode()
