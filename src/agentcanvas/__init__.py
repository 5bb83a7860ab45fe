"""Run a team of coding agents on your repository, and let nothing land without a verdict.

The names below are for users; each is imported when it is first used, so that a command does not
pay for what it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentcanvas._version import __version__

if TYPE_CHECKING:
    from agentcanvas.app.team import RunResult, Team, run_flow
    from agentcanvas.hub.agent import Agent
    from agentcanvas.hub.blocking import connect_blocking
    from agentcanvas.hub.connecting import connect
    from agentcanvas.hub.conversations import Call
    from agentcanvas.hub.tasks import Task
    from agentcanvas.protocol.envelope import Envelope as Message

_HOMES = {
    "Agent": ("agentcanvas.hub.agent", "Agent"),
    "Call": ("agentcanvas.hub.conversations", "Call"),
    "Message": ("agentcanvas.protocol.envelope", "Envelope"),
    "RunResult": ("agentcanvas.app.team", "RunResult"),
    "Task": ("agentcanvas.hub.tasks", "Task"),
    "Team": ("agentcanvas.app.team", "Team"),
    "connect": ("agentcanvas.hub.connecting", "connect"),
    "connect_blocking": ("agentcanvas.hub.blocking", "connect_blocking"),
    "run_flow": ("agentcanvas.app.team", "run_flow"),
}

__all__ = [
    "Agent",
    "Call",
    "Message",
    "RunResult",
    "Task",
    "Team",
    "__version__",
    "connect",
    "connect_blocking",
    "run_flow",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
