"""Texts of the same data as different people would have typed them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import strategies as st

from agentcanvas.flows import emit

NAMES = st.sampled_from(
    ["id", "name", "a", "b", "rules", "on", "x y", "deep/er", "~t", "1", "é: #"]
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", "no", "a1", "0.2", "x: y", "# c", "two\nlines", " lead", "- d", "'q'", "né"]
    ),
    st.text(max_size=8),
)
SCALARS = st.one_of(
    TEXTS,
    st.integers(-(10**12), 10**12),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
MAPPINGS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(NAMES, VALUES, max_size=5)


class Typist:
    """Writes data as YAML with habits of its own: brackets, blank lines, comments, indents."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def text(self, data: dict[str, Any]) -> str:
        if not data:
            return "{}\n"
        head = self.random.choice(["", "# a flow\n", "---\n", "\ufeff"])
        end = self.random.choice(["", "\n", "\n# the end\n", "\n...\n"])
        text = head + self._mapping(data, 0) + end
        return text.replace("\n", "\r\n") if self.random.random() < 0.1 else text

    def _mapping(self, data: dict[str, Any], indent: int) -> str:
        lines = []
        for name, value in data.items():
            space = " " * self.random.choice([0, 0, 0, 1])
            lines += [*self._between(indent)]
            lines.append(f"{' ' * indent}{emit.text(name)}{space}:{self._behind(value, indent)}")
        return "\n".join(lines)

    def _behind(self, value: Any, indent: int, *, dash: bool = False) -> str:
        if isinstance(value, dict | list) and value and self.random.random() < 0.7:
            comment = self._comment()
            step = self.random.choice([1, 2, 4])
            if isinstance(value, dict):
                return f"{comment}\n{self._mapping(value, indent + step)}"
            step = step if dash else self.random.choice([0, step])
            return f"{comment}\n{self._sequence(value, indent + step)}"
        if value is None and self.random.random() < 0.5 and not dash:
            return self._comment()
        if isinstance(value, str) and "\n" in value and self.random.random() < 0.5:
            return emit.block(value, indent + 2)
        gap = " " * self.random.choice([1, 1, 3])
        return gap + self._inline(value) + self._comment()

    def _sequence(self, items: list[Any], indent: int) -> str:
        pad = " " * indent
        lines = []
        for item in items:
            lines += [*self._between(indent)]
            if isinstance(item, dict) and item and self.random.random() < 0.7:
                lines.append(f"{pad}- {self._mapping(item, indent + 2).lstrip(' #c' + chr(10))}")
            else:
                lines.append(f"{pad}-{self._behind(item, indent, dash=True)}")
        return "\n".join(lines)

    def _inline(self, value: Any) -> str:
        if isinstance(value, dict):
            inner = [f"{emit.text(name)}: {self._inline(each)}" for name, each in value.items()]
            return "{" + self._joined(inner) + "}"
        if isinstance(value, list):
            return "[" + self._joined([self._inline(each) for each in value]) + "]"
        if isinstance(value, str) and self.random.random() < 0.5:
            if value.isprintable() and self.random.random() < 0.5:
                return "'" + value.replace("'", "''") + "'"
            return emit.text(value, '"')
        return emit.inline(value)

    def _joined(self, parts: list[str]) -> str:
        gap = self.random.choice(["", " "])
        comma = "," if parts and self.random.random() < 0.2 else ""
        return gap + ", ".join(parts) + comma + gap

    def _comment(self) -> str:
        return self.random.choice(["", "", "", "  # why - not: so", " "])

    def _between(self, indent: int) -> list[str]:
        return self.random.choice([[], [], [], [""], [" " * indent + "# c"], ["# c", ""]])


def mutated(data: dict[str, Any], random: Random, fresh: list[Any]) -> dict[str, Any]:
    """Another mapping not far from this one."""
    copied: dict[str, Any] = json.loads(json.dumps(data))
    for value in fresh:
        _mutate(copied, random, value)
    return copied


def _mutate(data: Any, random: Random, value: Any) -> None:
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    if keys and random.random() < 0.6:
        inner = data[random.choice(keys)]
        if isinstance(inner, dict | list):
            _mutate(inner, random, value)
            return
    if keys and random.random() < 0.3:
        del data[random.choice(keys)]
    elif keys and random.random() < 0.5:
        data[random.choice(keys)] = value
    elif isinstance(data, dict):
        data[random.choice(["new", "name", "zz", "on"])] = value
    else:
        data.insert(random.randint(0, len(data)), value)
