"""Which values of the environment are secrets, so that they can be left out of everything kept."""

from __future__ import annotations

from collections.abc import Mapping

from agentcanvas.protocol.secret_values import SECRET_NAME


def secrets_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Values that are secrets by the names people give them; others are known once an agent gets
    them by name (D37)."""
    return {name: value for name, value in environ.items() if SECRET_NAME.search(name)}
