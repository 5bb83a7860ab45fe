"""What a flow lets its members reach and see, in words.

Only what goes beyond the usual is said: nothing of the network, for a coding CLI its own model, and
no variable of the host's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from agentcanvas.flows.team import Network, NetworkMode, Runtime

_OF_A_MODEL: Final = frozenset({"cli", "acp"})
_WORDS: Final = {
    NetworkMode.NONE: "nothing (network: none)",
    NetworkMode.MODEL: "its model (network: model)",
    NetworkMode.OPEN: "everything (network: open)",
}


class Reach(Struct, frozen=True):
    """What one member was given beyond the usual; both empty for one that was given nothing."""

    network: str = ""
    variables: tuple[str, ...] = ()


def usual_network(runtime: Runtime) -> Network:
    """What is reached unasked: whatever is nothing without a model may reach it."""
    is_of_a_model = runtime.kind in _OF_A_MODEL
    return Network(mode=NetworkMode.MODEL if is_of_a_model else NetworkMode.NONE)


def reach_of(runtime: Runtime | None) -> Reach:
    """What a runtime was given."""
    runtime = runtime or Runtime()
    network = runtime.network or usual_network(runtime)
    return Reach(
        "" if network == usual_network(runtime) else _short(network),
        tuple(dict.fromkeys((*runtime.env, *((runtime.key_env,) if runtime.key_env else ())))),
    )


def network_in_words(network: Network) -> str:
    """``everything (network: open)``, or the hosts."""
    return _WORDS.get(network.mode) or ", ".join(network.hosts) or "no host"


def in_one_line(reaches: Mapping[str, Reach]) -> str:
    """``Network: open; variables: X``, with names where members differ; empty for the usual."""
    networks = {name: reach.network for name, reach in reaches.items() if reach.network}
    variables = {name: ", ".join(reach.variables) for name, reach in reaches.items()}
    told = [
        f"{what}: {_grouped(given, len(reaches))}"
        for what, given in (
            ("network", networks),
            ("variables", {name: said for name, said in variables.items() if said}),
        )
        if given
    ]
    line = "; ".join(told)
    return line[:1].upper() + line[1:]


def _grouped(given: Mapping[str, str], members: int) -> str:
    """Each thing once, with those who have it where not everybody has."""
    groups: dict[str, list[str]] = {}
    for name, what in given.items():
        groups.setdefault(what, []).append(name)
    return " and ".join(
        what if len(names) == members else f"{what} ({', '.join(names)})"
        for what, names in groups.items()
    )


def _short(network: Network) -> str:
    return ", ".join(network.hosts) if network.mode is NetworkMode.HOSTS else str(network.mode)
