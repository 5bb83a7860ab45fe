"""A context packet as the text an agent reads (S9, T2, T6).

Least context (PR3): what a packet does not hold does not appear, of files only the named sections,
and each part within a bound that is said where it cuts. Files are read below one folder and nowhere
else, whatever links lie in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import UNSET, Struct

from agentcanvas.agents.answers import AnswerForm, asks_for
from agentcanvas.agents.sections import cut_section
from agentcanvas.errors import PathRefused
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.kinds import AttemptSummary, ContextFile
from agentcanvas.protocol.packet import Packet, Skill
from agentcanvas.sandbox.paths import workspace_relative

_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)

IMAGES = "If you cannot read something in an image, ask for a clearer one; do not guess."


class PromptLimits(Struct, frozen=True, kw_only=True):
    """In characters: of one quoted text, and of all files together."""

    text: int = 16_000
    files: int = 64_000
    largest_file: int = 1_000_000


def render(
    packet: Packet,
    folder: Path | None = None,
    *,
    form: AnswerForm | None = StandardResponse,
    images: bool = False,
    limits: PromptLimits = PromptLimits(),  # noqa: B008  # frozen, so that one is as good as another
) -> str:
    """The whole prompt; ``folder`` is where the packet's files are looked for.

    It ends with the instruction for ``form``; None leaves that out, for those who add their own.
    """
    quoting = _Quoting(folder, limits)
    parts = [
        _part(f"Task {packet.task_id}".rstrip(), [packet.task.strip()]),
        _part("Constraints", _bullets(_constraints(packet))),
        _part("Acceptance criteria", _bullets(packet.acceptance_criteria)),
        _part("Previous attempts", [_attempt(each) for each in packet.previous_attempts]),
        _part("Rules", [quoting.text(rule.source, rule.text) for rule in packet.rules]),
        _part("Style guide", [quoting.whole(packet.style_guide)] if packet.style_guide else []),
        _part("Specifications", [quoting.file(each) for each in packet.specs]),
        _part("Reference files", [quoting.file(each) for each in packet.reference_files]),
        _part("Skills", [quoting.text(_headline(s), s.text) for s in packet.skills]),
        _part("Images", [IMAGES] if images else []),
        _part("Answer", [asks_for(form).strip()] if form is not None else []),
    ]
    return "\n".join(filter(None, parts))


def _headline(skill: Skill) -> str:
    return f"{skill.name}: {skill.description}"


def _part(title: str, paragraphs: Sequence[str]) -> str:
    return f"# {title}\n\n" + "\n\n".join(paragraphs) + "\n" if paragraphs else ""


def _bullets(entries: Iterable[str]) -> list[str]:
    lines = [f"- {' '.join(entry.split())}" for entry in entries]
    return ["\n".join(lines)] if lines else []


def _constraints(packet: Packet) -> Iterable[str]:
    if packet.scope is not None and "**" not in packet.scope:
        allowed = ", ".join(packet.scope) or "no file at all"
        yield f"Change only: {allowed}. Any other change is refused."
    if packet.testing_required:
        yield "Tests are required: they are run on your change, and it fails with them."
    if packet.must_not_break:
        yield f"Must not break: {', '.join(packet.must_not_break)}"


def _attempt(attempt: AttemptSummary) -> str:
    return f"Attempt {attempt.attempt_number} ({attempt.outcome}):\n{attempt.feedback.strip()}"


class _Quoting:
    """Quotes texts and files, and knows how much of the room for files is left."""

    def __init__(self, folder: Path | None, limits: PromptLimits) -> None:
        self._folder = folder.resolve() if folder else None
        self._limits = limits
        self._left = limits.files

    def text(self, title: str, text: str) -> str:
        return f"## {title}\n\n{self.whole(text)}" if text.strip() else f"## {title}"

    def whole(self, text: str) -> str:
        return _shortened(text.strip(), self._limits.text)

    def file(self, wanted: ContextFile) -> str:
        title = f"## {wanted.path} ({wanted.reason})"
        content = self._content(wanted.path)
        if content is None:
            return f"{title}\n\nMissing: there is no such file here that can be read."
        if wanted.sections is UNSET or not wanted.sections:
            return f"{title}\n\n{self._quoted(content)}"
        paragraphs = [title]
        for name in wanted.sections:
            part = cut_section(content, name)
            if part is None:
                paragraphs.append(f"Missing: the file has no section {name}.")
            else:
                paragraphs.append(f"Section {name}:\n\n{self._quoted(part)}")
        return "\n\n".join(paragraphs)

    def _quoted(self, text: str) -> str:
        if self._left <= 0:
            return "Left out: the files above fill this message. Read it yourself."
        shown = _shortened(text.rstrip("\n"), min(self._limits.text, self._left))
        self._left -= len(shown)
        # A fence must be longer than any inside, or the quoted text could end it.
        longest = max((len(mark) for mark in _FENCES.findall(shown)), default=2)
        fence = "`" * max(3, longest + 1)
        return f"{fence}\n{shown}\n{fence}"

    def _content(self, name: str) -> str | None:
        if self._folder is None:
            return None
        try:
            relative = workspace_relative(name).decode("utf-8", "surrogateescape")
            path = (self._folder / relative).resolve()
            inside = path.is_relative_to(self._folder) and path.is_file()
            if not inside or path.stat().st_size > self._limits.largest_file:
                return None
            return path.read_text("utf-8", "replace").replace("\0", "\ufffd")
        except (OSError, PathRefused, ValueError, RuntimeError):
            return None


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()}\n[cut: {len(text) - most:,} of {len(text):,} characters]"
