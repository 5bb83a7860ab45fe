"""Reading a settings file: every leaf with its line and column, and every problem at once.

The YAML is composed into nodes and walked along the catalogue of keys; nothing of it is ever turned
into an object other than a plain number, text or truth value.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from agentcanvas.app.settings.keys import KEYS, children, unknown_key

MAX_FILE_BYTES = 262_144
_MAX_DEPTH = 32


@dataclass(frozen=True)
class Given:
    """One leaf of the file that names a setting."""

    name: str
    value: object
    place: str  # file:line:column


@dataclass(frozen=True)
class Trouble:
    """Something wrong with the file; the sentence begins with the place."""

    sentence: str


def read_yaml_file(path: Path) -> Iterator[Given | Trouble]:
    """All leaves and all troubles, in the order of the file; nothing if there is no file."""
    try:
        text = _text(path)
        root = _compose(path, text)
    except _UnreadableError as wrong:
        yield Trouble(str(wrong))
        return
    if root is not None:
        yield from _section(root, (), path)


class _UnreadableError(ValueError):
    """Nothing can be read from the file, for this reason."""


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _UnreadableError(f"{path} is not a file; move it away or make it one")
        if status.st_size > MAX_FILE_BYTES:
            raise _UnreadableError(
                f"{path} has {status.st_size:,} bytes; settings fit in {MAX_FILE_BYTES:,}"
            )
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise _UnreadableError(f"{path} is a link to a file that does not exist") from None
        return ""
    except OSError as wrong:
        raise _UnreadableError(f"{path} cannot be read: {wrong.strerror}") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        column = wrong.start - content.rfind(b"\n", 0, wrong.start)
        raise _UnreadableError(
            f"{path}:{line}:{column}: the file is not UTF-8 text; save it as UTF-8"
        ) from None


def _compose(path: Path, text: str) -> Node | None:
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = _MAX_DEPTH
    yaml.composer.warn_double_anchors = False
    try:
        node: Node | None = yaml.compose(text)
    except MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise _UnreadableError(f"{place}: {_syntax(wrong)}") from None
    except ReaderError as wrong:
        line = text.count("\n", 0, wrong.position) + 1
        column = wrong.position - text.rfind("\n", 0, wrong.position)
        raise _UnreadableError(
            f"{path}:{line}:{column}: a control character is not allowed in YAML; remove it"
        ) from None
    except (YAMLError, RecursionError):
        raise _UnreadableError(f"{path} is not YAML that can be read; check its brackets") from None
    return node


def _syntax(wrong: MarkedYAMLError) -> str:
    problem = str(wrong.problem)
    if "'\\t'" in problem:
        return "YAML is indented with spaces, not tabs"
    if "maximum depth" in problem:
        return "this is nested deeper than any setting; check the brackets"
    return f"{wrong.context}, {problem}" if wrong.context else problem


def _section(node: Node, path: tuple[str, ...], file: Path) -> Iterator[Given | Trouble]:
    """The leaves below a section; only what the catalogue knows is descended into."""
    if isinstance(node, ScalarNode) and str(node.tag).endswith(":null"):
        return  # a section whose keys are all commented out
    if not isinstance(node, MappingNode):
        what = "a list" if isinstance(node, SequenceNode) else f'"{node.value}"'
        name = ".".join(path) or "the file"
        yield Trouble(f"{_place(file, node)}: {name} must be a section with keys, not {what}")
        return
    seen: dict[str, Node] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            yield Trouble(f"{_place(file, key)}: a key must be a word, not a list or a section")
        elif key.value in seen:
            yield Trouble(
                f"{_place(file, key)}: {'.'.join((*path, key.value))} is there twice, first in "
                f"line {seen[key.value].start_mark.line + 1}; keep one"
            )
        else:
            seen[key.value] = key
            yield from _entry(key, value, (*path, key.value), file)


def _entry(key: Node, value: Node, path: tuple[str, ...], file: Path) -> Iterator[Given | Trouble]:
    if any(each.path == path for each in KEYS.values()):
        # An empty value is marked where the next token stands, so name the key's place instead.
        empty = isinstance(value, ScalarNode) and not value.value
        yield _leaf(value, ".".join(path), _place(file, key if empty else value))
    elif children(path):
        yield from _section(value, path, file)
    else:
        yield Trouble(f"{_place(file, key)}: {unknown_key(path)}")


def _leaf(node: Node, name: str, place: str) -> Given | Trouble:
    if not isinstance(node, ScalarNode):
        return Given(name, {} if isinstance(node, MappingNode) else [], place)
    try:
        value: object = YAML(typ="safe", pure=True).constructor.construct_object(node)
    except (YAMLError, ValueError):
        return Trouble(f"{place}: {name} has a value that cannot be read; write it plainly")
    return Given(name, value, place)


def _place(file: Path, node: Node) -> str:
    return f"{file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
