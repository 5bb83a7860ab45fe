"""Part of a proposal: chosen files and hunks make a derived proposal of their own (D13).

The derived patch applies to the same base and does exactly what was chosen: the chosen hunks, each
where it was, and nothing else. A file that is new, deleted, binary or a link is taken whole or not
at all; the change of a file's mode counts as its hunk 0. Evidence for the whole says nothing about
a part, so the engine gathers it anew.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.errors import ProposalMalformed, ValidationError
from agentcanvas.proposals.hunks import MisfitError, blob_id, content_after
from agentcanvas.proposals.model import DerivedFrom, FileChoice
from agentcanvas.proposals.outline import NotPlainError, read_outline, stands_for
from agentcanvas.proposals.policy import show
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.protocol.records import ChangedFile, ChangeStatus, ProposalRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agentcanvas.proposals.outline import FileSection, Hunk
    from agentcanvas.proposals.tree import Source

MODE_CHANGE: Final = 0
_LINK: Final = b"120000"


class HunkPart(msgspec.Struct, frozen=True):
    """One hunk to choose; ``number`` 0 is the change of mode and has no lines."""

    number: int
    old_start: int = 0
    old_count: int = 0
    new_start: int = 0
    new_count: int = 0
    heading: str = ""


class FilePart(msgspec.Struct, frozen=True):
    """One file to choose; without ``hunks`` it is whole or not at all."""

    path: str
    status: ChangeStatus
    hunks: tuple[HunkPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived proposal: what messages name it by, and what its folder holds."""

    ref: ProposalRef
    folder: ProposalFolder


@dataclass(frozen=True, slots=True)
class _File:
    """All sections of one path; two of them where a file changes its type."""

    name: bytes
    sections: tuple[FileSection, ...]

    @property
    def path(self) -> str:
        return show(self.name)

    @property
    def status(self) -> ChangeStatus:
        if len(self.sections) == 1 and self.sections[0].created:
            return ChangeStatus.ADDED
        if len(self.sections) == 1 and self.sections[0].deleted:
            return ChangeStatus.DELETED
        return ChangeStatus.MODIFIED

    @property
    def numbers(self) -> tuple[int, ...]:
        """The hunks that can be chosen; none when it is whole or not at all."""
        section = self.sections[0]
        whole = section.created or section.deleted or section.binary or _LINK in section.modes
        if whole or len(self.sections) > 1:
            return ()
        mode = (MODE_CHANGE,) if section.changes_mode else ()
        return (*mode, *range(1, len(section.hunks) + 1))

    def chosen(self, hunks: tuple[int, ...] | None) -> frozenset[int] | None:
        """The chosen hunks; None for the whole file."""
        if hunks is None or (self.numbers and frozenset(hunks) == frozenset(self.numbers)):
            return None
        if not hunks:
            raise ValidationError(f"No hunk of {self.path} was chosen; leave the file out instead.")
        if not self.numbers:
            raise ValidationError(
                f"{self.path} is {_why_whole(self.sections)}, which is taken whole or not at all."
            )
        if unknown := sorted(set(hunks) - set(self.numbers)):
            known = ", ".join(map(str, self.numbers))
            raise ValidationError(f"{self.path} has no hunk {unknown[0]}; it has {known}.")
        return frozenset(hunks)


def parts_of(patch: bytes) -> tuple[FilePart, ...]:
    """What can be chosen of a patch."""
    return tuple(
        FilePart(file.path, file.status, tuple(_hunk_part(file, n) for n in file.numbers))
        for file in _files(patch).values()
    )


def chosen_in(answer: object) -> tuple[FileChoice, ...]:
    """The choice in a person's answer, empty for the whole proposal.

    One that is not a choice is a ``msgspec.ValidationError``.
    """
    if not isinstance(answer, dict) or not answer.get("choose"):
        return ()
    return msgspec.convert(answer["choose"], tuple[FileChoice, ...])


def choose(patch: bytes, choice: Sequence[FileChoice], base: Source) -> bytes:
    """The patch with only these files and hunks, in the order of the whole one."""
    files = _files(patch)
    wanted = _wanted(files, choice)
    _refuse_half_swaps(files, wanted)
    lines: list[bytes] = []
    for path, hunks in ((path, wanted[path]) for path in files if path in wanted):
        file = files[path]
        if hunks is None:
            lines += [line for section in file.sections for line in section.lines]
        else:
            lines += _partly(file, hunks, base)
    return b"".join(line + b"\n" for line in lines)


def rest_of(patch: bytes, choice: Sequence[FileChoice]) -> tuple[FileChoice, ...]:
    """The complement: everything that a choice leaves out."""
    files = _files(patch)
    wanted = _wanted(files, choice)
    rest = []
    for path, file in files.items():
        if path not in wanted:
            rest.append(FileChoice(path))
        elif (hunks := wanted[path]) is not None:
            rest.append(FileChoice(path, tuple(n for n in file.numbers if n not in hunks)))
    return tuple(rest)


def derive(
    parent: ProposalRef,
    folder: ProposalFolder,
    choice: Sequence[FileChoice],
    base: Source,
    *,
    created_at: str,
) -> Derived:
    """A proposal of its own, from a part of another; the same choice gives the same name."""
    patch = choose(folder.patch, choice, base)
    files = _files(folder.patch)
    wanted = _wanted(files, choice)
    if patch == folder.patch:
        raise ValidationError("Everything was chosen; judge the proposal itself.")
    chosen = tuple(
        FileChoice(path, None if hunks is None else tuple(sorted(hunks)))
        for path, hunks in sorted(wanted.items())
    )
    changed = tuple(ChangedFile(path, files[path].status) for path in files if path in wanted)
    origin = DerivedFrom(
        proposal_id=parent.proposal_id,
        patch_sha256=hashlib.sha256(folder.patch).hexdigest(),
        chosen=chosen,
    )
    proposal = msgspec.structs.replace(
        folder.proposal, created_at=created_at, changed_files=changed, derived_from=origin
    )
    ref = msgspec.structs.replace(
        parent,
        proposal_id=derived_id(parent.proposal_id, chosen),
        patch=proposal.paths.patch_file,
        changed_files=changed,
    )
    told = f"{folder.summary.rstrip()}\n\n{_told(files, wanted)}\n"
    return Derived(ref, ProposalFolder(proposal=proposal, patch=patch, summary=told))


