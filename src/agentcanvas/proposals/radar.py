"""The collision radar's second half: how each waiting proposal stands in the workspace of now.

Looked at again after each apply and each edit of the user (D7). Every touched file is read once,
however many proposals touch it, and all merges together take one git process; nothing is changed.
The answer is a forecast: ``apply`` finds out for itself.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from agentcanvas.errors import ApplyFailed, UnsafePatch
from agentcanvas.proposals.beside import Outcome
from agentcanvas.proposals.blame import blamed
from agentcanvas.proposals.collisions import Collision, Step, collisions, steps_to
from agentcanvas.proposals.embedded import may_be_parts
from agentcanvas.proposals.footprint import Footprint, Touch, footprint
from agentcanvas.proposals.hunks import MisfitError, blob_id, content_after, surely_apart
from agentcanvas.proposals.journal import journals_in, state_of
from agentcanvas.proposals.merge import Conflict, ConflictKind, merge_many
from agentcanvas.proposals.patch import Change, links_of
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.quarantine import Quarantine
from agentcanvas.proposals.tree import Entry, Mode, ObstacleError, Tree, disk_says

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

_ANYWHERE = Policy(left_out=())


class Fitness(StrEnum):
    """CLEAN: nothing moved. MERGES: it lands beside other edits of the same files.
    STALE: it would land, but its evidence was made on something else. CONFLICTS: it cannot land."""

    CLEAN = "clean"
    MERGES = "merges"
    STALE = "stale"
    CONFLICTS = "conflicts"


class Waiting(msgspec.Struct, frozen=True):
    """A proposal that waits; ``base`` is the tree of its generation.

    ``evidence`` is the generation its checks ran on, None if nothing was checked: then nothing
    can become out of date. Of the attempts at one ``task`` only the latest can land.
    """

    proposal_id: str
    patch: bytes
    base: Path
    generation: int
    evidence: int | None = None
    task: str = ""
    attempt: int = 0


class Outlook(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How one proposal stands; ``moved`` are its files that are not as its base has them."""

    proposal_id: str
    fitness: Fitness
    moved: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Watched:
    waiting: Waiting
    footprint: Footprint
    anywhere: bool
    """Whether it may be refused for the sake of any path, however far it is."""
    steps: frozenset[Step]
    """The names on the way to its new files."""


@dataclass(slots=True)
class _Look:
    """What was found for one proposal before anything is merged."""

    moved: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    drifted: list[tuple[Change, Entry | None]] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)


