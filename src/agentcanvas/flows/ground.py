"""What a team stands on: which files are taken along, and what is made before the work begins."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agentcanvas.flows.part import SHORT, Milliseconds, Part
from agentcanvas.flows.team import Network


class Setup(Part, frozen=True, kw_only=True):
    """A command that makes what git ignores, once for a run; a text alone is the command."""

    command: Annotated[str, Meta(min_length=1, description="A shell command, run confined.")]
    network: Annotated[
        Network | None,
        Meta(
            description="none, open, or a list of hosts; none if not said.",
            extra={SHORT: "mode"},
            extra_json_schema={f"x-{SHORT}": True},
        ),
    ] = None
    env: Annotated[
        tuple[str, ...], Meta(description="Names of environment variables that it may see.")
    ] = ()
    fresh: Annotated[
        bool, Meta(description="Without your own dependency folders, because it makes them.")
    ] = False
    timeout_ms: Annotated[
        Milliseconds | None, Meta(description="How long it may take; 30 minutes if not said.")
    ] = None
