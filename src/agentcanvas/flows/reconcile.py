"""A changed flow put back into the words of the old file.

Whoever edits a typed flow (the canvas, a program) knows nothing of how it was written down. What
still means the same keeps its old form, abbreviations and spelt-out defaults included; only the
rest takes the model's shortest form. ``edit`` then finds little to change.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect

from agentcanvas.flows.document import Document
from agentcanvas.flows.edit import updated
from agentcanvas.flows.emit import lines
from agentcanvas.flows.model import Flow
from agentcanvas.flows.shape import bare, folded, made, type_info


def with_flow(document: Document, flow: Flow) -> Document:
    """The document, changed so that it holds ``flow``."""
    old = document.data if isinstance(document.data, dict) else {}
    return updated(document, _struct(old, flow))


def flow_text(flow: Flow) -> str:
    """A flow as a new file."""
    return lines(_plain(flow), 0) + "\n"


def _plain(value: Any) -> Any:
    data = folded(value)
    if isinstance(value, Flow):
        data["version"] = float(value.version)  # as the format's own examples have it
    return data


def _struct(old: dict[str, Any], new: msgspec.Struct) -> dict[str, Any]:
    info = type_info(type(new))
    assert isinstance(info, inspect.StructType)
    short = _plain(new)
    kept: dict[str, Any] = {}
    for field in info.fields:
        name, value = field.encode_name, getattr(new, field.name)
        if name in old and _means(old[name], value, field, _hints(type(new))[field.name]):
            kept[name] = old[name]
        elif name in short:
            kept[name] = _value(old.get(name), value, short[name], field.type)
    return {info.tag_field: info.tag, **kept} if info.tag_field else kept


def _value(old: Any, new: Any, short: Any, info: inspect.Type) -> Any:
    info, _ = bare(info)
    if isinstance(new, msgspec.Struct) and isinstance(old, dict) and isinstance(short, dict):
        return _struct(old, new) if old.get("type") == short.get("type") else short
    if isinstance(info, inspect.VarTupleType) and isinstance(old, list) and isinstance(short, list):
        return [_item(old, index, new[index], each) for index, each in enumerate(short)]
    return short


def _item(old: list[Any], index: int, new: Any, short: Any) -> Any:
    """The old item with the same id, else the one at the same place, in new words."""
    if not isinstance(new, msgspec.Struct) or not isinstance(short, dict):
        return short
    name = short.get("id")
    alike = [each for each in old if isinstance(each, dict) and name and each.get("id") == name]
    if not alike and not name and index < len(old) and isinstance(old[index], dict):
        alike = [old[index]]
    return _struct(alike[0], new) if alike else short


def _means(old: Any, new: Any, field: inspect.Field, hint: Any) -> bool:
    """Whether the old words already say the new value."""
    if old is None:
        default = field.default_factory() if callable(field.default_factory) else field.default
        return bool(new == default)
    value, problems = made(old, hint)
    return not problems and bool(value == new)


@cache
def _hints(owner: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(owner, include_extras=True)
