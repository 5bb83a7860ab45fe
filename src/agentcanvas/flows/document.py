"""The text of a flow, the plain data in it, and where each piece of data stands.

Pure: bytes in, values out. Nothing is judged here but what concerns every YAML file; ``shape`` and
``check`` say what a flow may hold, ``edit`` makes another text out of this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from agentcanvas.flows import nodes
from agentcanvas.flows.nodes import AliasNode, MappingNode, Mark, Node, ScalarNode, SequenceNode
from agentcanvas.flows.problem import Problem, Rule, Severity, at
from agentcanvas.flows.scalars import UnfitScalarError, reads_as_old_octal, resolve

MAX_BYTES: Final = 262_144
MAX_NODES: Final = 50_000
"""After aliases are followed; a flow that fits the file size without them has far less."""

_BYTE_ORDER_MARK: Final = "\ufeff"
_TEXT: Final = "tag:yaml.org,2002:str"


@dataclass(frozen=True)
class Place:
    """Where a value stands and, in a mapping, its key; lines and columns start at 1."""

    line: int
    column: int
    key_line: int
    key_column: int


@dataclass(frozen=True)
class Document:
    """One reading of one text; ``data`` is None when it could not be read at all."""

    file: str
    text: str
    data: Any
    root: Node | None
    places: Mapping[str, Place]
    problems: tuple[Problem, ...]
    mark: str = ""
    """The byte order mark before the text, if it has one."""

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return (self.mark + self.text).encode()

    def located(self, problem: Problem) -> Problem:
        """The problem with file, line and column; what is missing is placed where it should be."""
        if problem.line:
            return msgspec.structs.replace(problem, file=self.file)
        pointer = problem.pointer
        while pointer not in self.places and pointer:
            pointer = pointer.rpartition("/")[0]
        place = self.places.get(pointer)
        if place is None:
            return msgspec.structs.replace(problem, file=self.file)
        at_key = problem.at_key or pointer != problem.pointer
        line, column = (place.key_line, place.key_column) if at_key else (place.line, place.column)
        return msgspec.structs.replace(problem, file=self.file, line=line, column=column)


def read_document(content: bytes | str, file: str = "") -> Document:
    """Read one flow's text; what is wrong with it is in ``problems``, nothing is raised."""
    try:
        whole = content if isinstance(content, str) else _decoded(content)
        text = whole.removeprefix(_BYTE_ORDER_MARK)
        root = nodes.parse(text) if len(text) <= MAX_BYTES else _too_large()
    except nodes.UnreadableError as wrong:
        problem = Problem(
            wrong.rule,
            wrong.sentence,
            wrong.suggestion,
            file=file,
            line=wrong.mark.line + 1,
            column=wrong.mark.column + 1,
        )
        return Document(file, "", None, None, {}, (problem,))
    gathering = _Gathering()
    data = gathering.value(root, "", None) if root else None
    mark = whole.removesuffix(text)
    document = Document(file, text, data, root, gathering.places, (), mark)
    found = tuple(document.located(problem) for problem in gathering.problems)
    return replace(document, problems=found)


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        _too_large()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as wrong:
        before = content[: wrong.start].decode("utf-8", "replace")
        line = before.count("\n")
        mark = Mark(len(before), line, len(before) - before.rfind("\n") - 1)
        raise nodes.UnreadableError(
            "this is not UTF-8 text", "save it as UTF-8", mark, Rule.FILE
        ) from None


def _too_large() -> Node | None:
    raise nodes.UnreadableError(
        f"the file is larger than a flow may be, which is {MAX_BYTES:,} bytes",
        "move long texts into files of their own",
        Mark(0, 0, 0),
        Rule.FILE,
    )


@dataclass
class _Gathering:
    """Turns nodes into plain data, noting places and what YAML itself should not hold."""

    places: dict[str, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    count: int = 0

    def value(self, node: Node, pointer: str, key: Node | None) -> Any:
        self.note_place(node, pointer, key)
        self.count += 1
        if self.count > MAX_NODES:
            if self.count == MAX_NODES + 1:
                self.wrong(
                    Rule.ALIAS,
                    pointer,
                    f"with its aliases the flow has more than {MAX_NODES:,} values",
                    "write out what is meant",
                )
            return None
        if isinstance(node, AliasNode):
            return self.aliased(node, pointer)
        if isinstance(node, ScalarNode):
            return self.scalar(node, pointer)
        if isinstance(node, MappingNode):
            self.refuse_tag(node.tag, pointer)
            return self.mapping(node, pointer)
        assert isinstance(node, SequenceNode)
        self.refuse_tag(node.tag, pointer)
        return [self.value(item, at(pointer, i), None) for i, item in enumerate(node.items)]

    def aliased(self, node: AliasNode, pointer: str) -> Any:
        if node.target is None:
            self.wrong(
                Rule.ALIAS,
                pointer,
                f"*{node.name} stands for nothing that is complete before it",
                f"put &{node.name} at what is meant, further up",
            )
            return None
        own = self.places[pointer]
        data = self.value(node.target, pointer, None)
        # What was mentioned stands elsewhere; a problem in it is to be mended at its own place.
        self.places[pointer] = own
        return data

    def mapping(self, node: MappingNode, pointer: str) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, Node] = {}
        for key, value in node.entries:
            name = self.key(key, pointer)
            if name is None:
                continue
            if name in seen:
                first = seen[name].start.line + 1
                sentence = f"{name} is there twice, first in line {first}"
                self.wrong(Rule.DUPLICATE_KEY, at(pointer, name), sentence, "keep one", key)
                continue
            seen[name] = key
            data[name] = self.value(value, at(pointer, name), key)
        return data

    def key(self, node: Node, pointer: str) -> str | None:
        if not isinstance(node, ScalarNode) or node.is_absent:
            self.wrong(Rule.SYNTAX, pointer, "a key must be a word", "write name: value", node)
            return None
        if node.text == "<<" and node.is_plain:
            sentence = "merge keys (<<) are not read"
            self.wrong(Rule.ALIAS, at(pointer, "<<"), sentence, "write the keys out", node)
            return None
        return node.text

    def scalar(self, node: ScalarNode, pointer: str) -> Any:
        if node.tag not in ("", "!", _TEXT):
            self.refuse_tag(node.tag, pointer)
        if not node.is_plain:
            return node.text
        try:
            value = resolve(node.text)
        except UnfitScalarError as wrong:
            self.wrong(Rule.AMBIGUOUS, pointer, str(wrong), "quote it if a text is meant")
            return None
        if isinstance(value, int) and not isinstance(value, bool) and reads_as_old_octal(node.text):
            self.problems.append(
                Problem(
                    Rule.AMBIGUOUS,
                    f"{node.text} is {value} here and another number to older tools",
                    f'write {value}, or "{node.text}" for a text',
                    pointer,
                    Severity.WARNING,
                )
            )
        return value

    def refuse_tag(self, tag: str, pointer: str) -> None:
        if tag:
            self.wrong(Rule.SYNTAX, pointer, f"tags such as {tag} are not read", "remove it")

    def note_place(self, node: Node, pointer: str, key: Node | None) -> None:
        mark, of_key = node.start, (key or node).start
        self.places[pointer] = Place(
            mark.line + 1, mark.column + 1, of_key.line + 1, of_key.column + 1
        )

    def wrong(
        self, rule: Rule, pointer: str, sentence: str, suggestion: str, node: Node | None = None
    ) -> None:
        line, column = (node.start.line + 1, node.start.column + 1) if node else (0, 0)
        self.problems.append(Problem(rule, sentence, suggestion, pointer, line=line, column=column))
