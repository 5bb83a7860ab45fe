"""What a conversation asks for, and how far it has got.

One directive a line, wherever in the last message of the user that holds any:

    WRITE path text       EDIT path old => new      READ path      SHELL command
    TOOL name {"a": 1}    a tool by the end of its name, with these arguments
    SAY text              SLEEP seconds             HANG           ERROR status words

``\\n`` inside a text is a line break. When all steps are done the answer is
``STUB DONE steps=N prior=M`` and what SAY says; ``prior`` counts earlier scripts in the same
conversation, so that it shows whether a session went on. HANG keeps that answer back for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_DIRECTIVE = re.compile(
    r"^[\s\"'>]*(WRITE|EDIT|READ|SHELL|TOOL|SAY|SLEEP|HANG|ERROR)(?:[ \t]+(.*?))?[\s\"]*$",
    re.MULTILINE,
)
_STEPS = {"WRITE", "EDIT", "READ", "SHELL", "TOOL"}


class Step(NamedTuple):
    """One thing to do."""

    kind: str
    path: str = ""
    text: str = ""
    old: str = ""

    @property
    def as_shell(self) -> str:
        """The same as a shell command, for an agent without such a tool."""
        match self.kind:
            case "WRITE":
                return f"cat > {self.path} <<'STUB_EOF'\n{self.text}STUB_EOF"
            case "EDIT":
                return f"sed -i 's|{self.old}|{self.text}|' {self.path}"
            case "READ":
                return f"cat {self.path}"
        return self.text

    @property
    def as_patch(self) -> str:
        """The same in the patch format of OpenAI."""
        if self.kind == "WRITE":
            body = "".join(f"+{line}\n" for line in self.text.splitlines())
            return f"*** Begin Patch\n*** Add File: {self.path}\n{body}*** End Patch"
        return (
            f"*** Begin Patch\n*** Update File: {self.path}\n@@\n-{self.old}\n+{self.text}\n"
            "*** End Patch"
        )


class Event(NamedTuple):
    """Something the client sent: a text of the user, or what a tool gave back."""

    is_result: bool
    text: str = ""


class Script:
    """Read off the messages of a request."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.prior = self.done = 0
        found: list[tuple[str, str]] = []
        for event in events:
            if event.is_result:
                self.done += 1
            elif directives := _DIRECTIVE.findall(event.text):
                self.prior += bool(found)
                found, self.done = directives, 0
        self._found = found
        self._steps = [_step(kind, rest) for kind, rest in found if kind in _STEPS]

    @property
    def next(self) -> Step | None:
        """What is to be done now."""
        return self._steps[self.done] if self.done < len(self._steps) else None

    def said(self, kind: str) -> str | None:
        """What follows a directive; None without it."""
        return next((rest for each, rest in self._found if each == kind), None)

    @property
    def error(self) -> tuple[int, str] | None:
        """The status and the words that every request is answered with."""
        said = self.said("ERROR")
        if said is None:
            return None
        status, _, words = said.partition(" ")
        return int(status), words or "scripted error"

    @property
    def last_words(self) -> str:
        """The answer."""
        if not self._found:
            return "STUB hello"
        said = (self.said("SAY") or "").replace("\\n", "\n")
        return f"STUB DONE steps={len(self._steps)} prior={self.prior}.\n{said}".rstrip()

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens in and out of this request."""
        return 100 * (self.done + 1), 10 * (self.done + 1)

    @property
    def as_blocks(self) -> str:
        """The steps as search and replace blocks, for an agent without tools."""
        blocks = []
        for step in self._steps:
            if step.kind == "WRITE":
                blocks.append(_block(step.path, "", step.text))
            elif step.kind == "EDIT":
                blocks.append(_block(step.path, f"{step.old}\n", f"{step.text}\n"))
        return "\n\n".join([*blocks, self.last_words])


def _block(path: str, old: str, new: str) -> str:
    return f"{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```"


def _step(kind: str, rest: str) -> Step:
    if kind == "SHELL":
        return Step(kind, text=rest)
    path, _, tail = rest.partition(" ")
    tail = tail.replace("\\n", "\n")
    if kind == "EDIT":
        old, _, new = tail.partition(" => ")
        return Step(kind, path, new, old)
    return Step(kind, path, tail if tail.endswith("\n") else f"{tail}\n")


# -- the tools of the client -----------------------------------------------------------------------

_NAMES = {
    "WRITE": ("write", "write_file", "create", "editor", "apply_patch"),
    "EDIT": ("edit", "replace", "str_replace", "editor", "apply_patch"),
    "READ": ("read", "read_file", "view"),
    "SHELL": (
        "bash",
        "shell",
        "run_shell_command",
        "exec_command",
        "shell_command",
        "local_shell",
        "run_commands",
        "execute_command",
        "exec",
    ),
}
_PATHS = {"file_path", "path", "filepath", "absolute_path", "filename"}
_CONTENTS = {"content", "file_text", "contents", "new_text"}
_OLDS = {"old_string", "oldstring", "old_str", "oldtext", "old_text", "before"}
_NEWS = {"new_string", "newstring", "new_str", "newtext", "new_text", "after"}
_COMMANDS = {"command", "cmd", "commands"}

Tools = dict[str, tuple[str, Any]]
"""Name → kind (function, custom, local_shell) and schema of its arguments."""


class Call(NamedTuple):
    """A tool to be used, with arguments or, for a custom one, with text."""

    name: str
    kind: str
    given: Any


def call_for(step: Step, tools: Tools) -> Call | None:
    """The client's own tool for a step, its arguments filled in."""
    if step.kind == "TOOL":
        found = next((name for name in tools if name.endswith(step.path)), None)
        return Call(found, tools[found][0], json.loads(step.text)) if found else None
    plain = {name.rpartition("__")[2].rpartition(".")[2].lower(): name for name in tools}
    for wanted in (*_NAMES[step.kind], *_NAMES["SHELL"]):
        for short, name in plain.items():
            if short.replace("_", "") == wanted.replace("_", ""):
                kind, schema = tools[name]
                return Call(name, kind, _given(step, kind, short, schema))
    return None


