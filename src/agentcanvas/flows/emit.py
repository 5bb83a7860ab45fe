"""Plain data as YAML text: what a person would have typed, read the same by every YAML version.

Texts stand unquoted only where that is beyond doubt; the rest is quoted, or a literal block when it
has several lines.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from agentcanvas.flows.scalars import is_text_everywhere

STEP: Final = 2
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./+()<>=-]*(?: [A-Za-z0-9_./+()<>=-]+)*")
_BLOCK: Final = re.compile(
    r"(?:[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]|\n)*"
)
_ESCAPED: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def block(value: Any, indent: int) -> str:
    """``value`` as it stands behind ``key:``, on the same line or in indented lines below it."""
    if isinstance(value, dict) and value:
        return "\n" + mapping_lines(value, indent)
    if isinstance(value, list) and value:
        return "\n" + sequence_lines(value, indent)
    if isinstance(value, str) and _is_block(value):
        return " " + _literal(value, indent)
    return " " + inline(value)


def lines(value: dict[str, Any] | list[Any], indent: int) -> str:
    """A collection that is not empty, in lines that are all indented."""
    if isinstance(value, dict):
        return mapping_lines(value, indent)
    return sequence_lines(value, indent)


def written_entry(name: str, value: Any, indent: int, *, flow: bool) -> str:
    """One entry of a mapping, between brackets or as lines."""
    return f"{text(name)}: {inline(value)}" if flow else mapping_lines({name: value}, indent)


def written_item(value: Any, indent: int, *, flow: bool) -> str:
    """One item of a list, between brackets or as lines."""
    return inline(value) if flow else _item(value, indent)


def mapping_lines(value: dict[str, Any], indent: int) -> str:
    """The entries of a mapping, one below the other, each indented."""
    pad = " " * indent
    return "\n".join(
        f"{pad}{text(name)}:{block(each, indent + STEP)}" for name, each in value.items()
    )


def sequence_lines(value: list[Any], indent: int) -> str:
    """The items of a list, one below the other, each behind an indented dash."""
    return "\n".join(_item(each, indent) for each in value)


def _item(value: Any, indent: int) -> str:
    pad = " " * indent
    if isinstance(value, dict) and value:
        return f"{pad}- {mapping_lines(value, indent + STEP).lstrip(' ')}"
    if isinstance(value, list) and value:
        return f"{pad}- {sequence_lines(value, indent + STEP).lstrip(' ')}"
    return f"{pad}-{block(value, indent + STEP)}"


def inline(value: Any) -> str:
    """``value`` on one line, as it can stand between brackets."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{text(name)}: {inline(each)}" for name, each in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(inline(each) for each in value) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return text(value) if isinstance(value, str) else repr(value)


def text(value: str, like: str = "") -> str:
    """A text on one line; ``like`` is the style it had before and keeps if it can."""
    if like == "'" and _PLAIN.fullmatch(value):
        return f"'{value}'"
    if like != '"' and _PLAIN.fullmatch(value) and is_text_everywhere(value):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _is_block(value: str) -> bool:
    """Whether a literal block holds exactly this text."""
    return (
        "\n" in value.rstrip("\n")
        and value == value.rstrip("\n") + "\n" * value.endswith("\n")
        and not value.startswith((" ", "\n"))
        and not any(line != line.rstrip() for line in value.split("\n"))
        and _BLOCK.fullmatch(value) is not None
    )


def _literal(value: str, indent: int) -> str:
    header = "|" if value.endswith("\n") else "|-"
    pad = " " * indent
    lines = value.rstrip("\n").split("\n")
    return "\n".join([header, *(pad + line if line else "" for line in lines)])
