"""What a patch really does, and whether it may (S5, S6, S8).

Names come from git's own parser and contents from git's own apply, both in a quarantine; the policy
is asked about the *result*. A patch that may not land gives one breach for each path; nothing here
writes to a workspace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import ScopeViolation, UnsafePatch
from agentcanvas.proposals.beside import Outcome
from agentcanvas.proposals.neighbours import clashes
from agentcanvas.proposals.outline import FileSection, NotPlainError, read_outline, stands_for
from agentcanvas.proposals.policy import (
    Breach,
    BreachKind,
    Policy,
    files_as_folders,
    show,
)
from agentcanvas.proposals.quarantine import Quarantine, last_words
from agentcanvas.proposals.tree import Entry, Mode, ObstacleError, Source
from agentcanvas.protocol.records import ChangedFile, ChangeStatus

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator

_GITLINK: Final = "160000"
_MODES: Final = frozenset(mode.value for mode in Mode)
_MOVED: Final = re.compile(rb"^Hunk #\d+ succeeded at .*$", re.MULTILINE)
_CHECKING: Final = re.compile(rb"^Checking patch (.*)\.\.\.$")
_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after; None where there is none."""

    path: bytes
    before: Entry | None
    after: Entry | None

    @property
    def status(self) -> ChangeStatus:
        if self.before is None:
            return ChangeStatus.ADDED
        return ChangeStatus.DELETED if self.after is None else ChangeStatus.MODIFIED


@dataclass(frozen=True, slots=True)
class Inspection:
    """The changes of a patch, or the reasons why it may not land; never both."""

    changes: tuple[Change, ...] = ()
    breaches: tuple[Breach, ...] = ()

    @property
    def changed_files(self) -> tuple[ChangedFile, ...]:
        return tuple(ChangedFile(show(change.path), change.status) for change in self.changes)

    def insist(self) -> tuple[Change, ...]:
        """The changes; raises when there is a breach."""
        if not self.breaches:
            return self.changes
        told = "; ".join(breach.sentence for breach in self.breaches[:_TOLD])
        more = len(self.breaches) - _TOLD
        sentence = f"The patch may not land: {told}{f'; and {more} more' if more > 0 else ''}."
        if all(breach.kind is BreachKind.OUTSIDE_SCOPE for breach in self.breaches):
            raise ScopeViolation(sentence)
        raise UnsafePatch(sentence, breaches={b.path: b.detail for b in self.breaches})


def inspect(
    patch: bytes,
    base: Source,
    policy: Policy,
    *,
    world: Source | None = None,
    quarantine: Quarantine | None = None,
) -> Inspection:
    """Apply ``patch`` to ``base`` in quarantine and judge the result.

    ``world`` is where proposed links would live: the workspace, once it is about landing there.
    """
    if quarantine is None:
        with Quarantine(largest_file=policy.max_file_bytes) as fresh:
            return inspect(patch, base, policy, world=world, quarantine=fresh)
    inspector = _Inspector(patch, base, policy, world or base, quarantine)
    try:
        return Inspection(changes=inspector.run())
    except _RefusedError as refused:
        return Inspection(breaches=refused.breaches)


class _RefusedError(Exception):
    def __init__(self, breaches: Iterable[Breach]) -> None:
        super().__init__()
        first: dict[str, Breach] = {}
        for breach in breaches:
            first.setdefault(breach.path, breach)
        self.breaches = tuple(first.values())


def _refuse_if_any(breaches: Iterable[Breach]) -> None:
    refused = _RefusedError(breaches)
    if refused.breaches:
        raise refused


def _whole(kind: BreachKind, detail: str) -> _RefusedError:
    return _RefusedError([Breach(kind, "", detail)])


