"""Sentences about what a base does not hold, few enough to be read.

One file with a reason is one sentence; many files with the same reason share one.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentcanvas.sandbox.paths import shown

_ONE_BY_ONE = 5
_NAMED = 3


class Notes:
    """Gathers them in the order in which the reasons came up."""

    def __init__(self) -> None:
        self._said: dict[str, dict[bytes, None] | None] = {}

    def say(self, sentence: str) -> None:
        """Add a sentence as it is."""
        self._said[sentence] = None

    def left_out(self, path: bytes, reason: str) -> None:
        """Note a file or folder that does not go along."""
        paths = self._said.setdefault(reason, {})
        assert paths is not None, "a reason is not a sentence"
        paths[path] = None

    def sentences(self) -> tuple[str, ...]:
        """Give all of them."""
        found: list[str] = []
        for said, paths in self._said.items():
            if paths is None:
                found.append(said)
            elif len(paths) <= _ONE_BY_ONE:
                found += [f"{shown(path)} is left out: {said}" for path in paths]
            else:
                found.append(f"{some_of([*paths])} are left out: {said}")
        return tuple(found)


def some_of(paths: Sequence[bytes]) -> str:
    """Name the first few of many paths."""
    names = ", ".join(map(shown, paths[:_NAMED]))
    more = len(paths) - _NAMED
    return f"{names} and {more} more" if more > 0 else names
