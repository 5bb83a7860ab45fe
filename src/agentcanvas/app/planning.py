"""The planner of a workspace: its flows, orders with their worst case, and what old runs leave."""

from __future__ import annotations

import os
from pathlib import Path

import anyio.to_thread

from agentcanvas.app.composing import COMMAND_SETTING, Composed, composed_of, flow_for, flow_named
from agentcanvas.app.patterns import infos_here
from agentcanvas.app.workspace import ensure_folder, store_path
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentCanvasError, ValidationError
from agentcanvas.flows.bounds import Bound, bounds
from agentcanvas.flows.load import flow_files
from agentcanvas.hub.images import LARGEST_IMAGE, MOST_IMAGES, keep_image
from agentcanvas.protocol.records import BlobRef
from agentcanvas.runs import history
from agentcanvas.runs.housekeeping import drop_images, idle_images, standing_of
from agentcanvas.runs.office import Office, RunOrder
from agentcanvas.runs.snapshots import Snapshots
from agentcanvas.sandbox.cleanup import USUAL, Keep, Plan, Standing, clean_up, plan_cleanup
from agentcanvas.sandbox.disk import runs_on_disk
from agentcanvas.store import Store
from agentcanvas.web.planning import (
    Bounded,
    Budget,
    CleanUp,
    FlowsView,
    FlowView,
    Leftover,
    PlannedRun,
    Wish,
)

_NO_REQUEST = "Say what is to be done: the request is empty."


class WorkspacePlanner:
    """Answers from the workspace's files as they are when it is asked."""

    def __init__(self, office: Office, root: Path) -> None:
        self._office = office
        self._root = root

    async def flows(self) -> FlowsView:
        """The flows of the workspace, those that cannot start with the reason."""
        return await anyio.to_thread.run_sync(self._flows)

    async def plan(self, wish: Wish) -> PlannedRun:
        """The order that does it; refuses what could not start, with the next step."""
        return await anyio.to_thread.run_sync(self._plan, wish)

    async def keep_image(self, content: bytes) -> BlobRef:
        """Keep an image in the workspace's own folder, to start a run with."""
        return await keep_image(ensure_folder(self._root), content)

    async def budget(self, run_id: str) -> Budget:
        """What a run may use, as its own copy of the flow says."""
        order = await self._office.order(run_id)
        return await anyio.to_thread.run_sync(_budget, self._root, order)

    async def clean_up(self, keep: int | None, *, remove: bool) -> CleanUp:
        """What old runs leave on the disk; with ``remove`` it goes."""
        policy = USUAL if keep is None else Keep(keep, USUAL.bytes)
        plan = await plan_cleanup(self._root, await standings(self._office, self._root), policy)
        images = await images_going(self._office, self._root, plan)
        if remove and plan.frees:
            await clean_up(self._root, plan)
        if remove:
            await drop_images(self._root, images)
        return _told(plan, sum(images.values()))

    def _flows(self) -> FlowsView:
        found = [self._flow(name) for name in sorted(flow_files(self._root))]
        command = os.environ.get(COMMAND_SETTING, "")
        return FlowsView(tuple(found), MOST_IMAGES, LARGEST_IMAGE, command)

    def _flow(self, name: str) -> FlowView:
        try:
            composed = self._composed(name)
        except AgentCanvasError as error:
            return FlowView(name, problem=str(error))
        return FlowView(name, composed.template, composed.limits)

    def _composed(self, name: str) -> Composed:
        # Only a flow of the workspace: a name from a page must not lead to any file.
        if name not in flow_files(self._root):
            known = ", ".join(sorted(flow_files(self._root))) or "none yet"
            raise ValidationError(f"There is no flow {name} here; there is: {known}")
        return flow_named(self._root, self._root, name, os.environ)

    def _plan(self, wish: Wish) -> PlannedRun:
        request = wish.request.strip()
        if not (request or wish.flow):
            raise ValidationError(_NO_REQUEST)
        if wish.flow:
            composed = self._composed(wish.flow)
            request = request or composed.template
        else:
            composed = flow_for(request, wish.command or None, os.environ)
        if not request:
            raise ValidationError(_NO_REQUEST)
        most = bounds(composed.flow, composed.patterns)
        order = RunOrder(
            flow=composed.name,
            flow_text=composed.text,
            request=request,
            # A request of its own is its plan: there is nothing to look at before.
            approve_plan=not composed.made_here,
        )
        parts = tuple(map(_bounded, (*most.interactions, most.total)))
        total = most.total
        return PlannedRun(order, composed.limits, parts, total.unbounded, total.on_top)


async def standings(office: Office, root: Path) -> dict[str, Standing]:
    """Where the runs on this disk stand; one that the office does not know is left out."""
    known = {run.run_id for run in await office.runs()}
    return {
        run_id: standing_of(await office.state(run_id))
        for run_id in sorted(known.intersection(runs_on_disk(root)))
    }


async def standings_alone(root: Path) -> dict[str, Standing]:
    """The same without an office, for which a full disk has no room: from the record alone."""
    async with await Store.open(store_path(root), alone=True) as store:
        snapshots, streams = Snapshots(store), await history.streams(store)
        return {
            run_id: standing_of(await snapshots.state(streams[run_id]))
            for run_id in sorted(streams.keys() & set(runs_on_disk(root)))
        }


def _budget(root: Path, order: RunOrder) -> Budget:
    composed = composed_of(order.flow, order.flow_text, infos_here(root, os.environ))
    total = bounds(composed.flow, composed.patterns, max_parallel=order.max_parallel).total
    return Budget(total.turns, total.messages, total.minutes, total.tokens, total.cost)


def _bounded(bound: Bound) -> Bounded:
    return Bounded(
        bound.name,
        bound.turns,
        bound.messages,
        bound.minutes,
        bound.tokens_in_words,
        bound.cost_in_words,
    )


async def images_going(office: Office, root: Path, plan: Plan) -> dict[str, int]:
    """The images that no run needs once a clean-up is done, with their sizes."""
    going = {run.run_id for run in plan.going}
    return await idle_images(root, office, now_ms=SystemClock().now_ms(), going=going)


def _told(plan: Plan, images: int) -> CleanUp:
    return CleanUp(
        tuple(Leftover(run.run_id, run.frees) for run in plan.going),
        tuple(Leftover(run.run_id, run.bytes, run.reason) for run in plan.staying),
        plan.frees + images,
        images,
    )
