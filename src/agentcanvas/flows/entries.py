"""The entries of a mapping or a list, each with the place where it begins, dash included."""

from __future__ import annotations

from dataclasses import dataclass

from agentcanvas.flows.nodes import MappingNode, Node, ScalarNode, SequenceNode
from agentcanvas.flows.splice import line_start


@dataclass(frozen=True)
class Entry:
    """``start`` is at the key or the dash, ``value_from`` behind the colon or the dash."""

    name: str
    value: Node
    start: int
    value_from: int

    @property
    def end(self) -> int:
        return max(self.value.end, self.value_from)


def entries_of(text: str, node: MappingNode | SequenceNode) -> list[Entry]:
    """The entries in the order of the text."""
    if isinstance(node, MappingNode):
        return [_keyed(text, key, value) for key, value in node.entries]
    if node.flow:
        return [Entry("", each, each.start.index, each.start.index) for each in node.items]
    return [_dashed(text, each, node.column) for each in node.items]


def _keyed(text: str, key: Node, value: Node) -> Entry:
    assert isinstance(key, ScalarNode)
    colon = text.find(":", key.end, max(value.start.index, key.end + 1))
    behind = colon + 1 if colon >= 0 else key.end
    return Entry(key.text, value, key.start.index, behind)


def _dashed(text: str, item: Node, column: int) -> Entry:
    """The dash stands on the item's line, or further up when comments are between."""
    begin = line_start(text, item.start.index)
    while begin > 0 and text[begin + column : begin + column + 1] != "-":
        begin = line_start(text, begin - 1)
    return Entry("", item, begin + column, begin + column + 1)
