"""The HANDOFF block (T3): a worker's change on its way to review."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from agentcanvas.protocol.forms.checkable import why_not_checkable
from agentcanvas.protocol.forms.shape import Kind, Layout, Part, Shape
from agentcanvas.protocol.forms.text_form import TextForm

_NonEmpty = Annotated[str, Meta(min_length=1)]


class Handoff(TextForm, frozen=True, kw_only=True):
    """Where the work lies, what changed, and how to tell that it is done.

    There is none without a change (C12).
    """

    SHAPE: ClassVar[Shape] = Shape(
        name="HANDOFF",
        layout=Layout.KEYED,
        opening="HANDOFF",
        parts=(
            Part("Context", "context", Kind.TEXT, "the situation in a sentence or two"),
            Part("Goal", "goal", Kind.TEXT, "what the work is for"),
            Part(
                "DoD",
                "dod",
                Kind.TEXT,
                "a definition of done that can be checked",
                also=(r"definition\s+of\s+done(?:\s*\(dod\))?",),
                judge=why_not_checkable,
            ),
            Part(
                "SandboxWorkDir",
                "sandbox_work_dir",
                Kind.PATH,
                "the sandbox's work folder",
                also=(r"sandbox[\s_]*work[\s_]*dir(?:ectory)?",),
            ),
            Part(
                "ProposalJson",
                "proposal_json",
                Kind.PATH,
                "the path of proposal.json",
                also=(r"proposal[\s_]*json",),
            ),
            Part(
                "ChangedFiles",
                "changed_files",
                Kind.PATHS,
                "the changed files, one an entry",
                also=(r"changed[\s_]*files",),
                at_least=1,
            ),
            Part("Tests", "tests", Kind.ITEMS, "the commands to test with", optional=True),
            Part(
                "Next",
                "next",
                Kind.ITEMS,
                "who does what next, one an entry",
                also=(r"next\s+steps?",),
                at_least=1,
            ),
        ),
    )

    context: _NonEmpty
    goal: _NonEmpty
    dod: _NonEmpty
    sandbox_work_dir: _NonEmpty
    proposal_json: _NonEmpty
    changed_files: Annotated[tuple[str, ...], Meta(min_length=1)]
    tests: tuple[str, ...] = ()
    next: Annotated[tuple[str, ...], Meta(min_length=1)]
