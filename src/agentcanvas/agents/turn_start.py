"""How work/ was when a revision began, so that a cut-off attempt can be taken back to it (D18).

A first turn starts from its generation, which is frozen already. A revision starts from what the
turn before has left; that is kept beside the proposal until the next revision begins.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import SandboxError, Unpatchable
from agentcanvas.protocol.turns import Order
from agentcanvas.sandbox.changes import Change, Status
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.paths import SandboxPaths
from agentcanvas.sandbox.prepare import Sandbox
from agentcanvas.sandbox.trees import make_parents, remove_path

_RECORD = "start.msgpack"


class _Start(msgspec.Struct, frozen=True):
    """Which revision begins like this, and what differs from its generation then."""

    task_id: str
    revision: int
    generation: int
    changed: tuple[bytes, ...] = ()
    deleted: tuple[bytes, ...] = ()


def is_kept(paths: SandboxPaths, order: Order) -> bool:
    """Whether this revision has begun before, on this generation."""
    start = _read(paths)
    return start is not None and (start.task_id, start.revision, start.generation) == (
        order.task_id,
        order.revision,
        order.generation,
    )


async def keep_start(sandbox: Sandbox, order: Order) -> None:
    """Keep work/ as it is now; all of it is there when this returns, or nothing."""
    try:
        changes = (await make_patch(sandbox)).changes
    except (SandboxError, Unpatchable):
        changes = ()  # what cannot be handed in cannot be brought back either
    await anyio.to_thread.run_sync(partial(_keep, sandbox, order, changes))


async def put_back_start(sandbox: Sandbox) -> None:
    """Bring work/, which is as its generation, to what was kept."""
    await anyio.to_thread.run_sync(partial(_put_back, sandbox))


def _folder(paths: SandboxPaths) -> Path:
    return paths.proposal_dir / "start"


def _read(paths: SandboxPaths) -> _Start | None:
    try:
        return msgspec.msgpack.decode((_folder(paths) / _RECORD).read_bytes(), type=_Start)
    except (OSError, msgspec.DecodeError):
        return None


def _keep(sandbox: Sandbox, order: Order, changes: tuple[Change, ...]) -> None:
    target = _folder(sandbox.paths)
    growing = target.with_name("start.growing")
    for folder in (growing, target):
        remove_path(folder)
    changed = tuple(change.path for change in changes if change.status is not Status.DELETED)
    (growing / "files").mkdir(parents=True)
    for path in changed:
        _copy(sandbox.work_dir, growing / "files", path)
    start = _Start(
        order.task_id,
        order.revision,
        sandbox.base.number,
        changed,
        tuple(change.path for change in changes if change.status is Status.DELETED),
    )
    (growing / _RECORD).write_bytes(msgspec.msgpack.encode(start))
    growing.rename(target)


def _put_back(sandbox: Sandbox) -> None:
    start = _read(sandbox.paths)
    assert start is not None, "is_kept said so"
    for path in start.deleted:
        remove_path(sandbox.work_dir / os.fsdecode(path))
    for path in start.changed:
        _copy(_folder(sandbox.paths) / "files", sandbox.work_dir, path)


def _copy(source: Path, target: Path, path: bytes) -> None:
    name = os.fsdecode(path)
    place = target / name
    remove_path(place)  # a link in its place must not be followed
    make_parents(place)
    shutil.copy2(source / name, place, follow_symlinks=False)
