"""bubblewrap: own mount, PID, user and network namespaces. The full promise, where it works.

Only what is listed here exists inside. The process from which all others descend is the first of
its PID namespace: when it dies, the kernel ends every other, daemons included.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import (
    Bind,
    Command,
    Launch,
    Network,
    Places,
    View,
    Wires,
    certificate_paths,
    door_of,
    environment,
)
from agentcanvas.sandbox.confinements.seccomp import Sockets, filter_program
from agentcanvas.sandbox.sockets import named_sockets
from agentcanvas.sandbox.toolchains import SYSTEM, SYSTEM_FILES, toolchain_folders

_INSIDE = Path("/sandbox")
_PORT = 8118
"""Of the proxy, inside; the namespace is empty, so that any will do."""

_SHELTER = (
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--hostname",
    "sandbox",
    # As in ``passwd``. Some programs refuse to work for root, rightly.
    "--uid",
    "1000",
    "--gid",
    "1000",
)
_SHARED_MEMORY = 256 * 1024 * 1024
# Root's own number is enough to write there, whatever namespace it is in.
_OF_THE_MACHINE = tuple(f"/proc/{name}" for name in ("sys", "irq", "bus", "fs", "sysrq-trigger"))
_PACKAGED = Path(__file__).parent
_USERS = ("passwd", "group")
_OPENER = (_PACKAGED / "opener.py").read_text("utf-8")

_COUNTS_BY_NAMESPACE = (5, 14)
"""From this Linux on, RLIMIT_NPROC counts the processes of a user namespace."""


@dataclass(frozen=True)
class Bubblewrap:
    """Runs commands under ``bwrap``."""

    program: str
    nested_namespaces: bool = False
    """Versions before 0.8 cannot forbid them; then a warning says so."""

    @property
    def name(self) -> str:
        """Name it."""
        return "bubblewrap"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what an old version leaves open."""
        if not self.nested_namespaces:
            return ()
        return (
            "This bubblewrap cannot limit shared memory, and only the system call filter keeps "
            "further namespaces away; update it to 0.8 or later",
        )

    def places(self, view: View) -> Places:
        """Show the tree at the workspace's own path (D9), the private parts below /sandbox."""
        return Places(
            tree=view.workspace,
            home=_INSIDE / "home",
            tmp=Path("/tmp"),  # noqa: S108 -- the private folder, seen under the usual name
            input=_INSIDE / "input" if view.input else None,
            # The user's own store would lie below the workspace, where now the copy is.
            objects=(_INSIDE / "objects", *view.objects[1:]) if view.objects else (),
            proxy=f"http://127.0.0.1:{_PORT}" if door_of(view) else "",
        )

    def launch(self, view: View, command: Command, wires: Wires) -> Launch:
        """Make the command line."""
        places = self.places(view)
        for bind in view.read_only:
            _refuse_links(view, places, bind)
        cwd = places.tree / command.cwd
        door = door_of(view)
        argv = [
            self.program,
            *_SHELTER,
            *(() if self.nested_namespaces else ("--disable-userns",)),
            *(("--share-net",) if view.network is Network.OPEN else ()),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev"),
            *(word for name in _OF_THE_MACHINE for word in ("--ro-bind-try", name, name)),
            *(() if self.nested_namespaces else ("--size", str(_SHARED_MEMORY))),
            *("--tmpfs", "/dev/shm"),  # noqa: S108 -- its own
            *_mounts(view, places),
            *(_interpreter_mounts(view) if door else ()),
            *_closed_sockets(view),
            # What holds the mounts together is memory, which nobody could see filling up.
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", str(cwd), "--seccomp", str(wires.calls)),
            *("--block-fd", str(wires.go), "--info-fd", str(wires.report), "--"),
            *(_opener(wires) if door else ()),
            *command.argv,
        ]
        # The network namespace has abstract unix sockets in it, so an open one allows none.
        sockets = Sockets.INTERNET if view.network is Network.OPEN else Sockets.IN_OWN_NAMESPACE
        used = (wires.report, wires.go, wires.calls)
        return Launch(
            tuple(argv),
            environment(view, places, command) | {"PWD": str(cwd)},
            Path("/"),
            signal.SIGKILL,
            wires=(*used, wires.door) if door else used,
            calls=filter_program(sockets, sees_others=False),
            hands_out_listener=door is not None,
            counted_apart=_kernel() >= _COUNTS_BY_NAMESPACE,
            goes_at_the_end=True,
        )


