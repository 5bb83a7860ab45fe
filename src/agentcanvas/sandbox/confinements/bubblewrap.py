"""bubblewrap: own mount, PID, user and network namespaces. The full promise, where it works.

Only what is listed here exists inside. The process from which all others descend is the first of
its PID namespace: when it dies, the kernel ends every other, daemons included.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agentcanvas.sandbox.confine import Command, Launch, Network, Places, View, environment
from agentcanvas.sandbox.toolchains import SYSTEM, SYSTEM_FILES, toolchain_folders

_INSIDE = Path("/sandbox")
_SHELTER = (
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--hostname",
    "sandbox",
)


@dataclass(frozen=True)
class Bubblewrap:
    """Runs commands under ``bwrap``."""

    program: str
    nested_namespaces: bool = False
    """Old versions cannot forbid them; then a warning says so."""

    @property
    def name(self) -> str:
        """Name it."""
        return "bubblewrap"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what an old version leaves open."""
        if not self.nested_namespaces:
            return ()
        return ("This bubblewrap cannot forbid further namespaces; update it to 0.8 or later",)

    def places(self, view: View) -> Places:
        """Show the tree at the workspace's own path (D9), the private parts below /sandbox."""
        return Places(
            tree=view.workspace,
            home=_INSIDE / "home",
            tmp=Path("/tmp"),  # noqa: S108 -- the private folder, seen under the usual name
            input=_INSIDE / "input" if view.input else None,
            # The user's own store would lie below the workspace, where now the copy is.
            objects=(_INSIDE / "objects", *view.objects[1:]) if view.objects else (),
        )

    def launch(self, view: View, command: Command, report_to: int) -> Launch:
        """Make the command line."""
        places = self.places(view)
        cwd = places.tree / command.cwd
        argv = [
            self.program,
            *_SHELTER,
            *(() if self.nested_namespaces else ("--disable-userns",)),
            *(("--share-net",) if view.network is Network.OPEN else ()),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev"),
            *_mounts(view, places),
            *("--chdir", str(cwd), "--info-fd", str(report_to), "--"),
            *command.argv,
        ]
        env = environment(places, command) | {"PWD": str(cwd)}
        return Launch(tuple(argv), env, Path("/"), reports=True, end_with=signal.SIGKILL)


def _system() -> Iterable[str]:
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in SYSTEM_FILES:
        yield from ("--ro-bind-try", name, name)


def _mounts(view: View, places: Places) -> Iterable[str]:
    """Say the mounts from the outside in: a later one may lie inside an earlier one."""
    yield from ("--bind", str(view.tmp), str(places.tmp))
    for folder in toolchain_folders(view.workspace):
        yield from ("--ro-bind-try", str(folder), str(folder))
    yield from ("--bind" if view.writable else "--ro-bind", str(view.tree), str(places.tree))
    yield from ("--bind", str(view.home), str(places.home))
    if view.input and places.input:
        yield from ("--ro-bind", str(view.input), str(places.input))
    for source, target in zip(view.objects, places.objects, strict=True):
        yield from ("--ro-bind", str(source), str(target))
    for bind in view.read_only:
        yield from ("--ro-bind", str(bind.source), str(bind.target))
