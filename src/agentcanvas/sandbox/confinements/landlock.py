"""Landlock + seccomp + sub-reaper: for Linux machines where namespaces are forbidden.

It cannot mount, so the tree is seen where it is (D9 does not hold), and it cannot hide or protect
the metadata of files. Both are said in ``warnings``, which the user gets to see.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import (
    Command,
    Launch,
    Network,
    Places,
    View,
    Wires,
    certificate_paths,
    door_of,
    environment,
    in_place,
)
from agentcanvas.sandbox.confinements.seccomp import Sockets, filter_program
from agentcanvas.sandbox.toolchains import SYSTEM, SYSTEM_FILES, toolchain_folders

# Imported and not run as a script: so Python takes the compiled file, which saves milliseconds. At
# the end of the path, where it cannot stand in for anything of the standard library.
_START = "import sys; sys.path.append(sys.argv.pop(1)); import launcher; launcher.start()"

_READ = (*SYSTEM, *SYSTEM_FILES, "/proc", "/sys/devices/system/cpu")
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))

_ABI_WITH_NETWORK, _ABI_WITH_SCOPES = 4, 6


@dataclass(frozen=True)
class Landlock:
    """Runs commands under the launcher."""

    abi: int

    @property
    def name(self) -> str:
        """Name it."""
        return "landlock"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what it leaves open on this kernel."""
        found = [
            "Confined by Landlock: names, sizes, permissions and times of files outside the "
            "sandbox can be seen, and permissions and times of your own files changed",
            "Confined by Landlock: the copy is not at the workspace's own path, so that absolute "
            "links and editable installs lead to the workspace, where they are refused",
            "Confined by Landlock: it knows ports, not hosts, so that with the network 'model' or "
            "'hosts' a hostile program can reach any host at the number of the proxy's port",
        ]
        if self.abi < _ABI_WITH_SCOPES:
            found.append("This kernel cannot keep signals inside; Linux 6.12 can")
        return tuple(found)

    def places(self, view: View) -> Places:
        """Everything is where it is."""
        return in_place(view)

    def launch(self, view: View, command: Command, wires: Wires) -> Launch:
        """Make the command line."""
        self._refuse_unguarded(view)
        places = self.places(view)
        write = [view.home, view.tmp, *([view.tree] if view.writable else [])]
        read = [*map(Path, _READ), *toolchain_folders(view.workspace), view.tree, *view.objects]
        read += [*certificate_paths(view.workspace), *(bind.source for bind in view.read_only)]
        read += [view.input] if view.input else []
        door = door_of(view)
        options = [
            *(word for path in read for word in ("--read", str(path))),
            *(word for path in write for word in ("--write", str(path))),
            *(word for path in _DEVICES for word in ("--device", path)),
            *("--network", "open" if view.network is Network.OPEN else "none"),
            *(("--port", str(door.listen())) if door else ()),
        ]
        sockets = Sockets.INTERNET if view.network is Network.OPEN else Sockets.NONE
        calls = filter_program(Sockets.TCP if door else sockets, sees_others=True)
        return supervised(options, view, places, command, wires=wires, calls=calls)

    def _refuse_unguarded(self, view: View) -> None:
        if view.network.is_behind_a_door and self.abi < _ABI_WITH_NETWORK:
            raise SandboxError(
                f"The network '{view.network}' needs Landlock ABI {_ABI_WITH_NETWORK} (Linux 6.7), "
                f"and this kernel has {self.abi}; install bubblewrap, or choose none or open"
            )


def supervised(
    options: list[str],
    view: View,
    places: Places,
    command: Command,
    *,
    wires: Wires,
    calls: bytes = b"",
) -> Launch:
    """Run a command below the launcher, confined or not."""
    cwd = places.tree / command.cwd
    argv = (
        *(sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parent)),
        *("--parent", str(os.getpid()), "--report-to", str(wires.report)),
        *("--go", str(wires.go), "--calls", str(wires.calls)),
        *options,
        "--",
        *command.argv,
    )
    return Launch(
        argv,
        environment(view, places, command) | {"PWD": str(cwd)},
        cwd,
        signal.SIGTERM,
        wires=(wires.report, wires.go, wires.calls),
        calls=calls,
    )
