"""How ``--help`` and wrong usage read: words instead of Python's types, and commands by their use.

Typer writes these pages, and says of a flag that it is a ``<bool>``. What the commands are and do
is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

GROUPS: Final = {
    "Begin": ("doctor", "demo", "init", "run", "serve"),
    "Decide": ("review", "proposals", "undo"),
    "Look at runs": ("runs", "show", "transcript", "attach", "report"),
    "Step in": ("tell", "stop", "resume", "retry"),
    "Teams": ("flow", "pattern", "trust", "login"),
    "Agents in other processes": (
        "hub",
        "token",
        "agents",
        "send",
        "tail",
        "trace",
        "approvals",
        "deadletters",
        "audit",
    ),
    "Care and tools": ("sandbox", "store", "message", "schema"),
}

_WORDS: Final = {
    "str": "TEXT",
    "int": "N",
    "float": "N",
    "int range": "N",
    "float range": "N",
    "path": "PATH",
    "file": "FILE",
}


def in_order(names: Iterable[str]) -> Iterator[str]:
    """The commands as they are listed: group by group, and what is in none at the end."""
    left = list(names)
    for members in GROUPS.values():
        for name in members:
            if name in left:
                left.remove(name)
                yield name
    yield from left


def in_words(command: Any, context: Any) -> None:
    """Let the help of a command, and of those below it, say what a person would type."""
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument":
            _name_argument(parameter)
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _word_of(parameter, context)
    for below in getattr(command, "commands", {}).values():
        in_words(below, context)


def _name_argument(argument: Any) -> None:
    name = argument.metavar = argument.metavar or argument.name.upper()
    whole = name if argument.required else f"[{name}]"
    if argument.nargs != 1 and " " not in name:
        whole += "..."
    # A name with words of its own, such as [FLOW] REQUEST, says all there is to say.
    usage = name if " " in name else whole
    argument.get_usage_pieces = lambda _context: [usage]
    argument.display_type_rich = lambda **_context: None


def _word_of(option: Any, context: Any) -> str | None:
    """What stands for the value of an option: a choice as it is, else a word for its type."""
    display = getattr(option, "display_type", None)
    if display is None:
        return None
    kind = str(display(context)).strip("<>")
    inner = kind.removeprefix("list[").removesuffix("]")
    return _WORDS.get(inner, inner)


def complaint_in_words(complaint: str) -> str:
    """What Typer's checker says of a value, without the names of its own machinery."""
    said = complaint.removeprefix("Value error, ").replace("Input should be", "it should be")
    return said.partition(", unable to parse")[0]


def group_of(name: str) -> str | None:
    """The heading that a command stands under."""
    return next((group for group, members in GROUPS.items() if name in members), None)
