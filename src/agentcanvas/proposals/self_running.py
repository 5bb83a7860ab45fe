"""Files that run by themselves: what a reviewer should know before a change of them lands.

A shell that enters a folder, an editor that opens it, an install, a test run, a push: each runs
something that no one started on purpose. A note is for people and blocks nothing; what may not
land at all is ``policy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals import package_json
from agentcanvas.proposals.hunks import MisfitError, blob_id, content_after
from agentcanvas.proposals.outline import NotPlainError, read_outline, stands_for
from agentcanvas.proposals.policy import fold, show
from agentcanvas.proposals.running_files import Occasion, known
from agentcanvas.proposals.tree import ObstacleError, Tree
from agentcanvas.proposals.windows_names import not_for_windows

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

    from agentcanvas.proposals.outline import FileSection

_EXECUTABLE: Final = b"100755"
_LINK: Final = b"120000"


class RunNote(msgspec.Struct, frozen=True):
    """One thing to look at twice; ``detail`` continues a sentence that begins with the path."""

    path: str
    occasion: Occasion
    detail: str

    @property
    def sentence(self) -> str:
        return f"{self.path} {self.detail}"


def self_running(patch: bytes, base: Path | None = None) -> tuple[RunNote, ...]:
    """What of a plain patch runs without being asked to, in the order of the patch.

    ``base`` is the tree it was made on, if that is at hand: then more can be told apart.
    """
    try:
        sections = read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"The patch cannot be looked through: {problem}.") from None
    return tuple(dict.fromkeys(note for section in sections for note in _notes(section, base)))


def _notes(section: FileSection, base: Path | None) -> Iterator[RunNote]:
    path = show(section.name)
    # As a forgetful disk sees it, for there ``.ENVRC`` runs as well.
    folded = "/".join(fold(part) for part in path.split("/"))
    gone = section.deleted
    for occasion, detail in _known_of(section, folded, base):
        yield RunNote(path, occasion, f"{detail}; it is deleted" if gone else detail)
    if not gone and section.new_mode == _EXECUTABLE and section.old_mode != _EXECUTABLE:
        made = "is a new executable file" if section.created else "becomes executable"
        yield RunNote(path, Occasion.EXECUTABLE, made)
    if section.created and (name := not_for_windows(path)):
        detail = f"cannot be checked out on Windows, for the name {name!r}"
        yield RunNote(path, Occasion.NAME, detail)
    if not gone and section.new_mode == _LINK:
        yield RunNote(path, Occasion.LINK, "is a link; what it leads to is used in its place")


def _known_of(
    section: FileSection, folded: str, base: Path | None
) -> Iterator[tuple[Occasion, str]]:
    if folded.rpartition("/")[2] == package_json.NAME:
        for detail in _of_package(section, base):
            yield Occasion.INSTALL, detail
    elif (kind := known(folded)) and _line_fits(section, kind.lines):
        yield kind.occasion, kind.detail


def _of_package(section: FileSection, base: Path | None) -> Iterator[str]:
    if not section.hunks and not section.binary:
        return
    try:
        before = _content(section, base)
        after = b"{}" if section.deleted else content_after(before, section.hunks)
        yield from package_json.changes_between(before, after)
    except (MisfitError, OSError):
        yield from package_json.changes_in(line for hunk in section.hunks for line in hunk.lines)


def _content(section: FileSection, base: Path | None) -> bytes:
    """The file before, if it is the one that the patch was made for."""
    if section.created:
        return b""
    if base is None or section.binary:
        raise MisfitError(show(section.name))
    with Tree(base) as tree:
        try:
            entry = tree.look(section.name)
        except ObstacleError:
            entry = None
    if entry is None or not stands_for(section.old, blob_id(entry.data)):
        raise MisfitError(show(section.name))
    return entry.data


def _line_fits(section: FileSection, form: re.Pattern[bytes] | None) -> bool:
    return form is None or any(form.match(line) for hunk in section.hunks for line in hunk.lines)
