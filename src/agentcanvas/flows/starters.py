"""Flows to start from: commented text files beside this module."""

from __future__ import annotations

from importlib.resources import files

from agentcanvas.errors import FlowError
from agentcanvas.flows.problem import did_you_mean

STARTERS = {
    "solo": "one coder; you review",
    "team": "a planner, two coders and a reviewer",
}


def starter(name: str) -> str:
    """The text of a starter flow."""
    if name not in STARTERS:
        raise FlowError(f"There is no starter {name}; {did_you_mean(name, STARTERS)}")
    return (files(__package__) / "templates" / f"{name}.yaml").read_text("utf-8")
