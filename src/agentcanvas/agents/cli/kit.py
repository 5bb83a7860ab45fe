"""What every run of a coding CLI needs: what is wished of it, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from agentcanvas.agents.cli.adapter import Adapter, Server
from agentcanvas.agents.cli.own_login import Login
from agentcanvas.agents.cli.providers import Provider
from agentcanvas.agents.runtime import Turn
from agentcanvas.clock import Clock
from agentcanvas.protocol.records import Usage
from agentcanvas.sandbox.confine import Confinement, Places
from agentcanvas.sandbox.process import Limits

UNCONFINED = "unconfined"

Servers = Callable[[Turn, Places], Sequence[Server]]
"""The MCP servers that a member gets; asked at the beginning of each turn."""

Price = Callable[[Usage], float | None]
"""What a number of tokens costs, in US dollars, as far as a price is known."""


class CliWishes(Struct, frozen=True, kw_only=True):
    """What a flow and the settings say about a member that is a CLI.

    ``provider`` is the model service that it gets a key for; without one it uses a login of its
    own, lent from ``login``. ``program`` stands for the one on the PATH. ``bypass`` turns its own
    questions off even where nothing else confines it.
    """

    model: str = ""
    provider: Provider | None = None
    login: Login | None = None
    program: tuple[str, ...] = ()
    system: str = ""
    max_turns: int | None = None
    retries: int = 2
    bypass: bool = False


@dataclass(frozen=True)
class Kit:
    """What every run of a CLI needs."""

    adapter: Adapter
    confinement: Confinement
    clock: Clock
    wishes: CliWishes
    environ: Mapping[str, str]
    servers: Servers
    price: Price
    limits: Limits
    counted: dict[str, Usage] = field(default_factory=dict)
    """What sessions have counted so far, where they go on counting."""