@dataclass(frozen=True, slots=True)
class _Inspector:
    patch: bytes
    base: Source
    policy: Policy
    world: Source
    quarantine: Quarantine

    def run(self) -> tuple[Change, ...]:
        sections = self._outline()
        names, sections = _type_changes_joined(self._names(sections), sections)
        _refuse_if_any(self._named_wrongly(names))
        promised = dict(zip(names, sections, strict=True))
        _refuse_if_any(_forbidden_modes(promised))
        before = self._read_base(names)
        ids_before = self.quarantine.fill_index(before)
        _refuse_if_any(_made_elsewhere(promised, ids_before))
        self._apply(names)
        ids_after = self.quarantine.read_index()
        touched = sorted(
            path
            for path in ids_before.keys() | ids_after.keys()
            if ids_before.get(path) != ids_after.get(path)
        )
        _refuse_if_any(self._forbidden_results(touched, ids_after))
        _refuse_if_any(_broken_promises(promised, ids_after))
        after = self._read_result(touched, ids_after)
        changes = tuple(Change(path, before.get(path), after.get(path)) for path in touched)
        _refuse_if_any(files_as_folders(ids_after))
        new, gone = after.keys() - before.keys(), frozenset(touched) - after.keys()
        outcome = Outcome(left=after.keys(), new=new, gone=gone, links=links_of(changes))
        if self.world is not self.base:  # the user may have taken names away meanwhile
            _refuse_if_any(clashes(new, self.base, gone))
        _refuse_if_any(outcome.breaches(self.world))
        if not touched:
            raise _whole(BreachKind.NO_CHANGE, "the patch changes nothing")
        return changes

    def _outline(self) -> list[FileSection]:
        if len(self.patch) > self.policy.max_patch_bytes:
            detail = f"the patch is larger than {self.policy.max_patch_bytes} bytes"
            raise _whole(BreachKind.PATCH_TOO_LARGE, detail)
        if not self.patch.strip():
            raise _whole(BreachKind.NO_CHANGE, "the patch is empty")
        try:
            return read_outline(self.patch)
        except NotPlainError as problem:
            raise _whole(BreachKind.NOT_PLAIN_FORM, str(problem)) from None

    def _names(self, sections: list[FileSection]) -> list[bytes]:
        done = self.quarantine.git("apply", "--numstat", "-z", "-", stdin=self.patch)
        if done.returncode:
            raise _whole(BreachKind.UNREADABLE, f"git cannot read the patch: {last_words(done)}")
        names = [line.split(b"\t", 2)[2] for line in done.stdout.split(b"\0")[:-1]]
        if names != [section.name for section in sections]:
            raise _whole(BreachKind.UNREADABLE, "git sees other files in the patch than are shown")
        if len(names) > self.policy.max_files:
            detail = f"the patch touches more than {self.policy.max_files} files"
            raise _whole(BreachKind.TOO_MANY_FILES, detail)
        return names

    def _named_wrongly(self, names: list[bytes]) -> Iterator[Breach]:
        seen = set()
        for name in names:
            if breach := self.policy.path_breach(name):
                yield breach
            if name in seen:
                yield Breach(BreachKind.DUPLICATE_PATH, show(name), "appears twice in the patch")
            seen.add(name)

    def _read_base(self, names: list[bytes]) -> dict[bytes, Entry]:
        found, breaches = {}, []
        for name in names:
            try:
                if (entry := self.base.look(name)) is not None:
                    found[name] = entry
            except ObstacleError as obstacle:
                # A path below what is a file now is fine if the same patch removes that file.
                if obstacle.on_the_way and obstacle.path in names:
                    continue
                if not obstacle.on_the_way and any(n.startswith(name + b"/") for n in names):
                    continue
                kind = BreachKind.THROUGH_LINK if obstacle.on_the_way else BreachKind.SPECIAL_FILE
                breaches.append(Breach(kind, show(name), f"{obstacle} in the base"))
        _refuse_if_any(breaches)
        return found

    def _apply(self, names: list[bytes]) -> None:
        done = self.quarantine.git(
            "apply", "--cached", "--verbose", "--whitespace=nowarn", "-", stdin=self.patch
        )
        if done.returncode < 0:
            detail = f"a file grows over {self.policy.max_file_bytes} bytes"
            raise _whole(BreachKind.FILE_TOO_LARGE, detail)
        if done.returncode:
            _refuse_if_any(_unappliable(done, names))
        _refuse_if_any(_moved_hunks(done.stderr))

    def _forbidden_results(
        self, touched: list[bytes], ids: dict[bytes, tuple[str, str]]
    ) -> Iterator[Breach]:
        for path in touched:
            if breach := self.policy.path_breach(path):
                yield breach
            mode = ids[path][0] if path in ids else None
            if mode == _GITLINK:
                yield Breach(BreachKind.SUBMODULE, show(path), "is a submodule")
            elif mode is not None and mode not in _MODES:
                yield Breach(BreachKind.FORBIDDEN_MODE, show(path), f"has the mode {mode}")

    def _read_result(
        self, touched: list[bytes], ids: dict[bytes, tuple[str, str]]
    ) -> dict[bytes, Entry]:
        total, after = 0, {}
        for path in touched:
            if path not in ids:
                continue
            mode, oid = ids[path]
            data = self.quarantine.load(oid, limit=self.policy.max_file_bytes)
            if data is None:
                detail = f"is larger than {self.policy.max_file_bytes} bytes"
                raise _RefusedError([Breach(BreachKind.FILE_TOO_LARGE, show(path), detail)])
            total += len(data)
            if total > self.policy.max_total_bytes:
                detail = f"the result is larger than {self.policy.max_total_bytes} bytes"
                raise _whole(BreachKind.TOTAL_TOO_LARGE, detail)
            after[path] = Entry(Mode(mode), data)
        return after


