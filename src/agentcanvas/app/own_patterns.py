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
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import Any, Final, NamedTuple

import msgspec

from agentcanvas.app.interpreter import environment, program
from agentcanvas.app.trust import Standing, standing
from agentcanvas.app.workspace import FOLDER
from agentcanvas.pattern import Pattern

GROUP: Final = "agentcanvas.patterns"
ENTRY: Final = "--entry-point"
DIVERGES: Final = "it diverges on replay: "
COMPUTING_S: Final = 5
"""What a trial may compute; its agents answer at once, so that a second is plenty."""
FORBIDDEN: Final = frozenset(
    {
        *("anyio", "asyncio", "concurrent", "multiprocessing", "threading", "select", "selectors"),
        *("random", "secrets", "uuid", "time", "datetime", "signal"),
        *("os", "pathlib", "shutil", "tempfile", "subprocess", "sqlite3"),
        *("http", "socket", "ssl", "urllib"),
        *("builtins", "importlib"),
    }
)
NO_PATTERN: Final = "it defines no PATTERN; end the file with: PATTERN = MyPattern()"
_TRIAL_S: Final = 20
_HASH_SEEDS: Final = ("1", "2", "3", "4")
"""Each life of a run has another order of sets; two seeds would have the same one too often."""
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
    """Something that may hold patterns: its name, its text, and how that comes in."""

    name: str
    read: Callable[[], bytes]
    load: Callable[[bytes], list[Pattern]]


def own_patterns(root: Path, environ: Mapping[str, str], taken: frozenset[str]) -> Own:
    """Every pattern of this workspace and of the packages installed beside us."""
    own = Own()
    for name, read, load in [*_in_files(root, environ), *_in_packages()]:
        text = b""
        try:
            text = read()
            reason = _unfit(text)
            found = [] if reason else list(load(text))
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
            own.texts[pattern.id] = text.decode("utf-8", "replace")
    return own


def has_own(root: Path) -> bool:
    """Whether there is anything beside our patterns; nothing of it is run to find out."""
    return any((root / FOLDER / "patterns").glob("*.py")) or bool(entry_points(group=GROUP))


def _in_files(root: Path, environ: Mapping[str, str]) -> Iterator[_Candidate]:
    folder = root / FOLDER / "patterns"
    files = sorted(folder.glob("*.py")) if folder.is_dir() else []
    if not files:
        return
    found = standing(root, environ)
    for path in files:
        yield _Candidate(path.stem, partial(_trusted, root, path, found), partial(_from_file, path))


def _trusted(root: Path, path: Path, found: Standing) -> bytes:
    """What is in a file, if it is what was trusted; the same bytes are tried and run."""
    if not found.decision.may_run:
        raise RefusedError(f"it does not run yet. {found.decision.sentence}")
    content = path.read_bytes()
    if not found.now.covers(path.relative_to(root).as_posix(), content):
        raise RefusedError("it was changed in this very moment; look again")
    return content


