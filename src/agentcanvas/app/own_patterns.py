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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from agentcanvas.app.trust import trust_of
from agentcanvas.app.workspace import FOLDER
from agentcanvas.pattern import Pattern

GROUP: Final = "agentcanvas.patterns"
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


def own_patterns(root: Path, environ: Mapping[str, str], taken: frozenset[str]) -> Own:
    """Every pattern of this workspace and of the packages installed beside us."""
    own = Own()
    for name, text, load in [*_in_files(root, environ, own), *_in_packages()]:
        try:
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


def _in_files(root: Path, environ: Mapping[str, str], own: Own) -> Iterator[tuple[str, str, Any]]:
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
        yield path.stem, text, lambda path=path, text=text: _from_file(path, text)


def _in_packages() -> Iterator[tuple[str, str, Any]]:
    for entry in entry_points(group=GROUP):
        found = entry.load()
        module = found if isinstance(found, ModuleType) else inspect.getmodule(found)
        text = inspect.getsource(module) if module is not None else ""
        yield entry.name, text, lambda found=found: patterns_of(found)


def _from_file(path: Path, text: str) -> list[Pattern]:
    reason = _trial(path, text)
    if reason:
        raise RefusedError(reason)
    return patterns_of(load_module(path))


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


def _trial(path: Path, text: str) -> str:
    """Have it played in a process of its own, twice; what is wrong, or nothing."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest not in _cleared:
        _cleared[digest] = _tried(path)
    return _cleared[digest]


def _tried(path: Path) -> str:
    command = [sys.executable, "-m", "agentcanvas.app.pattern_trial", str(path)]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter, on a file that is trusted
            command, capture_output=True, text=True, timeout=_TRIAL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it never ends: a trial with simulated agents took more than {_TRIAL_S} s"
    if done.returncode == 0:
        return ""
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
    return last[0] if last else f"its trial ended with exit code {done.returncode}"