class Radar:
    """Watches the proposals that wait in one workspace."""

    def __init__(self, workspace: Path, *, largest_file: int = Policy().max_file_bytes) -> None:
        self._workspace = workspace
        self._largest_file = largest_file
        self._watched: dict[str, _Watched] = {}
        self._treaders: defaultdict[str, set[str]] = defaultdict(set)
        self._looks: dict[str, Outlook] = {}

    def watch(self, waiting: Waiting) -> None:
        """Take a proposal in, or take note that its patch or evidence is another now."""
        trodden = footprint(waiting.patch)
        for touch in trodden.files.values():
            if breach := _ANYWHERE.path_breach(touch.name):
                raise UnsafePatch(
                    f"{waiting.proposal_id} may not land: {breach.sentence}.",
                    breaches={breach.path: breach.detail},
                )
        self.forget(waiting.proposal_id)
        touches = trodden.files.values()
        anywhere = any(touch.has_link for touch in touches) or may_be_parts(
            touch.name for touch in touches
        )
        steps = {step for touch in touches if touch.created for step in steps_to(touch.path)}
        watched = _Watched(waiting, trodden, anywhere, frozenset(steps))
        self._watched[waiting.proposal_id] = watched
        for path in trodden.files:
            self._treaders[path].add(waiting.proposal_id)

    def forget(self, proposal_id: str) -> None:
        """It waits no longer."""
        gone = self._watched.pop(proposal_id, None)
        self._looks.pop(proposal_id, None)
        for path in gone.footprint.files if gone else ():
            self._treaders[path].discard(proposal_id)
            if not self._treaders[path]:
                del self._treaders[path]

    def collisions(self) -> tuple[Collision, ...]:
        """Where the waiting proposals meet; an earlier attempt meets nobody."""
        latest: dict[str, Waiting] = {}
        for name, each in self._watched.items():
            task = each.waiting.task or name
            if task not in latest or each.waiting.attempt >= latest[task].attempt:
                latest[task] = each.waiting
        names = [waiting.proposal_id for waiting in latest.values()]
        return collisions({name: self._watched[name].footprint for name in names})

    async def recheck(
        self, generation: int | None = None, *, changed: Collection[str] | None = None
    ) -> tuple[Outlook, ...]:
        """How all of them stand now, by name.

        ``generation`` is the current one. With ``changed``, the paths that an apply or an edit
        touched, only proposals that touch one of them are looked at anew.
        """
        try:
            return await to_thread.run_sync(partial(self._recheck, generation, changed))
        except OSError as problem:
            raise ApplyFailed(
                f"The waiting proposals could not be checked: {disk_says(problem)}."
            ) from problem

    def _recheck(
        self, generation: int | None, changed: Collection[str] | None
    ) -> tuple[Outlook, ...]:
        names = sorted(self._watched)
        due = [name for name in names if changed is None or name not in self._looks]
        if changed is not None:
            near = {name for path in changed for name in self._near(path)}
            due = sorted({*due, *near, *self._concerned(changed)})
        for name, outlook in zip(due, self._look(due), strict=True):
            self._looks[name] = outlook
        return tuple(_aged(self._looks[n], self._watched[n].waiting, generation) for n in names)

    def _near(self, path: str) -> Iterable[str]:
        """Whoever touches the path, or a file that has it for a folder, or the reverse."""
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            yield from self._treaders.get("/".join(parts[:depth]), ())
        below = path + "/"
        for trodden, names in self._treaders.items():
            if trodden.startswith(below):
                yield from names

    def _concerned(self, changed: Collection[str]) -> Iterable[str]:
        """Whoever may be refused beside these paths, though it touches others."""
        there = {step.place: step.path for path in changed for step in steps_to(path)}
        for name, each in self._watched.items():
            if each.anywhere or any(there.get(s.place, s.path) != s.path for s in each.steps):
                yield name

    def _look(self, names: Sequence[str]) -> list[Outlook]:
        with _Seen(self._workspace) as seen:
            looks = [self._compare(self._watched[name], seen) for name in names]
        drifting = [look for look in looks if look.drifted]
        if drifting:
            with Quarantine(largest_file=self._largest_file) as private:
                outcomes = merge_many([look.drifted for look in drifting], private)
            for look, (writes, conflicts) in zip(drifting, outcomes, strict=True):
                landed = journals_in(state_of(self._workspace)) if conflicts else ()
                look.conflicts += blamed(conflicts, look.drifted, landed)
                look.merged += [write.path.decode() for write in writes]
        return [_outlook(name, look) for name, look in zip(names, looks, strict=True)]

    def _compare(self, watched: _Watched, seen: _Seen) -> _Look:
        look = _Look()
        removed = {path for path, touch in watched.footprint.files.items() if touch.deleted}
        with Tree(watched.waiting.base) as base:
            for path, touch in watched.footprint.files.items():
                mode = oid = None
                try:
                    mode, oid = seen.mark(touch.name)
                except ObstacleError as obstacle:
                    if not _makes_room(obstacle, removed, touch, seen):
                        look.moved.append(path)
                        detail = f"{obstacle} in your workspace"
                        look.conflicts.append(Conflict(ConflictKind.IN_THE_WAY, path, detail))
                        continue
                same = touch.names_content or _is_as_in(base, touch, oid)
                if same and touch.starts_from(oid, mode):
                    continue
                look.moved.append(path)
                if not (same and touch.leads_to(oid, mode)):
                    self._drift(touch, base, seen, look)
            outcome = _outcome(watched.footprint, base)
        told = {conflict.path for conflict in look.conflicts}
        look.conflicts += [
            Conflict(ConflictKind.IN_THE_WAY, breach.path, breach.detail)
            for breach in outcome.breaches(seen)
            if breach.path not in told
        ]
        return look

    def _drift(self, touch: Touch, base: Tree, seen: _Seen, look: _Look) -> None:
        try:
            change = _change(touch, base)
        except (MisfitError, ObstacleError):
            detail = "its base or its patch cannot be read any more"
            look.conflicts.append(Conflict(ConflictKind.BOTH_CHANGED, touch.path, detail))
            return
        now = seen.entry(touch.name)
        if change is None:
            detail = "you changed a binary file"
            look.conflicts.append(Conflict(ConflictKind.BOTH_CHANGED, touch.path, detail))
        elif _merges_by_itself(change, now, touch):
            look.merged.append(touch.path)
        else:
            look.drifted.append((change, now))


