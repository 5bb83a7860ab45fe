"""The JSON Schema of a flow, for editors, exported from the model so that the two agree."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Final

import msgspec

from agentcanvas.flows.model import Flow
from agentcanvas.flows.part import ONE, SHORT

SCHEMA_ID: Final = "https://agentcanvas.dev/schema/flow.schema.json"
_ONE: Final = f"x-{ONE}"
_SHORT: Final = f"x-{SHORT}"


def flow_schema() -> dict[str, Any]:
    """What an editor needs to complete and check a flow while it is typed."""
    (reference,), components = msgspec.json.schema_components([Flow], ref_template="#/$defs/{name}")
    definitions = {name: _with_abbreviations(each) for name, each in components.items()}
    root = definitions.pop(str(reference["$ref"]).rpartition("/")[2])
    root["properties"]["version"]["enum"] = [0.2, "0.2"]  # unquoted it is a number to YAML
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **root,
        "title": "AgentCanvas flow",
        "$defs": definitions,
    }


def _with_abbreviations(schema: Any) -> Any:
    """One thing may stand for a list of one, and a word for a section, where the model says so."""
    if isinstance(schema, list):
        return [_with_abbreviations(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: _with_abbreviations(each)
        for name, each in schema.items()
        if name not in (_ONE, _SHORT)
    }
    if isinstance(text := plain.get("description"), str):
        plain["description"] = cleandoc(text)
    if _ONE not in schema and _SHORT not in schema:
        return plain
    noted = {name: plain.pop(name) for name in ("description", "default") if name in plain}
    short = plain["items"] if _ONE in schema else {"type": "string"}
    return noted | {"anyOf": [short, plain]}
