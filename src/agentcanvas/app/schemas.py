"""Every schema the product exports, gathered from the layers that own them."""

from __future__ import annotations

from typing import Any

from agentcanvas.flows.schema import flow_schema
from agentcanvas.protocol import schema
from agentcanvas.web import descriptions


def documents() -> dict[str, dict[str, Any]]:
    """Each exported document by its file name."""
    return {
        **schema.documents(),
        "flow.schema.json": flow_schema(),
        **descriptions.documents(),
    }
