"""Globs over workspace-relative paths, for choosing files.

``*`` and ``?`` stay inside one folder, ``**`` crosses folders, ``{a,b}`` is either, and a pattern
that ends in a plain name also covers everything below it. Square brackets are literal. It is the
language in which a flow states its scope, here over bytes: a file name need not be text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

from agentcanvas.errors import PathRefused
from agentcanvas.sandbox.paths import shown, workspace_relative

_TOKEN = re.compile(
    rb"(?P<deep>(?:\*\*/)+)|(?P<all>\*\*+)|(?P<star>\*)|(?P<one>\?)|(?P<either>\{[^{}]*,[^{}]*\})"
)
_MEANING = {"deep": rb"(?:.*/)?", "all": rb".*", "star": rb"[^/]*", "one": rb"[^/]"}
_LONGEST = 1000


def checked_glob(glob: str | bytes) -> bytes:
    """Refuse a pattern that leads out of the workspace or into an internal folder."""
    if len(glob) > _LONGEST:
        raise PathRefused(f"'{shown(os.fsencode(glob))[:60]}…' is too long for a pattern")
    return workspace_relative(glob)


def is_plain(glob: bytes) -> bool:
    """Tell a name from a pattern."""
    return _TOKEN.search(glob) is None


def fixed_part(glob: bytes) -> bytes:
    """Give the folder below which everything lies that the pattern can cover; empty for the top."""
    token = _TOKEN.search(glob)
    return glob if token is None else glob[: token.start()].rpartition(b"/")[0]


def covered(path: bytes, globs: Iterable[bytes]) -> bool:
    """Tell whether at least one pattern covers the path."""
    return any(_compiled(glob).fullmatch(path) is not None for glob in globs)


@lru_cache(maxsize=512)
def _compiled(glob: bytes) -> re.Pattern[bytes]:
    names_folder = _TOKEN.search(glob.rpartition(b"/")[2]) is None
    return re.compile(_regex(glob) + (rb"(?:/.*)?" if names_folder else b""), re.DOTALL)


def _regex(glob: bytes) -> bytes:
    regex, end = b"", 0
    for token in _TOKEN.finditer(glob):
        regex += re.escape(glob[end : token.start()]) + _translate(token)
        end = token.end()
    return regex + re.escape(glob[end:])


def _translate(token: re.Match[bytes]) -> bytes:
    kind = token.lastgroup
    if kind == "either":
        return b"(?:" + b"|".join(_regex(choice) for choice in token[0][1:-1].split(b",")) + b")"
    assert kind is not None
    return _MEANING[kind]
