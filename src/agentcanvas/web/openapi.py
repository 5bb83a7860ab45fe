"""Every HTTP operation as OpenAPI 3.1, made from the signatures that read the requests (D39)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import msgspec
from starlette.responses import Response

from agentcanvas._version import __version__
from agentcanvas.protocol.dialects.mac_wire import MESSAGES
from agentcanvas.protocol.scan import MAX_BYTES
from agentcanvas.protocol.schema import Schema, components
from agentcanvas.web.operation import JSON, Described
from agentcanvas.web.stream import EventStream

_REFERENCE = "#/components/schemas/{name}"
_PLACES = {"path": "path", "query": "query"}
_CONVERTER = re.compile(r"\{(\w+)(?::\w+)?\}")
_BINARY = {"type": "string", "format": "binary"}
_MESSAGE: Schema = {
    "description": f"A message of MAC, SPEC-022 or ACP of at most {MAX_BYTES:,} bytes, or an array "
    "of messages; see asyncapi.json.",
    "type": ["object", "array"],
}
_ERROR = next(each for each in MESSAGES if each.__struct_config__.tag == "ERROR")


def openapi(by_prefix: Mapping[str, Sequence[Described]]) -> Schema:
    """The document of these operations, each below its prefix."""
    operations = [one for below in by_prefix.values() for one in below]
    types = list(dict.fromkeys(each for one in operations for each in _types(one)))
    references, schemas = components([*types, _ERROR], _REFERENCE)
    of = dict(zip([*types, _ERROR], references, strict=True))
    paths: dict[str, Schema] = {}
    for prefix, below in by_prefix.items():
        for one in below:
            path = prefix + _CONVERTER.sub(r"{\1}", one.path)
            paths.setdefault(path, {})[one.method.lower()] = _operation(one, of, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "AgentCanvas",
            "version": __version__,
            "description": "Runs of a workspace, the office of its hub, and the door for agents. "
            "Every refusal is a MAC ERROR message.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7717"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The server's token (server.json); for messages and blobs that "
                    "of an agent.",
                }
            },
            "schemas": schemas,
        },
    }


def _operation(one: Described, of: dict[Any, Schema], schemas: Schema) -> Schema:
    summary, _, description = one.about.partition("\n")
    said: Schema = {"operationId": f"{one.group}_{one.name}", "tags": [one.group]}
    said["summary"] = summary
    if description.strip():
        said["description"] = description.strip()
    parameters = [
        parameter
        for part, place in _PLACES.items()
        if part in one.parts
        for parameter in _parameters(one.parts[part], place, schemas)
    ]
    if parameters:
        said["parameters"] = parameters
    body = _body(one, of)
    if body is not None:
        said["requestBody"] = {"required": True, "content": body}
    said["responses"] = {
        str(one.status if _contents(one, of) else 204): {
            "description": summary,
            **({"content": found} if (found := _contents(one, of)) else {}),
        },
        "default": {
            "description": "Why not: a MAC ERROR message.",
            "content": {JSON: {"schema": of[_ERROR]}},
        },
    }
    return said


def _parameters(kind: type[msgspec.Struct], place: str, schemas: Schema) -> Iterable[Schema]:
    definition = schemas[kind.__name__]
    required = definition.get("required", ())
    for name, schema in definition["properties"].items():
        yield {
            "name": name,
            "in": place,
            "required": place == "path" or name in required,
            "schema": _without_null(schema),
        }


def _without_null(schema: Schema) -> Schema:
    """A parameter is there or not; there is no way to write null in an address."""
    choices = schema.get("anyOf")
    if choices is None:
        return schema
    rest = [each for each in choices if each != {"type": "null"}]
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**plain, **rest[0]} if len(rest) == 1 else {**plain, "anyOf": rest}


def _body(one: Described, of: dict[Any, Schema]) -> Schema | None:
    if "request" in one.parts:
        return {"application/octet-stream": {"schema": _BINARY}}
    kind = one.parts.get("body")
    if kind is None:
        return None
    return {JSON: {"schema": of.get(kind, _MESSAGE)}}


def _contents(one: Described, of: dict[Any, Schema]) -> Schema:
    """What an answer holds, by its media type."""
    answers = _members(one.answer)
    found: Schema = {}
    values = [of[each] for each in answers if each in of]
    if values:
        found[JSON] = {"schema": values[0] if len(values) == 1 else {"oneOf": values}}
    if EventStream in answers:
        found["text/event-stream"] = {"schema": {"type": "string"}}
    if answers == [Response]:
        found["*/*"] = {"schema": _BINARY}
    return found


def _types(one: Described) -> list[Any]:
    said = [kind for part, kind in one.parts.items() if part not in ("request", "headers")]
    return [each for each in (*said, *_members(one.answer)) if _is_struct(each)]


def _members(answer: Any) -> list[Any]:
    return list(get_args(answer)) or [answer]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
