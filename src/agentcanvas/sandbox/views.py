"""The views there are: a worker in its sandbox, a check in its copy, a reader of a generation.

S2 and D8 ask for the first and the last; the second sees what the first sees, and no input/.

What a view means to the kernel is left to ``confine`` and its back-ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentcanvas.sandbox.confine import Bind, Door, Network, View
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.paths import claim_sandbox_paths
from agentcanvas.sandbox.prepare import Sandbox
from agentcanvas.sandbox.private_git import object_folders


def worker_view(
    sandbox: Sandbox,
    *,
    network: Network = Network.NONE,
    door: Door | None = None,
    read_only: Sequence[Bind] = (),
) -> View:
    """Show a worker its work/, writable, with input/ beside it."""
    paths = sandbox.paths
    return View(
        workspace=sandbox.base.workspace,
        tree=paths.work_dir,
        home=paths.home_dir,
        tmp=paths.tmp_dir,
        input=paths.input_dir,
        objects=object_folders(sandbox.base),
        read_only=tuple(read_only),
        network=network,
        door=door,
    )


def copy_view(
    base: Generation,
    tree: Path,
    *,
    network: Network = Network.NONE,
    door: Door | None = None,
    read_only: Sequence[Bind] = (),
) -> View:
    """Show a copy of a generation, writable; home and tmp are folders beside it, made here."""
    home, tmp = tree.parent / "home", tree.parent / "tmp"
    for folder in (home, tmp):
        folder.mkdir(exist_ok=True)
    return View(
        workspace=base.workspace,
        tree=tree,
        home=home,
        tmp=tmp,
        objects=object_folders(base),
        read_only=tuple(read_only),
        network=network,
        door=door,
    )


def reader_view(
    base: Generation,
    agent_id: str,
    *,
    network: Network = Network.NONE,
    door: Door | None = None,
    read_only: Sequence[Bind] = (),
) -> View:
    """Show an agent the workspace as it was frozen, read-only; only its home is its own."""
    paths = claim_sandbox_paths(base.workspace, base.run_id, agent_id)
    for folder in (paths.home_dir, paths.tmp_dir):
        folder.mkdir(exist_ok=True)
    return View(
        workspace=base.workspace,
        tree=base.tree,
        home=paths.home_dir,
        tmp=paths.tmp_dir,
        writable=False,
        objects=object_folders(base),
        read_only=tuple(read_only),
        network=network,
        door=door,
    )
