"""Where links lead: no change makes one lead out, neither its own nor one that was there.

A new link climbs at its beginning only. Then it stays inside as long as every link on its way does,
whatever becomes of the names in it; so links that are harmless alone are harmless together. Links
of the user need not be like that, and may lead out: what was inside before is judged again when a
link comes or goes. How one link is followed is ``policy``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.policy import INTERNAL, Breach, BreachKind, link_breach, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentcanvas.proposals.tree import Source

Links = Mapping[bytes, bytes | None]
"""The links that a change makes, replaces or takes away: what each path links to once the change
is made, None where it is no link then."""

# No proposal makes a link in these, and they can hold more files than all the rest.
_NOT_ENTERED: Final = frozenset(map(str.encode, {*INTERNAL, "node_modules"}))


def leading_out(links: Links, world: Source) -> Iterator[Breach]:
    """Links of a change that may not be, and those that make others lead out of ``world``."""

    def readlink(path: bytes) -> bytes | None:
        return links[path] if path in links else world.readlink(path)

    for path, target in links.items():
        if target is None:
            continue
        if breach := link_breach(path, target, readlink):
            yield breach
        elif _climbs_late(target):
            detail = (
                f"is a link to {show(target)}, which climbs after a name, so where it leads can "
                "change; climb at the beginning only"
            )
            yield Breach(BreachKind.LINK_LEAVES, show(path), detail)
    yield from leading_others_out(links, world)


def leading_others_out(links: Links, world: Source) -> Iterator[Breach]:
    """Changed links because of which links that are left alone would lead out."""
    if not links:
        return
    passed: list[bytes] = []
    there = cache(world.readlink)

    def readlink(path: bytes) -> bytes | None:
        if path not in links:
            return there(path)
        passed.append(path)
        return links[path]

    for path in sorted(world.links(_NOT_ENTERED) - links.keys()):
        passed.clear()
        target = there(path)
        if target is None or (breach := link_breach(path, target, readlink)) is None:
            continue
        if passed and link_breach(path, target, there) is None:
            detail = (
                f"would change where {show(path)} leads, which {breach.detail}; "
                f"let {show(path)} lead elsewhere first"
            )
            yield Breach(breach.kind, show(passed[0]), detail)


def _climbs_late(target: bytes) -> bool:
    parts = [part for part in target.split(b"/") if part not in {b"", b"."}]
    names = [part != b".." for part in parts]
    return names != sorted(names)
