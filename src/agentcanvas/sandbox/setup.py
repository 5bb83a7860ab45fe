"""The setup of a run: a command that makes what git ignores - installed packages, generated code.

It runs once for a run, confined, in a copy of the base. What it made there and git ignores is kept
and given to every sandbox and evidence copy of the run; what it said is kept beside. It changes no
base: a change to files that git does not ignore is not taken over, and said.
"""

# ruff: noqa: PTH104 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from agentcanvas.errors import SandboxError
from agentcanvas.protocol.secret_values import is_hidden
from agentcanvas.sandbox import git
from agentcanvas.sandbox.confine import Command, Confinement, Door, Network, View
from agentcanvas.sandbox.dependencies import Dependency, Use, is_dependency_folder, is_in, use_of
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.generation import (
    Generation,
    made_by_setup,
    note_made,
    setup_folder,
    told,
)
from agentcanvas.sandbox.manifest import Manifest
from agentcanvas.sandbox.notes import some_of
from agentcanvas.sandbox.prepare import copy_generation
from agentcanvas.sandbox.private_git import make_private_git
from agentcanvas.sandbox.process import Cause, Limits, run_confined
from agentcanvas.sandbox.provision import provide
from agentcanvas.sandbox.trees import files_below, make_folders, passing_folder, remove_path
from agentcanvas.sandbox.views import copy_view

LIMITS = Limits(deadline_s=1800)

_LAST_LINES = 12
_COMMAND = "command.txt"


@dataclass(frozen=True)
class Setup:
    """What came of it: the base that has what was made, the log, and what was not taken over."""

    base: Generation
    log: Path
    notes: tuple[str, ...] = ()


async def run_setup(
    base: Generation,
    command: str,
    confinement: Confinement,
    *,
    network: Network = Network.NONE,
    door: Door | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits = LIMITS,
    fresh: bool = False,
) -> Setup:
    """Run the command once for the run of ``base``, or find what it made before.

    With ``fresh`` it does not see the user's own dependency folders, because it makes them itself.
    Two at once for one run are the caller's mistake.
    """
    folder = setup_folder(base.workspace, base.run_id)
    log = folder.with_name("setup.log")
    notes: tuple[str, ...] = ()
    if not await anyio.to_thread.run_sync(_is_done, folder, command):
        growing = folder.with_name("setup.growing")
        await anyio.to_thread.run_sync(remove_path, growing)
        try:
            growing.mkdir(parents=True)
            filled = await copy_generation(base, growing / "copy")
            binds = () if fresh else (await provide(base, growing / "copy", confinement)).binds
            view = copy_view(base, growing / "copy", network=network, door=door, read_only=binds)
            await _carry_out(base, view, command, confinement, env=env, limits=limits, log=log)
            keep = partial(_keep, base, command, growing, filled, fresh=fresh)
            notes = await anyio.to_thread.run_sync(keep)
        except OSError as error:
            raise SandboxError(f"The setup could not be run: {told(error)}") from error
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove_path, growing)
    return Setup(replace(base, made=made_by_setup(base.workspace, base.run_id)), log, notes)


async def _carry_out(
    base: Generation,
    view: View,
    command: str,
    confinement: Confinement,
    *,
    env: Mapping[str, str] | None,
    limits: Limits,
    log: Path,
) -> None:
    await make_private_git(base, view.tree, confinement.places(view).objects)
    started = Command(("/bin/sh", "-c", command), env=dict(env or {}), tag=str(view.home))
    ending, lines = await run_confined(confinement, view, started, limits)
    said = _redacted("\n".join(line.text for line in lines), env or {})
    await anyio.Path(log).write_text(said, "utf-8", "replace")
    if ending.cause is not Cause.EXITED or ending.exit_code:
        how = f"exit code {ending.exit_code}"
        if ending.cause is not Cause.EXITED:
            how = f"it was ended ({ending.cause})"
        last = "\n".join(said.splitlines()[-_LAST_LINES:]) or "it said nothing"
        raise SandboxError(
            f"The setup '{command}' failed: {how}. Its last lines:\n{last}\nAll of them: {log}"
        )