class _Seen(Tree):
    """The workspace during one look: each file is read once, and only its id is kept."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._marks: dict[bytes, tuple[str | None, str | None] | ObstacleError] = {}
        self._links: dict[frozenset[bytes], set[bytes]] = {}
        self._names: dict[bytes, list[bytes]] = {}

    def names(self, folder: bytes) -> list[bytes]:
        if folder not in self._names:
            self._names[folder] = super().names(folder)
        return self._names[folder]

    def links(self, without: frozenset[bytes]) -> set[bytes]:
        if without not in self._links:
            self._links[without] = super().links(without)
        return self._links[without]

    def mark(self, path: bytes) -> tuple[str | None, str | None]:
        """Mode and blob id; both None when there is no such file."""
        if path not in self._marks:
            try:
                entry = self.look(path)
            except ObstacleError as obstacle:
                self._marks[path] = obstacle
            else:
                self._marks[path] = (
                    (str(entry.mode), blob_id(entry.data)) if entry else (None, None)
                )
        found = self._marks[path]
        if isinstance(found, ObstacleError):
            raise found
        return found

    def entry(self, path: bytes) -> Entry | None:
        """None also where there is a folder that will make room."""
        try:
            return self.look(path)
        except ObstacleError:
            return None


def _makes_room(obstacle: ObstacleError, removed: set[str], touch: Touch, seen: _Seen) -> bool:
    """Whether the same proposal takes away what is in the way."""
    if obstacle.path.decode(errors="replace") in removed:
        return True
    gone = {path.encode() for path in removed}
    return obstacle.is_folder and seen.holds_only(touch.name, gone)


def _is_as_in(base: Tree, touch: Touch, oid: str | None) -> bool:
    try:
        entry = base.look(touch.name)
    except ObstacleError:
        return False
    return entry is not None and blob_id(entry.data) == oid


def _change(touch: Touch, base: Tree) -> Change | None:
    """One file before and after, found without git; None where only git could say."""
    first, last = touch.sections[0], touch.sections[-1]
    if first.binary or last.binary:
        return None
    before = base.look(touch.name)
    if touch.deleted:
        return Change(touch.name, before, None)
    if len(touch.sections) > 1 or touch.created:
        after = Entry(Mode(last.new_mode.decode()), content_after(b"", last.hunks))
        return Change(touch.name, before, after)
    if before is None:
        raise MisfitError(touch.path)
    mode = Mode(last.new_mode.decode()) if last.changes_mode else before.mode
    return Change(touch.name, before, Entry(mode, content_after(before.data, last.hunks)))


def _outcome(trodden: Footprint, base: Tree) -> Outcome:
    touches = trodden.files.values()
    gone = {touch.name for touch in touches if touch.deleted}
    return Outcome(
        left={touch.name for touch in touches} - gone,
        new={touch.name for touch in touches if touch.created},
        gone=gone,
        links=links_of(change for touch in touches if (change := _link_change(touch, base))),
    )


def _link_change(touch: Touch, base: Tree) -> Change | None:
    """What a patch does to a link, or to a file that becomes one."""
    if not touch.has_link:
        return None
    try:
        return _change(touch, base)
    except (MisfitError, ObstacleError):
        return None


def _merges_by_itself(change: Change, now: Entry | None, touch: Touch) -> bool:
    """The common case, found without git: an edit elsewhere in the same file."""
    before = change.before
    if before is None or change.after is None or now is None or now.mode is not before.mode:
        return False
    return surely_apart(before.data, now.data, touch.spans)


def _outlook(name: str, look: _Look) -> Outlook:
    if look.conflicts:
        told = "; ".join(f"{each.path}: {each.detail}" for each in look.conflicts[:5])
        return Outlook(
            proposal_id=name,
            fitness=Fitness.CONFLICTS,
            moved=tuple(look.moved),
            conflicts=tuple(look.conflicts),
            reason=told,
        )
    fitness = Fitness.MERGES if look.merged else Fitness.CLEAN
    return Outlook(
        proposal_id=name,
        fitness=fitness,
        moved=tuple(look.moved),
        merged=tuple(sorted(look.merged)),
    )


def _aged(outlook: Outlook, waiting: Waiting, generation: int | None) -> Outlook:
    """STALE if what the evidence says was said about something else."""
    if outlook.fitness is Fitness.CONFLICTS or waiting.evidence is None:
        return outlook
    reason = ""
    if generation is not None and waiting.evidence != generation:
        reason = f"it was checked on generation {waiting.evidence}, and this is {generation}"
    elif outlook.moved and waiting.evidence == waiting.generation:
        reason = f"{', '.join(outlook.moved[:5])} changed since it was checked"
    if not reason:
        return outlook
    return msgspec.structs.replace(outlook, fitness=Fitness.STALE, reason=reason)
