"""Another text for other data: only what differs is written anew, all else stays byte for byte.

The differences between the old and the new data become splices of the text at the places where
ruamel.yaml found the old values. The result is read back; a text that does not hold exactly the
wanted data is never returned.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentcanvas.errors import FlowError
from agentcanvas.flows import emit
from agentcanvas.flows.document import Document, read_document
from agentcanvas.flows.entries import Entry, entries_of
from agentcanvas.flows.nodes import MappingNode, Node, ScalarNode, SequenceNode
from agentcanvas.flows.problem import steps_of
from agentcanvas.flows.splice import (
    OverlapError,
    Splice,
    begins_line,
    insert_lines,
    is_last_on_line,
    line_end,
    line_start,
    next_line,
    spliced,
)


def updated(document: Document, data: dict[str, Any]) -> Document:
    """The document with ``data`` in place of its own; comments, order and quoting stay."""
    if document.root is None or not isinstance(document.data, dict):
        raise FlowError("This file cannot be changed before it can be read; mend it first.")
    changes = _Changes(document.text)
    changes.root(document.root, document.data, data)
    try:
        made = read_document(document.mark + spliced(document.text, changes.splices), document.file)
    except OverlapError:
        made = None
    if made is None or made.root is None or not same(made.data, data):
        raise FlowError(
            "This change cannot be written without rewriting the file, perhaps because of an "
            "anchor (&) or an unusual layout; make it in an editor."
        )
    return made


def with_value(document: Document, pointer: str, value: Any) -> Document:
    """The document with ``value`` at a JSON pointer; ``-`` as last step appends to a list."""
    data = copy.deepcopy(document.data)
    holder, step = _holder(data, pointer)
    if isinstance(holder, dict):
        holder[step] = value
    elif step == "-":
        holder.append(value)
    else:
        holder[int(step)] = value
    return updated(document, data)


def without(document: Document, pointer: str) -> Document:
    """The document without the value at a JSON pointer."""
    data = copy.deepcopy(document.data)
    holder, step = _holder(data, pointer)
    del holder[step if isinstance(holder, dict) else int(step)]
    return updated(document, data)


def _holder(data: Any, pointer: str) -> tuple[Any, str]:
    steps = steps_of(pointer)
    holder = data
    try:
        for step in steps[:-1]:
            holder = holder[step] if isinstance(holder, dict) else holder[int(step)]
        if not isinstance(holder, dict):
            assert steps[-1] == "-" or holder[int(steps[-1])] is not ...
    except (KeyError, IndexError, ValueError, TypeError):
        raise FlowError(f"There is nothing at {pointer} in this flow.") from None
    return holder, steps[-1]


def same(one: Any, other: Any) -> bool:
    """Equality as YAML has it: true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


@dataclass(frozen=True)
class _Slot:
    """A place that holds a value: behind ``begin`` (a colon or a dash), inside ``indent``."""

    node: Node
    begin: int
    indent: int
    in_flow: bool = False
    in_list: bool = False


