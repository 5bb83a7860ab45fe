"""The five-part message (T1) and the six-part response (T2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from agentcanvas.protocol.forms.shape import Kind, Layout, Part, Shape
from agentcanvas.protocol.forms.text_form import TextForm

_INTENT = Part("Intent", "intent", Kind.LINE, "the goal in one line")


class StandardMessage(TextForm, frozen=True, kw_only=True):
    """What one agent tells another: goal, givens, plan, deeds, and what it cannot settle alone."""

    SHAPE: ClassVar[Shape] = Shape(
        name="The five-part message",
        layout=Layout.NUMBERED,
        parts=(
            _INTENT,
            Part(
                "Inputs",
                "inputs",
                Kind.ITEMS,
                "files, paths, constraints and assumptions, one an entry, or None",
            ),
            Part("Plan", "plan", Kind.STEPS, "3 to 7 steps in order", at_least=3, at_most=7),
            Part(
                "Actions",
                "actions",
                Kind.ITEMS,
                "changed files, results of commands and artefacts, one an entry, or None",
            ),
            Part(
                "Open Questions",
                "open_questions",
                Kind.ITEMS,
                "at most 3 questions that must be answered, or None",
                also=(r"open\s+questions?", r"questions"),
                at_most=3,
            ),
        ),
    )

    intent: Annotated[str, Meta(min_length=1)]
    inputs: tuple[str, ...] = ()
    plan: Annotated[tuple[str, ...], Meta(min_length=3, max_length=7)]
    actions: tuple[str, ...] = ()
    open_questions: Annotated[tuple[str, ...], Meta(max_length=3)] = ()


class StandardResponse(TextForm, frozen=True, kw_only=True):
    """What orchestrator and worker answer each other.

    Without ``next_steps`` the work is done, and ``done_note`` is what stood beside the word.
    """

    SHAPE: ClassVar[Shape] = Shape(
        name="The six-part response",
        layout=Layout.NUMBERED,
        parts=(
            _INTENT,
            Part(
                "Assumptions/Inputs",
                "inputs",
                Kind.ITEMS,
                "files, environment and constraints received, one an entry, or None",
                also=(r"assumptions\s*(?:/|&|and)\s*inputs", r"assumptions", r"inputs"),
            ),
            Part("Plan", "plan", Kind.STEPS, "the steps in order", at_least=1),
            Part(
                "Actions/Artifacts",
                "actions",
                Kind.ITEMS,
                "results and changed files, one an entry, or None",
                also=(r"actions\s*(?:/|&|and)\s*artifacts", r"actions", r"artifacts"),
            ),
            Part(
                "Risks/Safety Notes",
                "risks",
                Kind.ITEMS,
                "what may go wrong, one an entry, or None",
                also=(r"risks\s*(?:/|&|and)\s*safety\s+notes", r"risks", r"safety\s+notes"),
            ),
            Part(
                "Next Steps or DONE",
                "next_steps",
                Kind.STEPS_OR_DONE,
                "the word DONE, or the steps that follow",
                also=(r"next\s+steps?(?:\s*(?:/|or)\s*done)?",),
                note="done_note",
            ),
        ),
    )

    intent: Annotated[str, Meta(min_length=1)]
    inputs: tuple[str, ...] = ()
    plan: Annotated[tuple[str, ...], Meta(min_length=1)]
    actions: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    done_note: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.next_steps
