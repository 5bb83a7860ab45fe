"""The collision radar's first half: waiting proposals that get in each other's way.

Pure: footprints in, collisions out, by file and line range, before anybody reviews. The cost grows
with the files that are touched, not with the pairs of proposals. What the workspace does to a
waiting proposal is ``radar``.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agentcanvas.proposals.policy import forgetful

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentcanvas.proposals.footprint import Footprint, Span, Touch


class CollisionKind(StrEnum):
    """How bad it is; the first two merge, the others do not."""

    SAME_CHANGE = "same_change"
    SAME_FILE = "same_file"
    SAME_LINES = "same_lines"
    WHOLE_FILE = "whole_file"
    FILE_AND_FOLDER = "file_and_folder"
    NAME_CLASH = "name_clash"

    @property
    def merges(self) -> bool:
        return self in {CollisionKind.SAME_CHANGE, CollisionKind.SAME_FILE}


class Collision(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Proposals that meet at one place; lines are those of the base, counted from 1.

    Several proposals can meet along a stretch of lines, each with the next one only.
    """

    path: str
    kind: CollisionKind
    proposals: tuple[str, ...]
    first_line: int | None = None
    last_line: int | None = None

    @property
    def sentence(self) -> str:
        return _said(self, self.proposals)

    def told_to(self, proposal: str) -> str:
        """The sentence for whoever looks at one of them: it names the others."""
        return _said(self, [name for name in self.proposals if name != proposal], also=" also")


def collisions(waiting: Mapping[str, Footprint]) -> tuple[Collision, ...]:
    """All of them, by path; ``waiting`` maps the name of a proposal to where it treads."""
    by_path: dict[str, dict[str, Touch]] = defaultdict(dict)
    for proposal, footprint in waiting.items():
        for path, touch in footprint.files.items():
            by_path[path][proposal] = touch
    found = [
        collision
        for path, touches in by_path.items()
        if len(touches) > 1
        for collision in _at(path, touches)
    ]
    found += _clashes(by_path)
    return tuple(sorted(found, key=lambda one: (one.path, one.first_line or 0, one.kind)))


def _at(path: str, touches: Mapping[str, Touch]) -> Iterator[Collision]:
    everyone = tuple(sorted(touches))
    if len({(touch.old, touch.new) for touch in touches.values()}) == 1 and all(
        touch.new for touch in touches.values()
    ):
        yield Collision(path, CollisionKind.SAME_CHANGE, everyone)
        return
    if any(touch.whole for touch in touches.values()):
        yield Collision(path, CollisionKind.WHOLE_FILE, everyone)
        return
    bases: dict[bytes, dict[str, Touch]] = defaultdict(dict)
    for proposal, touch in touches.items():
        bases[touch.old][proposal] = touch
    # Line numbers of different bases say nothing about each other.
    found = [one for on_base in bases.values() for one in _along(path, on_base)]
    yield from found
    if not any(one.proposals == everyone for one in found):
        yield Collision(path, CollisionKind.SAME_FILE, everyone)


def _along(path: str, touches: Mapping[str, Touch]) -> Iterator[Collision]:
    """Go through the file once, and gather what touches what came before.

    Where one change begins at the line on which another ends, git cannot tell their order.
    """
    spans = sorted((span, name) for name, touch in touches.items() for span in touch.spans)
    group: list[tuple[Span, str]] = []
    reached = -1
    for span, name in spans:
        if group and span.start > reached:
            yield from _group(path, group)
            group = []
        group.append((span, name))
        reached = max(span.end, reached if len(group) > 1 else -1)
    yield from _group(path, group)


def _group(path: str, group: Sequence[tuple[Span, str]]) -> Iterator[Collision]:
    names = tuple(sorted({name for _, name in group}))
    if len(names) > 1:
        first = min(span.start for span, _ in group) + 1
        last = max(max(span.end, span.start + 1) for span, _ in group)
        yield Collision(path, CollisionKind.SAME_LINES, names, first, last)


def _clashes(by_path: Mapping[str, Mapping[str, Touch]]) -> Iterator[Collision]:
    """New files that cannot stand beside each other, on this disk or on another."""
    made = {
        path: frozenset(name for name, touch in touches.items() if touch.created)
        for path, touches in by_path.items()
    }
    made = {path: names for path, names in made.items() if names}
    spelt: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, names in made.items():
        for step in steps_to(path):
            spelt[step.place][step.path] |= names
            if step.path != path and (others := made.get(step.path)):
                everyone = tuple(sorted(names | others))
                yield Collision(step.path, CollisionKind.FILE_AND_FOLDER, everyone)
    for alike in spelt.values():
        first, *rest = sorted(alike)
        for other in rest:
            if len(everyone := tuple(sorted(alike[other] | alike[first]))) > 1:
                yield Collision(other, CollisionKind.NAME_CLASH, everyone)


class Step(NamedTuple):
    """One name on the way to a file; two steps at one ``place`` are one file on some disks."""

    path: str
    place: tuple[str, str]


def steps_to(path: str) -> Iterator[Step]:
    """The names on the way, the file's own last."""
    above = ""
    for name in path.split("/"):
        yield Step(above + name, (above, forgetful(name.encode())))
        above += name + "/"


def _said(collision: Collision, names: Sequence[str], also: str = "") -> str:
    path, who = collision.path, ", ".join(names)
    match collision.kind:
        case CollisionKind.SAME_LINES:
            first, last = collision.first_line, collision.last_line
            where = f"line {first}, is" if first == last else f"lines {first}-{last}, are"
            return f"{path}, {where}{also} changed by {who}"
        case CollisionKind.SAME_FILE:
            return f"{path} is{also} changed, at another place, by {who}"
        case CollisionKind.SAME_CHANGE:
            return f"{path} is{also} changed, in the same way, by {who}"
        case CollisionKind.WHOLE_FILE:
            return f"{path} is made, deleted or replaced as a whole while others change it: {who}"
        case CollisionKind.FILE_AND_FOLDER:
            return f"{path} would be a file and a folder: {who}"
        case CollisionKind.NAME_CLASH:
            return f"{path} is the same as another new name on some disks: {who}"
