"""One thing that is wrong with a flow: where, which rule, what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """Whether a flow can be saved and run in spite of it."""

    ERROR = "error"
    WARNING = "warning"


class Rule(StrEnum):
    """What a problem is against; the id is stable and explained in the documentation."""

    FILE = "file"
    SYNTAX = "yaml-syntax"
    DUPLICATE_KEY = "yaml-duplicate-key"
    ALIAS = "yaml-alias"
    AMBIGUOUS = "yaml-ambiguous"
    UNKNOWN_KEY = "unknown-key"
    MISSING = "missing"
    TYPE = "type"
    CHOICE = "choice"
    RANGE = "range"
    VERSION = "version"
    ID_FORM = "id-form"
    DUPLICATE_ID = "duplicate-id"
    UNKNOWN_AGENT = "unknown-agent"
    UNUSED_AGENT = "unused-agent"
    RUNTIME = "runtime"
    SECRET = "secret"  # noqa: S105  # the name of a rule against secrets, not one
    MANY_TOOLS = "many-mcp"
    NOTHING_TO_RUN = "nothing-to-run"
    UNKNOWN_PATTERN = "unknown-pattern"
    TOPOLOGY = "topology"
    SYNC = "sync"
    EDGE_DIFFERS = "edge-differs"
    EDGE_LOOP = "edge-loop"
    ROLES = "roles"
    NO_END = "no-end"
    NO_TIMEOUT = "no-timeout"
    GATE = "gate"
    NO_RETENTION = "no-retention"
    NO_RATE_LIMIT = "no-rate-limit"
    UNIT = "unit"
    AFTER = "after"
    AFTER_CYCLE = "after-cycle"
    PART_CYCLE = "part-cycle"
    VERIFICATION = "verification"
    PARAMS = "params"
    TASKS = "tasks"
    TASK_CYCLE = "task-cycle"
    SCOPE = "scope"
    SCOPE_OVERLAP = "scope-overlap"
    BUDGET = "budget"
    OWN_REVIEW = "own-review"
    REVIEW = "review"


_WORD = 4
_FEW = 3


class Problem(Struct, frozen=True, omit_defaults=True):
    """A rule, the place where it is broken, and the way out; ``line`` and ``column`` start at 1."""

    rule: Rule
    sentence: str
    suggestion: str = ""
    pointer: str = ""
    severity: Severity = Severity.ERROR
    file: str = ""
    line: int = 0
    column: int = 0
    at_key: bool = False
    """Whether the key is to be pointed at, and not its value."""

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        where = f"{place}: " if place else ""
        what = "" if self.is_error else "warning: "
        advice = f"; {self.suggestion}" if self.suggestion else ""
        return f"{where}{what}{self.sentence}{advice} [{self.rule}]"


def warning(rule: Rule, sentence: str, suggestion: str = "", pointer: str = "") -> Problem:
    """A problem that does not keep a flow from being saved or run."""
    return Problem(rule, sentence, suggestion, pointer, Severity.WARNING)


def at(pointer: str, *steps: str | int) -> str:
    """``pointer`` extended, each step escaped as RFC 6901 asks."""
    escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    return "/".join((pointer, *escaped))


def steps_of(pointer: str) -> tuple[str, ...]:
    """The steps of a pointer, unescaped."""
    return tuple(s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/")[1:])


def did_you_mean(given: str, known: Iterable[str], else_: str = "") -> str:
    """A suggestion for a slip of the pen; ``else_``, or all that is known, if none is close."""
    names = sorted(set(known))
    close = difflib.get_close_matches(given.casefold(), [n.casefold() for n in names], n=1)
    if close:
        return f"did you mean {next(n for n in names if n.casefold() == close[0])}?"
    # A part of a long name is a name that somebody has not finished.
    parts = [n for n in names if len(given) >= _WORD and given.casefold() in n.casefold()]
    if 0 < len(parts) <= _FEW:
        return f"did you mean {' or '.join(parts)}?"
    if else_ or not names:
        return else_
    shown = ", ".join(names[:12])
    return f"known here: {shown}{', …' if len(names) > 12 else ''}"  # noqa: PLR2004  # what fits a line


def shown(value: object) -> str:
    """A value as it can stand in a sentence: short, and on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "a list" if not isinstance(value, dict) else "a section with keys"
    text = " ".join(str(value).split())
    short = text if len(text) <= 60 else f"{text[:59]}…"  # noqa: PLR2004  # what fits a line
    return f'"{short}"' if isinstance(value, str) else short
