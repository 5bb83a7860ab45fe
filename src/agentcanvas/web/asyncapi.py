"""The WebSocket an agent speaks on, as AsyncAPI 3.1: messages of all dialects, words about them."""

from __future__ import annotations

import msgspec

from agentcanvas.hub import frames
from agentcanvas.protocol.dialect import spoken
from agentcanvas.protocol.scan import MAX_BYTES
from agentcanvas.protocol.schema import WIRES, Schema, components
from agentcanvas.web.agent_socket import ConnectQuery

_WORDS: dict[str, type[msgspec.Struct]] = {
    "word": frames.Word,
    "receipts": frames.Receipts,
    "settled": frames.Settled,
}
_CHANNEL = {"$ref": "#/channels/agent"}
_INFO = {
    "title": "AgentCanvas hub",
    "version": "1.0.0",
    "description": "Agents of three dialects exchange messages; the hub translates. One "
    f"frame is one message, JSON in UTF-8, at most {MAX_BYTES:,} bytes.",
    "license": {"name": "Apache-2.0"},
}
_DELIVERY = {
    "delivery": {
        "description": "The hub's own member, always the last; take it off before a signature is "
        "verified.",
        "$ref": "#/components/schemas/frame.Delivery",
    }
}


def asyncapi() -> Schema:
    """The whole document."""
    messages, schemas = _of_dialects()
    frame_references, parts = components(
        [*_WORDS.values(), frames.Delivery, ConnectQuery], "#/components/schemas/frame.{name}"
    )
    query = parts.pop(ConnectQuery.__name__)["properties"]
    schemas |= {f"frame.{name}": part for name, part in parts.items()}
    for (name, kind), payload in zip(_WORDS.items(), frame_references, strict=False):
        messages[f"frame.{name}"] = _message(name, name.capitalize(), kind, payload)
    references = {key: {"$ref": f"#/components/messages/{key}"} for key in messages}
    return {
        "asyncapi": "3.1.0",
        "info": _INFO,
        "defaultContentType": "application/json",
        "servers": {"local": {"host": "127.0.0.1:7717", "protocol": "ws"}},
        "channels": {"agent": _channel(references, query)},
        "operations": _operations(),
        "components": {
            "messages": messages,
            "schemas": schemas,
            "messageTraits": {
                "delivered": {
                    "description": "What the hub delivers has one more member.",
                    "headers": {"type": "object", "properties": _DELIVERY},
                }
            },
        },
    }


def _of_dialects() -> tuple[Schema, Schema]:
    """Every message of every dialect, and the schemas these are made of."""
    messages: Schema = {}
    schemas: Schema = {}
    for name, types in WIRES.items():
        payloads, parts = components(types, f"#/components/schemas/{name}.{{name}}")
        schemas |= {f"{name}.{part}": schema for part, schema in parts.items()}
        for type_, payload in zip(types, payloads, strict=True):
            wire_name = _wire_name(type_)
            title = f"{spoken(name)} {wire_name}"
            messages[f"{name}.{wire_name}"] = _message(wire_name, title, type_, payload)
    return messages, schemas


def _message(name: str, title: str, type_: type, payload: Schema) -> Schema:
    return {
        "name": name,
        "title": title,
        "summary": (type_.__doc__ or "").strip().splitlines()[0],
        "contentType": "application/json",
        "payload": payload,
    }


def _wire_name(type_: type[msgspec.Struct]) -> str:
    tag = type_.__struct_config__.tag
    return str(tag) if tag is not None else type_.__name__


def _channel(messages: Schema, query: Schema) -> Schema:
    said = {
        "agent_id": {"type": "string", "description": "Who connects."},
        "auth_token": {
            "type": "string",
            "description": "The agent's token, unless it is sent as an "
            "Authorization header, which stays out of logs.",
        },
    }
    return {
        "address": "/agent/ws",
        "description": "One connection of one agent, both ways.",
        "messages": messages,
        "bindings": {
            "ws": {
                "method": "GET",
                "query": {
                    "type": "object",
                    "required": ["agent_id"],
                    "properties": said | {k: v for k, v in query.items() if k not in said},
                },
                "bindingVersion": "0.1.0",
            }
        },
    }


def _operations() -> Schema:
    return {
        "send": {
            "action": "receive",
            "channel": _CHANNEL,
            "summary": "The agent says something to another agent or to all.",
        },
        "deliver": {
            "action": "send",
            "channel": _CHANNEL,
            "summary": "The hub delivers, in the dialect the agent speaks.",
        },
        "acknowledge": _about("word", "receive", "The agent says what became of messages it got."),
        "confirm": _about("receipts", "send", "The hub has kept messages; they are on disk."),
        "settle": _about("settled", "send", "The hub has heard a word that asked for an answer."),
    }


def _about(name: str, action: str, summary: str) -> Schema:
    return {
        "action": action,
        "channel": _CHANNEL,
        "summary": summary,
        "messages": [{"$ref": f"#/channels/agent/messages/frame.{name}"}],
    }