def derived_id(parent_id: str, choice: Iterable[FileChoice]) -> str:
    """A name that the same choice has again after a crash (D3)."""
    data = msgspec.json.encode([parent_id, *choice])
    return f"{parent_id}-part-{hashlib.sha256(data).hexdigest()[:12]}"


def _files(patch: bytes) -> dict[str, _File]:
    try:
        sections = read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"Nothing can be chosen from this patch: {problem}.") from None
    grouped: dict[bytes, list[FileSection]] = {}
    for section in sections:
        grouped.setdefault(section.name, []).append(section)
    return {show(name): _File(name, tuple(of_file)) for name, of_file in grouped.items()}


def _wanted(
    files: Mapping[str, _File], choice: Sequence[FileChoice]
) -> dict[str, frozenset[int] | None]:
    if not choice:
        raise ValidationError("Nothing was chosen; choose at least one file, or reject it.")
    times = Counter(each.path for each in choice)
    if twice := [path for path, n in times.items() if n > 1]:
        raise ValidationError(f"{twice[0]} was chosen twice; name each file once.")
    if unknown := [each.path for each in choice if each.path not in files]:
        raise ValidationError(
            f"The proposal does not change {unknown[0]}; it changes {', '.join(list(files)[:10])}."
        )
    return {each.path: files[each.path].chosen(each.hunks) for each in choice}


def _refuse_half_swaps(files: Mapping[str, _File], wanted: Iterable[str]) -> None:
    """A file cannot come where another one still stands in its way."""
    chosen = frozenset(wanted)
    stays = {
        path
        for path, file in files.items()
        if file.status is ChangeStatus.DELETED and path not in chosen
    }
    for path in chosen:
        if files[path].status is not ChangeStatus.ADDED:
            continue
        parts = path.split("/")
        above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        in_the_way = (above & stays) or {gone for gone in stays if gone.startswith(path + "/")}
        if in_the_way:
            raise ValidationError(
                f"{path} takes the place of {min(in_the_way)}; choose both or neither."
            )


def _partly(file: _File, hunks: frozenset[int], base: Source) -> list[bytes]:
    """One file's part with only some of its hunks: new counts, new ids, nothing else new."""
    (section,) = file.sections
    with_mode = MODE_CHANGE in hunks
    head = [section.lines[0]]
    if with_mode:
        head += [b"old mode " + section.old_mode, b"new mode " + section.new_mode]
    kept = [hunk for number, hunk in enumerate(section.hunks, 1) if number in hunks]
    if not kept:
        return head
    new = _id_after(file, section, kept, base)
    mode = b"" if with_mode or not section.old_mode else b" " + section.old_mode
    if section.old:
        head.append(b"index " + section.old + b".." + new.encode() + mode)
    head += [line for line in section.lines if line.startswith((b"--- ", b"+++ "))][:2]
    grown = 0
    for hunk in kept:
        head.append(_header(hunk, grown))
        head += hunk.lines
        grown += hunk.new_count - hunk.old_count
    return head


def _id_after(file: _File, section: FileSection, hunks: Sequence[Hunk], base: Source) -> str:
    before = base.look(file.name)
    if before is None or not stands_for(section.old, blob_id(before.data)):
        raise ValidationError(
            f"{file.path} was changed from another content than the base holds; the part cannot "
            "be made."
        )
    try:
        return blob_id(content_after(before.data, hunks))
    except MisfitError as problem:
        raise ValidationError(f"{file.path}: {problem}; the part cannot be made.") from None


def _header(hunk: Hunk, grown: int) -> bytes:
    start = hunk.old_index + grown + (1 if hunk.new_count else 0)
    old, new = (
        f"{first}" if count == 1 else f"{first},{count}"
        for first, count in ((hunk.old_start, hunk.old_count), (start, hunk.new_count))
    )
    return f"@@ -{old} +{new} @@".encode() + hunk.heading


def _hunk_part(file: _File, number: int) -> HunkPart:
    if number == MODE_CHANGE:
        section = file.sections[0]
        return HunkPart(number, heading=f"mode {show(section.old_mode)} → {show(section.new_mode)}")
    hunk = file.sections[0].hunks[number - 1]
    return HunkPart(
        number=number,
        old_start=hunk.old_start,
        old_count=hunk.old_count,
        new_start=hunk.new_start,
        new_count=hunk.new_count,
        heading=show(hunk.heading.strip()),
    )


def _why_whole(sections: Sequence[FileSection]) -> str:
    section = sections[0]
    if len(sections) > 1:
        return "a file that changes its type"
    if section.created:
        return "a new file"
    if section.deleted:
        return "a deleted file"
    return "a binary file" if section.binary else "a link"


def _told(files: Mapping[str, _File], wanted: Mapping[str, frozenset[int] | None]) -> str:
    lines = [f"Chosen: {len(wanted)} of {len(files)} files."]
    for path, hunks in wanted.items():
        if hunks is not None:
            named = ", ".join(map(str, sorted(hunks)))
            lines.append(f"- {path}: hunk {named} of {len(files[path].numbers)}")
    return "\n".join(lines)
