"""Which way leads to a hub: a ``Dial`` as it is, or an address that says how.

``ws://`` is a WebSocket, ``http://`` the way for those whom proxies keep from one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from urllib.parse import urlsplit

from agentcanvas.errors import ValidationError
from agentcanvas.hub.reconnecting import Dial

TOKEN_VARIABLE = "AGENTCANVAS_TOKEN"  # noqa: S105 - the name of a variable
_TRANSPORTS = {"ws": "websocket", "wss": "websocket", "http": "http", "https": "http"}


def way_to(
    hub: Dial | str, agent: str, token: str | None = None, capabilities: Iterable[str] = ()
) -> Dial:
    """Return a way to connect as ``agent``; the token may be in the environment instead."""
    if not isinstance(hub, str):
        return hub
    transport = _TRANSPORTS.get(urlsplit(hub).scheme)
    if transport is None:
        raise ValidationError(f"{hub} is no address of a hub; write ws://host:port.")
    token = token or os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise ValidationError(
            f"{agent} needs a token to connect to {hub}; make one with `agentcanvas token new "
            f"{agent}` and pass it as token=… or in {TOKEN_VARIABLE}."
        )
    # Imported when it is needed: an agent in the hub's own process needs no sockets.
    module = import_module(f"agentcanvas.hub.transports.{transport}")
    dial: Dial = module.dialing(hub, agent, token, capabilities=capabilities)
    return dial