def links_of(changes: Iterable[Change]) -> dict[bytes, bytes | None]:
    """What becomes of the links among them, as ``links`` wants it."""
    return {
        change.path: _target(change.after)
        for change in changes
        if _target(change.before) is not None or _target(change.after) is not None
    }


def _target(entry: Entry | None) -> bytes | None:
    return entry.data if entry is not None and entry.mode is Mode.LINK else None


def _type_changes_joined(
    names: list[bytes], sections: list[FileSection]
) -> tuple[list[bytes], list[FileSection]]:
    """A file that becomes a link, or a link a file, is one change that git writes in two parts."""
    joined: list[tuple[bytes, FileSection]] = []
    for name, section in zip(names, sections, strict=True):
        if joined and joined[-1][0] == name and section.replaces(joined[-1][1]):
            joined[-1] = (name, joined[-1][1].then(section))
        else:
            joined.append((name, section))
    return [name for name, _ in joined], [section for _, section in joined]


def _forbidden_modes(promised: dict[bytes, FileSection]) -> Iterator[Breach]:
    """git flattens odd modes silently; what is shown must be what is applied."""
    for path, section in promised.items():
        for mode in sorted(shown.decode() for shown in section.modes):
            if mode == _GITLINK:
                yield Breach(BreachKind.SUBMODULE, show(path), "is a submodule")
            elif mode not in _MODES:
                yield Breach(BreachKind.FORBIDDEN_MODE, show(path), f"has the mode {mode}")


def _made_elsewhere(
    promised: dict[bytes, FileSection], ids: dict[bytes, tuple[str, str]]
) -> Iterator[Breach]:
    for path, section in promised.items():
        if not stands_for(section.old, ids[path][1] if path in ids else None):
            detail = "was changed from another content than the base holds"
            yield Breach(BreachKind.WRONG_BASE, show(path), detail)


def _broken_promises(
    promised: dict[bytes, FileSection], ids: dict[bytes, tuple[str, str]]
) -> Iterator[Breach]:
    for path, section in promised.items():
        if not stands_for(section.new, ids[path][1] if path in ids else None):
            detail = "does not become the file that its index line names"
            yield Breach(BreachKind.NOT_PLAIN_FORM, show(path), detail)


def _unappliable(done: subprocess.CompletedProcess[bytes], names: list[bytes]) -> Iterator[Breach]:
    blamed = [name for name in names if b"error: " + name + b":" in done.stderr]
    for name in blamed:
        yield Breach(BreachKind.DOES_NOT_APPLY, show(name), "the patch does not fit its base")
    if not blamed:
        detail = f"the patch does not apply: {last_words(done)}"
        yield Breach(BreachKind.DOES_NOT_APPLY, "", detail)


def _moved_hunks(said: bytes) -> Iterator[Breach]:
    """On its own base every hunk sits where it says; elsewhere it is not what was reviewed."""
    path = b""
    for line in said.splitlines():
        if checking := _CHECKING.match(line):
            path = checking[1]
        elif _MOVED.match(line):
            detail = "a hunk would land on other lines than it shows"
            yield Breach(BreachKind.MISPLACED_HUNK, show(path), detail)
