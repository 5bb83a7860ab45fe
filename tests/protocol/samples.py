"""The documents' own messages, and plain ones to bend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent / "examples"

Json = dict[str, Any]


def example(name: str) -> Any:
    """The parsed JSON of one example file."""
    return json.loads((EXAMPLES / f"{name}.json").read_bytes())


def example_messages() -> dict[str, bytes]:
    """Every message of a dialect among the examples; a line of a .jsonl is ``name:number``."""
    found: dict[str, bytes] = {}
    for path in sorted(EXAMPLES.glob("*.json*")):
        if not path.name.startswith(("mac_", "s22_", "acp_")) or path.name == "acp_audit.jsonl":
            continue
        if path.suffix == ".json":
            found[path.stem] = path.read_bytes()
        else:
            lines = path.read_bytes().splitlines()
            found |= {f"{path.stem}:{number}": line for number, line in enumerate(lines, start=1)}
    return found


def packed(message: object) -> bytes:
    """A message as bytes."""
    return json.dumps(message, ensure_ascii=False).encode()


def changed(message: Json, **fields: Any) -> Json:
    """A copy of a message with other top-level fields."""
    return {**message, **fields}


def with_payload(message: Json, **fields: Any) -> Json:
    """A copy of a message with other fields in its payload."""
    return {**message, "payload": {**message["payload"], **fields}}


def mac_request(**fields: Any) -> Json:
    """A TASK_REQUEST without a breach."""
    return changed(example("mac_task_request_min"), **fields)


def spec022_assignment(**fields: Any) -> Json:
    """A task_assignment without a breach."""
    message: Json = example("s22_task_assignment")
    message["message_id"] = "8d116ece-1738-47d9-bd9c-172411e20b8f"
    message["payload"]["task"]["constraints"]["must_not_break"] = []
    return changed(message, **fields)


def acp_command(**fields: Any) -> Json:
    """An AgentCommand without a breach."""
    return changed(example("acp_command_full"), **fields)


def acp_response(**fields: Any) -> Json:
    """An AgentResponse without a breach."""
    return changed(example("acp_response"), **fields)
