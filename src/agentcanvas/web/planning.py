"""Before a run: which flows there are, what an order needs at most, and what old runs leave.

Reading flows, trust and the disk is ``app``'s; here is the seam, and how it is asked over HTTP.
"""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec

from agentcanvas.hub.images import LARGEST_IMAGE
from agentcanvas.proposals.model import Wire
from agentcanvas.protocol.records import BlobRef
from agentcanvas.runs.office import RunOrder
from agentcanvas.web.operation import Operation, operation
from agentcanvas.web.views import RunPath

Text = Annotated[str, msgspec.Meta(max_length=500_000)]


class FlowView(Wire, frozen=True):
    """A flow of the workspace; ``problem`` says why it cannot start."""

    name: str
    request: str = ""
    limits: str = ""
    problem: str = ""


class FlowsView(Wire, frozen=True):
    """All flows, whether a request alone can be carried out too, and what images may go along."""

    flows: tuple[FlowView, ...]
    most_images: int
    largest_image: int
    command: str = ""


class Wish(Wire, frozen=True, kw_only=True):
    """What somebody wants done: by a flow, or by one worker with this command."""

    request: Text = ""
    flow: str = ""
    command: Text = ""


class Bounded(Wire, frozen=True):
    """The worst case of one part of a flow, or of all; null is without a bound (D19)."""

    name: str
    turns: int | None
    messages: int | None
    minutes: float | None
    tokens: str
    cost: str


class PlannedRun(Wire, frozen=True):
    """An order that can be given as it is, and the most it can need."""

    order: RunOrder
    limits: str
    bounds: tuple[Bounded, ...]
    unbounded: tuple[str, ...] = ()
    on_top: tuple[str, ...] = ()


class Budget(Wire, frozen=True):
    """What a run may use before it ends by itself; null is without a limit."""

    turns: int | None = None
    messages: int | None = None
    minutes: float | None = None
    tokens: int | None = None
    cost: float | None = None


class Leftover(Wire, frozen=True):
    """What is on the disk of a run, in bytes; ``reason`` is why it stays."""

    run_id: str
    bytes: int
    reason: str = ""


class CleanUp(Wire, frozen=True):
    """What a clean-up removes, or has removed; ``images`` is what those of old runs free of it."""

    going: tuple[Leftover, ...]
    staying: tuple[Leftover, ...]
    frees: int
    images: int = 0


class CleanUpOrder(Wire, frozen=True):
    """How many of the newest runs stay; as usual when it is not said."""

    keep: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Planner(Protocol):
    """What a person needs to know before something is started or removed."""

    async def flows(self) -> FlowsView:
        """The flows of the workspace."""
        ...

    async def plan(self, wish: Wish) -> PlannedRun:
        """The order that does it, with its worst case; refuses what could not start."""
        ...

    async def keep_image(self, content: bytes) -> BlobRef:
        """Keep an image to start a run with; its kind is told by its first bytes."""
        ...

    async def budget(self, run_id: str) -> Budget:
        """What a run may use."""
        ...

    async def clean_up(self, keep: int | None, *, remove: bool) -> CleanUp:
        """What old runs leave on the disk; with ``remove`` it goes."""
        ...


class PlanningApi:
    """The planner on the wire."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def routes(self) -> list[Operation]:
        """Every operation at its address."""
        return [
            operation("GET", "/flows", self.flows),
            operation("POST", "/plans", self.plan),
            operation("POST", "/images", self.image, status=201, largest=LARGEST_IMAGE),
            operation("GET", "/runs/{run_id}/budget", self.budget),
            operation("GET", "/clean-up", self.leftovers),
            operation("POST", "/clean-up", self.clean_up),
        ]

    async def flows(self) -> FlowsView:
        """The flows of the workspace, and whether a request alone is enough."""
        return await self._planner.flows()

    async def plan(self, body: Wish) -> PlannedRun:
        """What a run would be, and the most it can need."""
        return await self._planner.plan(body)

    async def image(self, body: bytes) -> BlobRef:
        """Keep an image, PNG, JPEG, GIF or WebP; the reference goes into the order of a run."""
        return await self._planner.keep_image(body)

    async def budget(self, path: RunPath) -> Budget:
        """What a run may use before it ends by itself."""
        return await self._planner.budget(path.run_id)

    async def leftovers(self) -> CleanUp:
        """What a clean-up would remove."""
        return await self._planner.clean_up(None, remove=False)

    async def clean_up(self, body: CleanUpOrder) -> CleanUp:
        """Remove what settled old runs have left on the disk."""
        return await self._planner.clean_up(body.keep, remove=True)