def _given(step: Step, kind: str, short: str, schema: Any) -> Any:
    is_change = step.kind in {"WRITE", "EDIT"}
    if kind == "custom" and short == "exec":  # it takes JavaScript
        inner = (
            f"tools.apply_patch({_quoted(step.as_patch)})"
            if is_change
            else f"tools.exec_command({{cmd: {_quoted(step.as_shell)}}})"
        )
        return f"const r = await {inner}; text(JSON.stringify(r));"
    if kind == "custom":
        return step.as_patch
    return step.as_shell if kind == "local_shell" else _filled(schema, step, None)


def _quoted(text: str) -> str:
    return json.dumps(text)


def _filled(schema: Any, step: Step, name: str | None) -> Any:
    """A value that fits a schema, made from a step."""
    schema = schema if isinstance(schema, dict) else {}
    for either in ("anyOf", "oneOf"):
        if not schema.get("type") and schema.get(either):
            schema = next((s for s in schema[either] if s.get("type") != "null"), {})
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "string")
    kind = str(kind or "").lower()
    if name is not None and (known := _known(schema, step, name.lower(), kind)) is not None:
        return known
    if kind == "object" or "properties" in schema:
        return _object(schema, step)
    if kind == "array":
        return [_filled(schema.get("items"), step, name)] if schema.get("items") else []
    if kind in {"integer", "number"}:
        return schema.get("default", schema.get("minimum", 10))
    return False if kind == "boolean" else "stub"


def _known(schema: Any, step: Step, name: str, kind: str) -> Any:
    if "enum" in schema:
        wanted = {"WRITE": ("create",), "EDIT": ("str_replace",), "READ": ("view",)}
        fitting = [each for each in wanted.get(step.kind, ()) if each in schema["enum"]]
        return (fitting or schema["enum"])[0]
    if name in _COMMANDS and kind == "array":
        items = schema.get("items") or {}
        if items.get("type") == "object":
            return [_filled(items, step, "command")]
        return [step.as_shell] if name == "commands" else ["bash", "-lc", step.as_shell]
    if name in _COMMANDS:
        return step.as_shell
    if name in _PATHS:
        return step.path or "."
    if name in _OLDS and step.kind == "EDIT":
        return step.old
    if name in (_NEWS if step.kind == "EDIT" else _CONTENTS):
        return step.text
    return step.as_patch if name in {"patch", "input", "patchtext"} else None


def _object(schema: Any, step: Step) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    needed = set(schema.get("required") or ())
    if step.kind == "SHELL":
        useful = _COMMANDS
    elif step.kind == "EDIT":
        useful = _PATHS | _OLDS | _NEWS
    elif step.kind == "WRITE":
        useful = _PATHS | _CONTENTS
    else:
        useful = _PATHS
    # A command stands for everything where it is the only way.
    if not useful & {each.lower() for each in properties}:
        useful = _COMMANDS
    return {
        name: _filled(below, step, name)
        for name, below in properties.items()
        if name in needed or name.lower() in useful
    }
