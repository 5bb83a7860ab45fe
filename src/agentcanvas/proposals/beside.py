"""What a change may not be for the sake of what is there: names, links, repositories.

Known by names and links alone, so that a waiting proposal can be asked again and again; what is in
the files is for ``patch``. Each rule has a module of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentcanvas.proposals.embedded import repositories_in
from agentcanvas.proposals.links import Links, leading_out
from agentcanvas.proposals.neighbours import clashes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from agentcanvas.proposals.policy import Breach
    from agentcanvas.proposals.tree import Source


@dataclass(frozen=True, slots=True)
class Outcome:
    """The files that a change leaves, the new ones among them, those that go, and its links."""

    left: Collection[bytes]
    new: Collection[bytes]
    gone: Collection[bytes]
    links: Links

    def breaches(self, world: Source) -> Iterator[Breach]:
        """Why it may not land in ``world``; nothing is read but names and links."""
        yield from leading_out(self.links, world)
        yield from clashes(self.new, world, self.gone)
        yield from repositories_in(self.left, self.gone, world)
