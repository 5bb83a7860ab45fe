"""A user's own patterns: a Python file in ``.agentcanvas/patterns/``, or an entry point.

They come in by the same door as ours, and are looked at before: a pattern that meets the world
without the Stage, says something else on replay or never ends could not be resumed, so it is
refused by name, with the reason, and everything else goes on.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import msgspec

from agentcanvas.app.trust import trust_of
from agentcanvas.app.workspace import FOLDER
from agentcanvas.pattern import Pattern

GROUP: Final = "agentcanvas.patterns"
ENTRY: Final = "--entry-point"
FORBIDDEN: Final = frozenset(
    {
        *("anyio", "asyncio", "concurrent", "multiprocessing", "threading", "select", "selectors"),
        *("random", "secrets", "uuid", "time", "datetime", "signal"),
        *("os", "pathlib", "shutil", "tempfile", "subprocess", "sqlite3"),
        *("http", "socket", "ssl", "urllib"),
    }
)
NO_PATTERN: Final = "it defines no PATTERN; end the file with: PATTERN = MyPattern()"
_TRIAL_S: Final = 20
_NEEDED: Final = ("id", "roles", "options", "most", "run")
_cleared: dict[str, str] = {}
"""What a trial of a text said; the same text need not be tried again in this process."""


@dataclass
class Own:
    """What was found: patterns with their texts, and why others were refused."""

    patterns: dict[str, Pattern] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class _Candidate(NamedTuple):
    """Something that may hold patterns: its name, its text, and how it comes in."""

    name: str
    read: Callable[[], str]
    load: Callable[[], list[Pattern]]


def own_patterns(root: Path, environ: Mapping[str, str], taken: frozenset[str]) -> Own:
    """Every pattern of this workspace and of the packages installed beside us."""
    own = Own()
    for name, read, load in [*_in_files(root, environ, own), *_in_packages()]:
        text = ""
        try:
            text = read()
            reason = _unfit(text)
            found = [] if reason else list(load())
        except RefusedError as refused:
            reason, found = str(refused), []
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is this pattern's alone
            reason, found = f"it cannot be loaded: {type(wrong).__name__}: {wrong}", []
        if not reason and not found:
            reason = NO_PATTERN
        for pattern in found:
            reason = reason or misshapen(pattern)
            if not reason and pattern.id in taken | own.patterns.keys():
                reason = f"there is a pattern {pattern.id} already; take another id"
        if reason:
            own.refused[name] = reason
            continue
        for pattern in found:
            own.patterns[pattern.id] = pattern
            own.texts[pattern.id] = text
    return own


def has_own(root: Path) -> bool:
    """Whether there is anything beside our patterns; nothing of it is run to find out."""
    return any((root / FOLDER / "patterns").glob("*.py")) or bool(entry_points(group=GROUP))


def _in_files(root: Path, environ: Mapping[str, str], own: Own) -> Iterator[_Candidate]:
    folder = root / FOLDER / "patterns"
    files = sorted(folder.glob("*.py")) if folder.is_dir() else []
    if not files:
        return
    decision = trust_of(root, environ)
    for path in files:
        if not decision.may_run:
            own.refused[path.stem] = f"it does not run yet. {decision.sentence}"
            continue
        text = path.read_text("utf-8", "replace")
        yield _Candidate(path.stem, partial(str, text), partial(_from_file, path, text))


def _in_packages() -> Iterator[_Candidate]:
    """Whoever installs a package trusts it; a trial it has like every other one."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        yield _Candidate(entry.name, partial(_text_of, entry), partial(_from_package, entry))


def _text_of(entry: EntryPoint) -> str:
    """The source of an entry point's module, which is not run for it; and its version."""
    spec = importlib.util.find_spec(entry.module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise RefusedError(f"its module {entry.module} has no source that could be looked at")
    version = f"# {entry.dist.name} {entry.dist.version}\n" if entry.dist is not None else ""
    return Path(spec.origin).read_text("utf-8", "replace") + version


def _from_file(path: Path, text: str) -> list[Pattern]:
    reason = _trial(text, str(path))
    if reason:
        raise RefusedError(reason)
    return patterns_of(load_module(path))


def _from_package(entry: EntryPoint) -> list[Pattern]:
    reason = _trial(_text_of(entry), ENTRY, entry.name, entry.value)
    if reason:
        raise RefusedError(reason)
    return patterns_of(entry.load())


def load_module(path: Path) -> ModuleType:
    """The module in a file, under a name that hides nothing else."""
    name = f"agentcanvas_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RefusedError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def patterns_of(found: Any) -> list[Pattern]:
    """The patterns of a module, a class or an object."""
    if isinstance(found, ModuleType):
        one = getattr(found, "PATTERN", None)
        return list(getattr(found, "PATTERNS", ())) or ([one] if one is not None else [])
    return [found() if isinstance(found, type) else found]


class RefusedError(Exception):
    """Why a pattern does not come in."""


def _unfit(text: str) -> str:
    """What the text alone shows: imports that meet the world without the Stage."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as wrong:
        return f"it is not Python: {wrong}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        for name in names if isinstance(node, ast.Import) else [node.module or ""]:
            if name.partition(".")[0] in FORBIDDEN:
                return (
                    f"line {node.lineno} imports {name}. A run resumes by replaying its pattern, "
                    "so time, chance and concurrency come from the Stage: now, draw, ask_all"
                )
    return ""


def misshapen(pattern: Any) -> str:
    """What it lacks to be a pattern at all."""
    missing = [name for name in _NEEDED if not hasattr(pattern, name)]
    if missing:
        return f"it has no {' and no '.join(missing)}; see pattern.Pattern"
    if not inspect.iscoroutinefunction(pattern.run):
        return "its run is no async function"
    if not (isinstance(pattern.options, type) and issubclass(pattern.options, msgspec.Struct)):
        return "its options are no msgspec.Struct with defaults"
    return ""


def _trial(text: str, *what: str) -> str:
    """Have it played in a process of its own, twice; what is wrong, or nothing."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest not in _cleared:
        _cleared[digest] = _tried(what)
    return _cleared[digest]


def _tried(what: tuple[str, ...]) -> str:
    command = [sys.executable, "-m", "agentcanvas.app.pattern_trial", *what]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter, on code that is trusted
            command, capture_output=True, text=True, timeout=_TRIAL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it never ends: a trial with simulated agents took more than {_TRIAL_S} s"
    if done.returncode == 0:
        return ""
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
    return last[0] if last else f"its trial ended with exit code {done.returncode}"
