"""macOS sandbox-exec. UNTESTED: written from public profiles, never run on a Mac.

Deprecated by Apple, but what coding tools on the Mac use today. It cannot mount, and nothing keeps
a daemon that leaves its process group.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

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
from agentcanvas.sandbox.toolchains import toolchain_folders

PROGRAM = Path("/usr/bin/sandbox-exec")

_ALWAYS = """\
(version 1)
(deny default)
(import "system.sb")
(allow process-exec process-fork sysctl-read)
(allow signal (target same-sandbox))
(allow file-read-metadata)
(allow file-read*
  (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library")
  (subpath "/opt") (subpath "/private/etc") (subpath "/dev"))
(allow file-write* (literal "/dev/null") (literal "/dev/tty"))
"""


@dataclass(frozen=True)
class Seatbelt:
    """Runs commands under ``sandbox-exec``."""

    @property
    def name(self) -> str:
        """Name it."""
        return "seatbelt"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what is not known and not kept."""
        return (
            "Confined by sandbox-exec: this back-end is untested",
            "Confined by sandbox-exec: a program that leaves its process group survives a stop",
            "Confined by sandbox-exec: memory, processes and disk use are not limited",
        )

    def places(self, view: View) -> Places:
        """Everything is where it is."""
        return in_place(view)

    def launch(self, view: View, command: Command, wires: Wires) -> Launch:  # noqa: ARG002 -- it uses none
        """Make the command line."""
        places = self.places(view)
        argv = (str(PROGRAM), "-p", profile(view), *command.argv)
        env = environment(view, places, command)
        return Launch(argv, env, places.tree / command.cwd, signal.SIGKILL)


def profile(view: View) -> str:
    """Write the profile of a view; paths are resolved, because /tmp is a link on a Mac."""
    read = [*toolchain_folders(view.workspace), view.tree, *view.objects]
    read += certificate_paths(view.workspace)
    read += [*([view.input] if view.input else []), *(bind.source for bind in view.read_only)]
    write = [view.home, view.tmp, *([view.tree] if view.writable else [])]
    rules = [
        f"(allow file-read* {' '.join(map(_subpath, [*read, *write]))})",
        f"(allow file-write* {' '.join(map(_subpath, write))})",
    ]
    if view.network is Network.OPEN:
        rules.append("(allow network*)")
    if door := door_of(view):
        rules.append(f'(allow network-outbound (remote ip "localhost:{door.listen()}"))')
    return _ALWAYS + "\n".join(rules) + "\n"


def _subpath(path: Path) -> str:
    quoted = str(path.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    return f'(subpath "{quoted}")'
