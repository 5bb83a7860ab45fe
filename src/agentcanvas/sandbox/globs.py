"""Globs over workspace-relative paths: which files are chosen, and which a task may touch (S8).

``*`` and ``?`` stay inside one folder, ``**`` crosses folders, ``{a,b}`` is either, and a pattern
that ends in a plain name (``src/api`` or ``src/api/``) also covers everything below it. ``*.py`` is
the root's own files only: a pattern never means more than it says. Square brackets are literal, for
many a web framework has them in its file names.

A path is read once from its beginning to its end, whatever the pattern: patterns come from plans
and names from workers, and a regular expression would try every way in which the two can meet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

from agentcanvas.errors import PathRefused
from agentcanvas.sandbox.paths import shown, workspace_relative

_TOKEN = re.compile(
    r"(?P<deep>(?:\*\*/)+)|(?P<all>\*\*+)|(?P<star>\*)|(?P<one>\?)|(?P<either>\{[^{}]*,[^{}]*\})"
)
_BINARY_TOKEN = re.compile(_TOKEN.pattern.encode())
_LONGEST = 1000
_MOST_KNOWN = 10_000
_ANY, _INSIDE = "any", "inside"  # longer than the one character that others read


def checked_glob(glob: str | bytes) -> bytes:
    """Refuse a pattern that leads out of the workspace or into an internal folder."""
    if len(glob) > _LONGEST:
        raise PathRefused(f"'{shown(os.fsencode(glob))[:60]}…' is too long for a pattern")
    return workspace_relative(glob)


def is_plain(glob: bytes) -> bool:
    """Tell a name from a pattern."""
    return _BINARY_TOKEN.search(glob) is None


def fixed_part(glob: bytes) -> bytes:
    """Give the folder below which everything lies that the pattern can cover; empty for the top."""
    token = _BINARY_TOKEN.search(glob)
    return glob if token is None else glob[: token.start()].rpartition(b"/")[0]


def covered(path: bytes, globs: Iterable[bytes]) -> bool:
    """Tell whether at least one pattern covers the path; a file name need not be text."""
    return within(os.fsdecode(path), map(os.fsdecode, globs))


def within(path: str, globs: Iterable[str]) -> bool:
    """Tell whether at least one pattern covers the path."""
    return any(_machine(glob).accepts(path) for glob in globs)


class _Machine:
    """A pattern as places with steps between them, and what is known so far of walking them.

    Many places at once are one number with a bit for each: it takes bits where a set takes words,
    and all of them go on together.
    """

    def __init__(self, glob: str) -> None:
        glob = glob.removeprefix("./").rstrip("/")
        self._count = 0
        self._steps: dict[str, int] = {}
        self._stays: dict[str, int] = {}
        self._silent: dict[int, int] = {}
        self._known: dict[int, _Places] = {}
        self._add(glob)
        if _TOKEN.search(glob.rpartition("/")[2]) is None:  # it names a folder, perhaps
            self._skip(self._count, 2)
            self._step("/")
            self._loop(_ANY)
        self._goal = 1 << self._place()

    def accepts(self, path: str) -> bool:
        """Follow all the ways at once."""
        places = self._reached(1)
        for char in path:
            places = places[char]
        return places.all & self._goal != 0

    def _place(self) -> int:
        self._count += 1
        return self._count - 1

    def _step(self, reads: str) -> None:
        """Add a place that one leaves for the next by reading."""
        self._steps[reads] = self._steps.get(reads, 0) | 1 << self._place()

    def _loop(self, reads: str) -> None:
        """Add a place where one may read and stay, and that one leaves without reading."""
        self._skip(self._count, 1)
        self._stays[reads] = self._stays.get(reads, 0) | 1 << self._place()

    def _skip(self, place: int, over: int) -> None:
        """Let one go so much farther from a place without reading."""
        self._silent[over] = self._silent.get(over, 0) | 1 << place

    def _add(self, glob: str) -> None:
        """Add places for a pattern; the one after the last of them is where it is fulfilled."""
        end = 0
        for token in _TOKEN.finditer(glob):
            self._add_letters(glob[end : token.start()])
            self._add_token(token)
            end = token.end()
        self._add_letters(glob[end:])

    def _add_letters(self, letters: str) -> None:
        for letter in letters:
            self._step(letter)

    def _add_token(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "deep":  # nothing, or anything up to a slash
                fork = self._place()
                self._skip(fork, 1)
                self._skip(fork, 3)
                self._loop(_ANY)
                self._step("/")
            case "all":
                self._loop(_ANY)
            case "star":
                self._loop(_INSIDE)
            case "one":
                self._step(_INSIDE)
            case _:
                self._add_choices(token[0][1:-1].split(","))

    def _add_choices(self, choices: Iterable[str]) -> None:
        fork, ends = self._place(), []
        for choice in choices:
            self._skip(fork, self._count - fork)
            self._add(choice)
            ends.append(self._place())
        for end in ends:
            self._skip(end, self._count - end)

    def following(self, places: int, char: str) -> _Places:
        """Where one may be after one more character."""
        fit = (char, _ANY) if char == "/" else (char, _ANY, _INSIDE)
        there = 0
        for reads in fit:
            there |= (places & self._steps.get(reads, 0)) << 1
            there |= places & self._stays.get(reads, 0)
        return self._reached(there)

    def _reached(self, places: int) -> _Places:
        """Add where one comes without reading."""
        before = 0
        while places != before:
            before = places
            for over, leaving in self._silent.items():
                places |= (places & leaving) << over
        if len(self._known) > _MOST_KNOWN:  # names made for it could fill the memory
            self._known = {}
        return self._known.setdefault(places, _Places(self, places))


class _Places(dict[str, "_Places"]):
    """Where one may be in a pattern; the next places by character, found when first asked for."""

    def __init__(self, machine: _Machine, places: int) -> None:
        super().__init__()
        self._machine = machine
        self.all = places

    def __missing__(self, char: str) -> _Places:
        following = self[char] = self._machine.following(self.all, char)
        return following


@lru_cache(maxsize=512)
def _machine(glob: str) -> _Machine:
    return _Machine(glob)