def _refuse_links(view: View, places: Places, bind: Bind) -> None:
    """Refuse to mount through a link in the tree: it would be followed, and lead out."""
    if not bind.target.is_relative_to(places.tree):
        return
    path = view.tree
    for name in bind.target.relative_to(places.tree).parts:
        path /= name
        if path.is_symlink():
            raise SandboxError(
                f"{bind.target} cannot be shown in the sandbox: {path.relative_to(view.tree)} is a "
                "link there; remove it"
            )


@cache
def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _opener(wires: Wires) -> Iterable[str]:
    return (str(_interpreter()), "-I", "-S", "-c", _OPENER, str(wires.door), str(_PORT))


@cache
def _interpreter() -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = Path(sys.base_prefix, "bin", version)
    return (program if program.exists() else Path(sys.executable)).resolve()


@cache
def _interpreter_parts() -> tuple[Path, ...]:
    """List what the bare interpreter needs: not its prefix, which may be somebody's home."""
    shared = sysconfig.get_config_var("INSTSONAME")
    library = Path(sysconfig.get_config_var("LIBDIR") or "/", shared or "")
    return (_interpreter(), Path(sysconfig.get_path("stdlib")), library)


def _interpreter_mounts(view: View) -> Iterable[str]:
    for part in _interpreter_parts():
        if part.is_relative_to(view.workspace):
            raise SandboxError(
                f"The Python that runs AgentCanvas lies in the workspace ({part}), so that the "
                f"network '{view.network}' cannot be had; install AgentCanvas elsewhere"
            )
        if part.is_file() or part.name.startswith("python"):
            yield from ("--ro-bind-try", str(part), str(part))


def _system() -> Iterable[str]:
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in SYSTEM_FILES:
        if Path(name).name not in _USERS:
            yield from ("--ro-bind-try", name, name)
    for name in _USERS:
        yield from ("--ro-bind", str(_PACKAGED / name), f"/etc/{name}")


def _closed_sockets(view: View) -> Iterable[str]:
    """Cover the sockets below what is shown: a read-only mount does not keep anybody out."""
    programs = (*map(Path, SYSTEM), *toolchain_folders(view.workspace))
    shown = [*(Bind(path, path) for path in programs), *view.read_only]
    for socket in named_sockets():
        for bind in shown:
            source = bind.source.resolve()
            if socket.is_relative_to(source):
                place = bind.target / socket.relative_to(source)
                yield from ("--ro-bind", os.devnull, str(place))


def _mounts(view: View, places: Places) -> Iterable[str]:
    """Say the mounts from the outside in: a later one may lie inside an earlier one."""
    yield from ("--bind", str(view.tmp), str(places.tmp))
    for folder in (*toolchain_folders(view.workspace), *certificate_paths(view.workspace)):
        yield from ("--ro-bind-try", str(folder), str(folder))
    yield from ("--bind" if view.writable else "--ro-bind", str(view.tree), str(places.tree))
    yield from ("--bind", str(view.home), str(places.home))
    if view.input and places.input:
        yield from ("--ro-bind", str(view.input), str(places.input))
    for source, target in zip(view.objects, places.objects, strict=True):
        yield from ("--ro-bind", str(source), str(target))
    for bind in view.read_only:
        yield from ("--ro-bind", str(bind.source), str(bind.target))
