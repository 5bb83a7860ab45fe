"""What the command of a check starts, as far as its words tell: scripts, modules, settings.

A shell can say anything in other words, so this finds what is usual. Scripts of a package.json are
followed; makefiles and what is behind a script are not. Other files that a command names are mostly
what it judges, as in ``grep -q hello greeting.txt``.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NOT: Final = "!"
_RUN: Final = "run"  # of uv, poetry, coverage, ...
_ENDS: Final = frozenset({"&&", "||", ";", ";;", "|", "&", "(", ")", "$", "{", "then", "do"})
_RUNS_A_SCRIPT: Final = re.compile(
    r"(?:python|pypy)[\d.]*|node|nodejs|bun|deno|tsx|ts-node|(?:ba|da|z|k)?sh|ruby|perl|php|lua"
    r"|rscript|julia|env|exec|time|nice|nohup|sudo|timeout|xvfb-run|npx|source|\."
)
_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
_OF_PACKAGES: Final = frozenset({"npm", "yarn", "pnpm", "bun"})
_INTO: Final = frozenset({"cd", "pushd", "-C", "--prefix", "--cwd", "--dir"})
_SETTINGS: Final = re.compile(
    r"-[cfpr]|--?(?:[\w-]*-)?(?:config|conf|rcfile|settings|ini|file|require|import|setup|plugin|init"
    r"|loader|project|env|options)(?:-\w+)?"
)
_VALUE: Final = re.compile(r"[A-Za-z_]\w*=.*|-.*|[\d.]+[smh]?")
_MOST_SCRIPTS: Final = 100


@dataclass(frozen=True)
class Invocation:
    """``programs`` and ``settings`` are files; in ``folders`` programs look for modules."""

    programs: frozenset[str]
    modules: frozenset[str]
    settings: frozenset[str]
    folders: frozenset[str]


def invocation_of(commands: Iterable[str], scripts: Mapping[str, str]) -> Invocation:
    """Read commands, and the scripts of a package.json that they start."""
    programs, modules, settings, folders = set[str](), set[str](), set[str](), {""}
    waiting, seen = list(commands), set[str]()
    while waiting and len(seen) < _MOST_SCRIPTS:
        command = waiting.pop()
        if command in seen:
            continue
        seen.add(command)
        words = _words(command)
        waiting += [word for word in words if " " in word]  # as of sh -c
        waiting += _scripts_started(words, scripts)
        folders |= {_path(after) for word, after in pairwise(words) if word in _INTO}
        settings |= set(map(_path, _given_as_settings(words)))
        for run, module in _started(words):
            programs.add(_path(run))
            modules.add(module)
    folders |= {run.rpartition("/")[0] for run in programs if run.endswith(".py")}
    return Invocation(*map(frozenset, (programs, modules, settings, folders)))


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return command.split()


def _started(words: list[str]) -> Iterator[tuple[str, str]]:
    """Each program and module that is started; a program may be a module as well."""
    may_start, is_python = True, False
    for before, word in pairwise(chain([""], words)):
        if word in _ENDS or word == _RUN:
            may_start, is_python = True, False
        elif before == "-m" and is_python:
            yield "", word.partition(".")[0]
            may_start = False
        elif may_start and word != _NOT and not _VALUE.fullmatch(word):
            name = word.rpartition("/")[2]
            is_python |= bool(_PYTHON.fullmatch(name))
            may_start = bool(_RUNS_A_SCRIPT.fullmatch(name.lower()))
            yield word, name


def _given_as_settings(words: list[str]) -> Iterator[str]:
    for before, word in pairwise(chain(words, [""])):
        option, has_value, value = before.partition("=")
        if _SETTINGS.fullmatch(option):
            yield value if has_value else word


def _scripts_started(words: list[str], scripts: Mapping[str, str]) -> list[str]:
    if _OF_PACKAGES.isdisjoint(words):
        return []
    names = {"test" if word in {"t", "tst"} else word for word in words}
    steps = [step + name for name in names for step in ("pre", "", "post")]
    return [scripts[step] for step in steps if step in scripts]


def _path(word: str) -> str:
    """As a path of the tree: ``./a/b.py::test_c`` is ``a/b.py``."""
    return word.partition("::")[0].removeprefix("./").rstrip("/")
