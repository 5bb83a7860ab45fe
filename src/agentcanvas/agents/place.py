"""Where a turn works: nowhere, in a read-only view of a generation, or in its sandbox (D8, D18).

A new task starts from its generation, a revision goes on where the last turn ended, and after an
interruption work/ goes back to the turn's start; what the cut-off attempt had done is kept beside.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import UNSET, Struct

from agentcanvas.agents.confined import tag_of
from agentcanvas.agents.turn_start import is_kept, keep_start, put_back_start
from agentcanvas.errors import SandboxError, Unpatchable
from agentcanvas.proposals.apply import STATE_FOLDER, Landing
from agentcanvas.protocol.turns import Access, Order
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import Generation, load_generation
from agentcanvas.sandbox.paths import get_sandbox_paths
from agentcanvas.sandbox.prepare import Sandbox, open_sandbox, prepare_sandbox, restore_work
from agentcanvas.sandbox.private_git import make_private_git
from agentcanvas.sandbox.process_tree import end_leftovers
from agentcanvas.sandbox.provision import provide, provide_reading
from agentcanvas.sandbox.trees import remove_path
from agentcanvas.sandbox.views import reader_view, worker_view


class Place(Struct, frozen=True):
    """What a turn's processes see; ``sandbox`` is there when it may change files.

    ``sessions`` is a folder that they do not see, for what the host keeps of their sessions.
    """

    view: View
    sessions: Path
    sandbox: Sandbox | None = None


async def place_for(
    order: Order,
    agent_id: str,
    workspace: Path,
    confinement: Confinement,
) -> Place | None:
    """Prepare the place of a turn; None for one that has nothing to do with files."""
    if order.access is Access.NONE or order.generation is UNSET:
        return None
    base = await load_generation(workspace, order.run_id, order.generation)
    if order.access is Access.READ:
        provided = await provide_reading(base, confinement)
        view = reader_view(base, agent_id, read_only=provided.binds)
        paths = get_sandbox_paths(workspace, order.run_id, agent_id)
        return Place(view, paths.sessions_dir)
    sandbox = await _sandbox_for(order, agent_id, base)
    if not order.revision:
        await _put_in(sandbox, order.on)
    provided = await provide(base, sandbox.work_dir, confinement)
    view = worker_view(sandbox, read_only=provided.binds)
    await make_private_git(base, view.tree, confinement.places(view).objects)
    return Place(view, sandbox.paths.sessions_dir, sandbox)


async def _sandbox_for(order: Order, agent_id: str, base: Generation) -> Sandbox:
    paths = get_sandbox_paths(base.workspace, base.run_id, agent_id)
    has_begun = bool(order.revision) and is_kept(paths, order)
    if not paths.record.exists():
        sandbox = await prepare_sandbox(base, agent_id)
    else:
        sandbox = await open_sandbox(base.workspace, base.run_id, agent_id)
        if order.attempt > 1:
            await end_leftovers(tag_of(worker_view(sandbox)))
            await keep_attempt(sandbox, order)
        # A revision goes on where the last turn ended, unless the ground has moved.
        if has_begun or not order.revision or sandbox.base.number != base.number:
            sandbox = await restore_work(sandbox, base)
    if has_begun:
        await put_back_start(sandbox)
    elif order.revision:
        await keep_start(sandbox, order)
    return sandbox


async def _put_in(sandbox: Sandbox, patches: tuple[str, ...]) -> None:
    """Begin with candidates: their changes are in work/ and will be part of what is handed in."""
    landing = Landing(sandbox.work_dir)
    for number, name in enumerate(patches):
        patch = await anyio.Path(sandbox.base.workspace / name).read_bytes()
        await landing.apply(f"candidate-{number}", patch, sandbox.base.tree)
    if patches:
        await anyio.to_thread.run_sync(remove_path, sandbox.work_dir / STATE_FOLDER)


async def keep_attempt(sandbox: Sandbox, order: Order, *, name: str = "") -> Path | None:
    """Keep what a turn that did not end well had changed, as ``attempt-N.patch``."""
    try:
        patch = await make_patch(sandbox)
    except (SandboxError, Unpatchable):
        return None  # half-written files of a killed process; there is nothing to keep
    if not patch.text:
        return None
    name = name or f"attempt-{max(1, order.attempt - 1)}.patch"
    target = sandbox.paths.proposal_dir / name
    await anyio.Path(target).write_bytes(patch.text)
    return target