@dataclass
class _Changes:
    text: str
    splices: list[Splice] = field(default_factory=list)

    def root(self, node: Node, old: dict[str, Any], new: dict[str, Any]) -> None:
        if isinstance(node, MappingNode) and old.keys() & new.keys():
            self.mapping(node, old, new, in_flow=node.flow)
        else:
            text = emit.lines(new, 0) if new else "{}"
            end = line_end(self.text, node.end)
            self.splices.append(Splice(node.start.index, end, text))

    def value(self, slot: _Slot, old: Any, new: Any) -> None:
        if same(old, new):
            return
        node = slot.node
        if isinstance(node, MappingNode) and isinstance(new, dict) and old.keys() & new.keys():
            self.mapping(node, old, new, in_flow=slot.in_flow or node.flow)
        elif isinstance(node, SequenceNode) and isinstance(new, list) and new and old:
            if not self.sequence(node, old, new, in_flow=slot.in_flow or node.flow):
                self.replace(slot, new)
        else:
            self.replace(slot, new)

    def mapping(
        self, node: MappingNode, old: dict[str, Any], new: dict[str, Any], *, in_flow: bool
    ) -> None:
        entries = entries_of(self.text, node)
        names = [entry.name for entry in entries]
        for entry in entries:
            if entry.name in new:
                slot = _Slot(entry.value, entry.value_from, node.column, in_flow)
                self.value(slot, old[entry.name], new[entry.name])
        self.rearrange(
            entries,
            kept=[name in new for name in names],
            places=[names.index(name) if name in old else None for name in new],
            written=[emit.written_entry(n, e, node.column, flow=in_flow) for n, e in new.items()],
            in_flow=in_flow,
        )

    def sequence(
        self, node: SequenceNode, old: list[Any], new: list[Any], *, in_flow: bool
    ) -> bool:
        """Change, add and remove items; False if they are not the same ones in the same order."""
        matched = _matched(old, new)
        entries = entries_of(self.text, node)
        if matched is None or any(_is_absent(entry.value) for entry in entries):
            return False
        for index, place in enumerate(matched):
            if place is not None:
                entry = entries[place]
                slot = _Slot(entry.value, entry.value_from, node.column, in_flow, in_list=True)
                self.value(slot, old[place], new[index])
        self.rearrange(
            entries,
            kept=[place in matched for place in range(len(old))],
            places=matched,
            written=[emit.written_item(each, node.column, flow=in_flow) for each in new],
            in_flow=in_flow,
        )
        return True

    def rearrange(
        self,
        entries: Sequence[Entry],
        *,
        kept: Sequence[bool],
        places: Sequence[int | None],
        written: Sequence[str],
        in_flow: bool,
    ) -> None:
        """Take out the entries that are not kept, and put in those that have no place yet."""
        remove = self.remove_in_flow if in_flow else self.remove_lines
        remove(entries, kept)
        before: Entry | None = None
        first = next(entry for entry, keep in zip(entries, kept, strict=True) if keep)
        for place, text in zip(places, written, strict=True):
            if place is not None:
                before = entries[place]
            elif in_flow:
                self.insert_in_flow(before, first, text)
            else:
                self.insert_line(before, first, text)

    def insert_in_flow(self, before: Entry | None, first: Entry, text: str) -> None:
        if before is None:
            self.splices.append(Splice(first.start, first.start, f"{text}, "))
        else:
            self.splices.append(Splice(before.end, before.end, f", {text}"))

    def insert_line(self, before: Entry | None, first: Entry, text: str) -> None:
        if before is not None:
            self.splices.append(insert_lines(self.text, next_line(self.text, before.end), text))
        elif begins_line(self.text, first.start):
            self.splices.append(insert_lines(self.text, line_start(self.text, first.start), text))
        else:
            column = first.start - line_start(self.text, first.start)
            gap = "\n" + " " * column
            self.splices.append(Splice(first.start, first.start, text.lstrip(" ") + gap))

    def remove_in_flow(self, entries: Sequence[Entry], kept: Sequence[bool]) -> None:
        last = max(index for index, keep in enumerate(kept) if keep)
        for index, keep in enumerate(kept[:last]):
            if not keep:
                self.splices.append(Splice(entries[index].start, entries[index + 1].start))
        if last + 1 < len(entries):
            self.splices.append(Splice(entries[last].end, entries[-1].end))

    def remove_lines(self, entries: Sequence[Entry], kept: Sequence[bool]) -> None:
        for index, keep in enumerate(kept):
            if keep:
                continue
            entry = entries[index]
            if begins_line(self.text, entry.start):
                begin = line_start(self.text, entry.start)
                self.splices.append(Splice(begin, next_line(self.text, entry.end)))
            else:
                self.splices.append(Splice(entry.start, entries[index + 1].start))

    def replace(self, slot: _Slot, new: Any) -> None:
        node = slot.node
        start = node.start.index
        if slot.in_flow or _stays_flow(node, new):
            self.splices.append(Splice(start, node.end, self.gap(slot) + emit.inline(new)))
        elif isinstance(new, dict | list) and new:
            self.replace_by_block(slot, new)
        elif _begins_below(self.text, slot):
            key_line = line_end(self.text, slot.begin)
            self.splices.append(Splice(slot.begin, slot.begin, f" {emit.inline(new)}"))
            self.splices.append(Splice(key_line, node.end))
        else:
            self.replace_by_scalar(slot, new)

    def gap(self, slot: _Slot) -> str:
        """What a value needs before it, where none was written."""
        if slot.in_list or slot.node.start.index != slot.begin:
            return ""
        return " " if self.text[slot.begin - 1] == ":" else ": "

    def replace_by_scalar(self, slot: _Slot, new: Any) -> None:
        node, end = slot.node, slot.node.end
        if isinstance(new, str) and isinstance(node, ScalarNode) and node.style in ('"', "'"):
            text = emit.text(new, node.style)
        elif is_last_on_line(self.text, node.end):
            text = emit.block(new, slot.indent + emit.STEP).lstrip(" ")
            end = line_end(self.text, node.end) if "\n" in text else end
        else:
            text = emit.inline(new)  # a literal block would swallow the comment behind it
        self.splices.append(Splice(node.start.index, end, self.gap(slot) + text))

    def replace_by_block(self, slot: _Slot, new: Any) -> None:
        node, text = slot.node, self.text
        # A comment behind the last line of what goes, goes too: the new last line may be a literal
        # block, which would take it for its own.
        end = line_end(text, node.end)
        if _begins_below(text, slot):
            # Comments between the key and the old value stay where they are.
            begin = line_start(text, node.start.index)
            column = node.start.index - begin
            if isinstance(new, dict) and column == slot.indent:
                column += emit.STEP  # a list may stand right below its key, a section may not
            self.splices.append(Splice(begin, end, emit.lines(new, column)))
        elif slot.in_list:
            column = node.start.index - line_start(text, node.start.index)
            lines = emit.lines(new, column).lstrip(" ")
            self.splices.append(Splice(node.start.index, end, lines))
        else:
            lines = emit.lines(new, slot.indent + emit.STEP)
            if "\n" in text[slot.begin : node.end]:
                self.splices.append(Splice(slot.begin, end, f"\n{lines}"))
            else:
                self.splices.append(Splice(slot.begin, node.end))
                self.splices.append(Splice(end, end, f"\n{lines}"))


