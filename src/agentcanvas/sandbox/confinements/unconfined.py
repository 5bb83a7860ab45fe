"""No confinement: only ever by the user's explicit choice, and said in every run (``--unsafe``).

The process can touch whatever the user can. What still holds is that nothing survives a stop.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from agentcanvas.sandbox.confine import (
    ON_LINUX,
    Command,
    Launch,
    Places,
    View,
    Wires,
    environment,
    in_place,
)
from agentcanvas.sandbox.confinements.landlock import supervised


@dataclass(frozen=True)
class Unconfined:
    """Runs commands as they are."""

    @property
    def name(self) -> str:
        """Name it for what it is."""
        return "unconfined"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say it plainly."""
        return ("UNSAFE: agents run without confinement and can change any file of yours",)

    def places(self, view: View) -> Places:
        """Everything is where it is."""
        return in_place(view)

    def launch(self, view: View, command: Command, wires: Wires) -> Launch:
        """Make the command line; Linux can at least keep the processes together."""
        places = self.places(view)
        if ON_LINUX:
            return supervised(["--unconfined"], view, places, command, wires=wires)
        env = environment(view, places, command)
        return Launch(command.argv, env, places.tree / command.cwd, signal.SIGKILL)
