"""What the processes of an agent reach of the network, and by which variables they find it (D11).

A ``WayOut`` is a rule of the team; an ``OpenWay`` is that rule while a turn lasts, with the egress
proxy in it where there is one. Who opens it is ``outbound``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentcanvas.sandbox.confine import Network, Places, View
from agentcanvas.sandbox.egress.proxy import Egress
from agentcanvas.sandbox.egress.rules import Rules


@dataclass(frozen=True)
class WayOut:
    """What an agent may reach; ``rules`` matter to the networks that lead through the proxy.

    ``keys`` are keys that are not in the host's environment, by the names that endpoints use.
    """

    network: Network = Network.NONE
    rules: Rules = field(default_factory=Rules)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class OpenWay:
    """A way out during one turn."""

    way: WayOut = WayOut()
    door: Egress | None = None

    def through(self, view: View) -> View:
        """The view of a process that goes this way."""
        return replace(view, network=self.way.network, door=self.door)

    def variables(self, places: Places) -> dict[str, str]:
        """By what tools find their models: the proxy's address, and the token for a key.

        The values stand in for the host's own, which never come in.
        """
        if self.door is None:
            return {}
        found: dict[str, str] = {}
        for model in reversed(self.way.rules.models):  # of two with one name, the first is served
            address = self.door.model_url(places, model.name) + model.told_path
            found |= dict.fromkeys(model.told_in, address)
            if model.key_from:
                found[model.key_from] = self.door.token
        return found


CLOSED = OpenWay()
"""No network at all."""