def _redacted(text: str, env: Mapping[str, str]) -> str:
    """Put the name in the place of a value that was passed by name (D37)."""
    for name, value in env.items():
        if is_hidden(name, value):
            text = text.replace(value, f"[{name}]")
    return text


def _is_done(folder: Path, command: str) -> bool:
    try:
        return (folder / _COMMAND).read_text("utf-8") == command
    except OSError:
        return False


def _keep(
    base: Generation, command: str, growing: Path, filled: Manifest, *, fresh: bool
) -> tuple[str, ...]:
    """Keep what it made; it counts when the folder has its name. Gives what is not taken over."""
    tree = os.fsencode(growing / "copy")
    given = frozenset() if fresh else base.not_compared
    now = {
        path: stamp
        for path, stamp in files_below(tree).items()
        if not is_in(path, (b".git",)) and not is_in(path, given)
    }
    new = sorted(now.keys() - filled.keys())
    ignored = _ignored(tree, new, now, growing)
    roots = _roots(ignored, set(new) - ignored, base.seen)
    folder = setup_folder(base.workspace, base.run_id)
    made, final = (os.fsencode(place / "made") + b"/" for place in (growing, folder))
    note_made(growing, [Dependency(root, final + root, _use(tree, root)) for root in roots])
    make_folders(growing / "made", folders_of(roots))
    for root in roots:
        os.rename(tree + b"/" + root, made + root)
    (growing / _COMMAND).write_text(command, "utf-8")
    for name in ("copy", "home", "tmp"):
        remove_path(growing / name)
    remove_path(folder)
    growing.rename(folder)
    other = [path for path in now if path not in ignored and filled.get(path) != now[path]]
    gone = filled.keys() - now.keys()
    if not other and not gone:
        return ()
    changed = some_of(sorted({*other, *gone}))
    return (f"The setup changed {changed}, which git does not ignore: not taken over",)


def _use(tree: bytes, root: bytes) -> Use:
    """Have installed packages read-only, and everything else as a copy of one's own.

    A link is copied as the link it is: to mount it would be to mount what it leads to.
    """
    full = tree + b"/" + root
    parent, _, name = full.rpartition(b"/")
    is_packages = name == b"node_modules" or is_dependency_folder(parent, name)
    is_folder = stat.S_ISDIR(os.lstat(full).st_mode)
    return Use.READ if is_folder and is_packages and use_of(root) is Use.READ else Use.OWN


def _ignored(tree: bytes, paths: list[bytes], now: Manifest, growing: Path) -> set[bytes]:
    """Ask git which new files are ignored, by copies of the rules: it never runs in the tree."""
    by_name = {path for path in paths if b"node_modules" in path.split(b"/")[:-1]}
    rules = [path for path in now if path.rpartition(b"/")[2] == b".gitignore"]
    asked = [path for path in paths if path not in by_name]
    if not asked or not rules:
        return by_name
    with passing_folder("rules-", growing) as folder:
        scratch, copies = folder / "scratch.git", folder / "tree"
        for part in ("objects", "refs"):
            (scratch / part).mkdir(parents=True)
        (scratch / "HEAD").write_text("ref: refs/heads/none\n")
        make_folders(copies, folders_of(rules))
        for path in rules:
            source = Path(os.fsdecode(tree + b"/" + path))
            if source.is_file() and not source.is_symlink():
                (copies / os.fsdecode(path)).write_bytes(source.read_bytes())
        return by_name | git.ignored(asked, git_dir=scratch, rules=copies)


def _roots(ignored: Iterable[bytes], other: set[bytes], seen: Manifest) -> list[bytes]:
    """Find the topmost folders that hold nothing but ignored new files; else the files."""
    mixed = {ancestor for path in (*other, *seen) for ancestor in _ancestors(path)}
    roots: set[bytes] = set()
    for path in ignored:
        roots.add(next((a for a in _ancestors(path) if a not in mixed), path))
    return sorted(roots)


def _ancestors(path: bytes) -> list[bytes]:
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[: depth + 1]) for depth in range(len(parts))]