def _begins_below(text: str, slot: _Slot) -> bool:
    """Whether a block begins on a line of its own, below its key."""
    node = slot.node
    is_block = isinstance(node, MappingNode | SequenceNode) and not node.flow
    return is_block and "\n" in text[slot.begin : node.start.index]


def _stays_flow(node: Node, new: Any) -> bool:
    """Whether a value that stood between brackets goes on to do so."""
    if not isinstance(new, dict | list):
        return False
    if isinstance(node, MappingNode | SequenceNode) and node.flow:
        empty = not (node.entries if isinstance(node, MappingNode) else node.items)
        plain = isinstance(new, list) and not any(isinstance(each, dict | list) for each in new)
        return not empty or plain or not new
    return False


def _is_absent(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.is_absent


def _matched(old: list[Any], new: list[Any]) -> list[int | None] | None:
    """For each new item the place of the old one that it continues; None if they were reordered.

    Items with an id are known by it, others by their content; and where as many are there as
    before and nobody has moved, by their place.
    """
    old_keys, new_keys = [_identity(each) for each in old], [_identity(each) for each in new]
    places = [old_keys.index(key) if key in old_keys else None for key in new_keys]
    if len(old) == len(new) and all(place in (None, index) for index, place in enumerate(places)):
        return list(range(len(old)))
    known = [place for place in places if place is not None]
    return places if known and known == sorted(set(known)) else None


def _identity(item: Any) -> str:
    if isinstance(item, dict) and isinstance(item.get("id"), str):
        return f"id {item['id']}"
    return json.dumps(item, sort_keys=True)
