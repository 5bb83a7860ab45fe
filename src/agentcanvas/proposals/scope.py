"""Which files a task may touch (S8): globs over whole workspace-relative paths.

``*`` and ``?`` stay inside one folder, ``**`` crosses folders, ``{a,b}`` is either, and a pattern
that ends in a plain name (``src/api`` or ``src/api/``) also covers everything below it. ``*.py`` is
the root's own files only: a scope never means more than it says. Square brackets are literal, for
many a web framework has them in its file names.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(
    r"(?P<deep>(?:\*\*/)+)|(?P<all>\*\*+)|(?P<star>\*)|(?P<one>\?)|(?P<either>\{[^{}]*,[^{}]*\})"
)
_MEANING = {"deep": r"(?:.*/)?", "all": r".*", "star": r"[^/]*", "one": r"[^/]"}


def within(path: str, globs: Iterable[str]) -> bool:
    """Whether at least one pattern covers the path."""
    return any(_compiled(glob).fullmatch(path) is not None for glob in globs)


@lru_cache(maxsize=512)
def _compiled(glob: str) -> re.Pattern[str]:
    glob = glob.removeprefix("./").rstrip("/")
    names_folder = _TOKEN.search(glob.rpartition("/")[2]) is None
    return re.compile(_regex(glob) + (r"(?:/.*)?" if names_folder else ""), re.DOTALL)


def _regex(glob: str) -> str:
    regex, end = "", 0
    for token in _TOKEN.finditer(glob):
        regex += re.escape(glob[end : token.start()]) + _translate(token)
        end = token.end()
    return regex + re.escape(glob[end:])


def _translate(token: re.Match[str]) -> str:
    kind = token.lastgroup
    if kind == "either":
        return "(?:" + "|".join(_regex(choice) for choice in token[0][1:-1].split(",")) + ")"
    assert kind is not None
    return _MEANING[kind]