def _in_packages() -> Iterator[_Candidate]:
    """Whoever installs a package trusts it; a trial it has like every other one."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        yield _Candidate(entry.name, partial(_text_of, entry), partial(_from_package, entry))


def _text_of(entry: EntryPoint) -> bytes:
    """The source of an entry point's module, which is not run for it; and its version."""
    spec = importlib.util.find_spec(entry.module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise RefusedError(f"its module {entry.module} has no source that could be looked at")
    version = f"# {entry.dist.name} {entry.dist.version}\n" if entry.dist is not None else ""
    return Path(spec.origin).read_bytes() + version.encode()


def _from_file(path: Path, content: bytes) -> list[Pattern]:
    reason = _trial(content, str(path))
    if reason:
        raise RefusedError(reason)
    return patterns_of(module_of(path, content))


def _from_package(entry: EntryPoint, text: bytes) -> list[Pattern]:
    reason = _trial(text, ENTRY, entry.name, entry.value)
    if reason:
        raise RefusedError(reason)
    return patterns_of(entry.load())


def module_of(path: Path, content: bytes) -> ModuleType:
    """The module that was read from a file, under a name that hides nothing else.

    The file is not opened again, nor what Python compiled of it before: nobody trusted those.
    """
    name = f"agentcanvas_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    code = compile(content, str(path), "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102 - it was trusted
    return module


def patterns_of(found: Any) -> list[Pattern]:
    """The patterns of a module, a class or an object."""
    if isinstance(found, ModuleType):
        one = getattr(found, "PATTERN", None)
        return list(getattr(found, "PATTERNS", ())) or ([one] if one is not None else [])
    return [found() if isinstance(found, type) else found]


class RefusedError(Exception):
    """Why a pattern does not come in."""


def _unfit(text: bytes) -> str:
    """What the text alone shows: imports that meet the world without the Stage.

    Bytes, since Python itself finds out their encoding, and must find the same here.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as wrong:
        return f"it is not Python: {wrong}"
    for line, name in _imports(tree):
        if name.partition(".")[0] in FORBIDDEN:
            return (
                f"line {line} imports {name}. A run resumes by replaying its pattern, "
                "so time, chance and concurrency come from the Stage: now, draw, ask_all"
            )
    return ""


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module):
                yield node.lineno, module or ""
            case ast.Name(id="__import__"):
                yield node.lineno, "builtins.__import__"
            case _:
                pass


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


def _trial(text: bytes, *what: str) -> str:
    """Have it played in processes of their own; what is wrong, or nothing."""
    digest = hashlib.sha256(text).hexdigest()
    if digest not in _cleared:
        _cleared[digest] = _tried(text, what)
    return _cleared[digest]


def _tried(text: bytes, what: tuple[str, ...]) -> str:
    first, *others = _HASH_SEEDS
    told = _ended(_begun(text, what, first))
    if told.wrong:
        return told.wrong
    again = [_begun(text, what, seed) for seed in others]
    for other in [_ended(each) for each in again]:
        differs = other.wrong or difference(told.steps, other.steps)
        if differs:
            return f"{DIVERGES}{differs}; a set has another order in each life of a run: sort it"
    return ""


class _Told(NamedTuple):
    """What a trial said: what is wrong, or a line for each step."""

    wrong: str
    steps: list[str]


def _begun(text: bytes, what: tuple[str, ...], hash_seed: str) -> subprocess.Popen[str]:
    with TemporaryFile() as given:
        given.write(text)
        given.seek(0)
        return subprocess.Popen(  # noqa: S603 - our own interpreter, on code that is trusted
            program("-m", "agentcanvas.app.pattern_trial", *what),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(os.environ), "PYTHONHASHSEED": hash_seed},
        )


def _ended(trial: subprocess.Popen[str]) -> _Told:
    with trial:
        try:
            out, err = trial.communicate(timeout=_TRIAL_S)
        except subprocess.TimeoutExpired:
            trial.kill()
            took = f"more than {_TRIAL_S} s"
            return _Told(f"it never ends: a trial with simulated agents took {took}", [])
    if trial.returncode == 0:
        return _Told("", out.splitlines())
    if trial.returncode == -signal.SIGXCPU:
        took = f"more than {COMPUTING_S} s of computing"
        return _Told(f"it never ends: a trial with simulated agents took {took}", [])
    last = (out.strip() or err.strip()).splitlines()[-1:]
    return _Told(last[0] if last else f"its trial ended with exit code {trial.returncode}", [])


def difference(one: Sequence[str], other: Sequence[str]) -> str:
    """The first step in which two records differ; nothing if none does."""
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False), 1):
        if mine != theirs:
            told = [each.rpartition(" ")[0] for each in (mine, theirs)]
            then = "the same in other words" if told[0] == told[1] else told[1]
            return f"step {number} was {told[0]}, then {then}"
    if len(one) != len(other):
        return f"it took {len(one)} steps, then {len(other)}"
    return ""
