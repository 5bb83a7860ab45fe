"""YAML text as a tree of nodes that know where in the text they stand.

ruamel.yaml scans and parses; the tree is built here, because an alias must keep its own place (a
composer hands out the anchor's), and because depth and size are bounded while reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from agentcanvas.flows.problem import Rule

MAX_DEPTH: Final = 48
_TEXT_TAGS: Final = frozenset({"!", "tag:yaml.org,2002:str"})


@dataclass(frozen=True)
class Mark:
    """A place in the text; all three start at 0."""

    index: int
    line: int
    column: int


class UnreadableError(Exception):
    """The text is not YAML; nothing can be said about the flow in it."""

    def __init__(
        self, sentence: str, suggestion: str, mark: Mark, rule: Rule = Rule.SYNTAX
    ) -> None:
        super().__init__(sentence)
        self.rule = rule
        self.sentence = sentence
        self.suggestion = suggestion
        self.mark = mark


@dataclass(frozen=True)
class Node:
    """A part of the text; ``end`` is behind its last character, comments not included."""

    start: Mark
    end: int


@dataclass(frozen=True)
class ScalarNode(Node):
    text: str
    style: str
    """Empty for a plain word, else the quote, or ``|`` or ``>`` with its indicators."""
    tag: str = ""

    @property
    def is_plain(self) -> bool:
        return not self.style and self.tag not in _TEXT_TAGS

    @property
    def is_absent(self) -> bool:
        """Whether nothing is written; the marks then stand where the next thing begins."""
        return self.start.index == self.end


@dataclass(frozen=True)
class MappingNode(Node):
    entries: tuple[tuple[Node, Node], ...]
    flow: bool
    column: int
    """Of the first key, which all keys of a block share."""
    tag: str = ""


@dataclass(frozen=True)
class SequenceNode(Node):
    items: tuple[Node, ...]
    flow: bool
    column: int
    """Of the first dash, which all dashes of a block share."""
    tag: str = ""


@dataclass(frozen=True)
class AliasNode(Node):
    """A mention of another node; None when there is no such anchor, or it is around the mention."""

    name: str
    target: Node | None


def parse(text: str) -> Node | None:
    """The one document in ``text``; None if there is nothing but comments."""
    reader = _Reader(text, iter(YAML(typ="safe", pure=True).parse(text)))
    try:
        return reader.document()
    except MarkedYAMLError as wrong:
        raise _syntax(wrong) from None
    except ReaderError as wrong:
        line = text.count("\n", 0, wrong.position)
        column = wrong.position - text.rfind("\n", 0, wrong.position) - 1
        raise UnreadableError(
            "a control character is not allowed here",
            "remove it",
            Mark(wrong.position, line, column),
        ) from None
    except (YAMLError, ValueError, IndexError, AttributeError, AssertionError, TypeError):
        # ruamel's scanner fails in its own ways on some broken directives and tags.
        raise UnreadableError(
            "this is not YAML that can be read", "look at its directives and tags", Mark(0, 0, 0)
        ) from None


def _syntax(wrong: MarkedYAMLError) -> UnreadableError:
    mark = wrong.problem_mark or wrong.context_mark
    place = _mark(mark) if mark else Mark(0, 0, 0)
    problem = str(wrong.problem)
    if "'\\t'" in problem:
        return UnreadableError("a tab stands where YAML wants spaces", "use spaces", place)
    if "mapping values are not allowed" in problem:
        return UnreadableError(
            "a colon stands where no key can be", "quote the text, or check the indentation", place
        )
    for character in "@`%":
        if f"'{character}'" in problem:
            return UnreadableError(f"a word cannot begin with {character}", "quote it", place)
    sentence = f"{wrong.context}, {problem}" if wrong.context else problem
    return UnreadableError(sentence, "check quotes, brackets and indentation", place)


def _mark(mark: Any) -> Mark:
    return Mark(mark.index, mark.line, mark.column)


@dataclass
class _Reader:
    text: str
    events: Iterator[Event]
    anchors: dict[str, Node] = field(default_factory=dict)
    depth: int = 0

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self.events:
            if not isinstance(event, DocumentStartEvent):
                continue
            if root is not None:
                raise UnreadableError(
                    "a second document begins here", "keep one flow a file", _mark(event.start_mark)
                )
            if event.version not in (None, (1, 2)):
                raise UnreadableError(
                    "flows are YAML 1.2", "remove the %YAML line", _mark(event.start_mark)
                )
            root = self.node(next(self.events))
        return root

    def node(self, event: Event) -> Node:
        if isinstance(event, AliasEvent):
            target = self.anchors.get(event.anchor)
            return AliasNode(*self.span(event), event.anchor, target)
        if isinstance(event, ScalarEvent):
            made: Node = self.scalar(event)
        else:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise UnreadableError(
                    "this is nested deeper than any flow", "check it", _mark(event.start_mark)
                )
            made = (
                self.sequence(event) if isinstance(event, SequenceStartEvent) else self.map(event)
            )
            self.depth -= 1
        if anchor := getattr(event, "anchor", None):
            self.anchors[anchor] = made
        return made

    def scalar(self, event: ScalarEvent) -> ScalarNode:
        start, end = self.span(event)
        style = event.style or ""
        if style in ("|", ">"):
            header = self.text[start.index : end].partition("\n")[0]
            if "+" not in header.partition("#")[0]:
                end = start.index + len(self.text[start.index : end].rstrip())
            else:
                style += "+"
        return ScalarNode(start, end, str(event.value), style, str(event.tag or ""))

    def sequence(self, event: SequenceStartEvent) -> SequenceNode:
        items: list[Node] = []
        while not isinstance(inner := next(self.events), SequenceEndEvent):
            items.append(self.node(inner))
        end = self.end(event, inner, items)
        # A list that is not indented below its key is marked behind its first dash, not before.
        inside = event.end_mark
        behind = not event.flow_style and self.text[inside.index : inside.index + 1] != "-"
        return SequenceNode(
            start=_mark(event.start_mark),
            end=end,
            items=tuple(items),
            flow=bool(event.flow_style),
            column=inside.column - behind,
            tag=str(event.tag or ""),
        )

    def map(self, event: Event) -> MappingNode:
        assert isinstance(event, MappingStartEvent)
        entries: list[tuple[Node, Node]] = []
        while not isinstance(inner := next(self.events), MappingEndEvent):
            key = self.node(inner)
            value = self.node(next(self.events))
            if isinstance(value, ScalarNode) and value.is_absent:
                value = self.absent(key, value)
            entries.append((key, value))
        end = self.end(event, inner, [value for _, value in entries])
        return MappingNode(
            start=_mark(event.start_mark),
            end=end,
            entries=tuple(entries),
            flow=bool(event.flow_style),
            column=event.end_mark.column,
            tag=str(event.tag or ""),
        )

    def absent(self, key: Node, value: ScalarNode) -> ScalarNode:
        """A value that is not written has its place behind the key's colon."""
        colon = self.text.find(":", key.end)
        behind = colon + 1 if 0 <= colon < max(value.start.index, key.end + 1) else key.end
        column = key.start.column + behind - key.start.index
        return ScalarNode(Mark(behind, key.start.line, column), behind, "", "")

    def end(self, start: Event, last: Event, children: list[Node]) -> int:
        if isinstance(start, SequenceStartEvent | MappingStartEvent) and start.flow_style:
            return int(last.end_mark.index)
        own = int(start.end_mark.index)
        return max([own, *(child.end for child in children)])

    def span(self, event: Event) -> tuple[Mark, int]:
        return _mark(event.start_mark), int(event.end_mark.index)
