"""Whether two globs can name the same file, without any file at hand.

The meaning of a glob is that of a task's scope (S8): ``*`` and ``?`` stay inside a folder, ``**``
crosses folders, ``{a,b}`` is either, a plain name covers everything below it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_TOKEN: Final = re.compile(
    r"(?P<deep>(?:\*\*/)+)|(?P<all>\*\*+)|(?P<star>\*)|(?P<one>\?)|(?P<c>.)", re.DOTALL
)
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ANY: Final = "any"
_INSIDE: Final = "inside"
_MOST_CHOICES: Final = 64
_MOST_STATES: Final = 20_000

# A step is (from, what it reads, to); reading None costs nothing.
_Step = tuple[str | None, int]
_Machine = tuple[tuple[tuple[_Step, ...], ...], int]


def overlap(one: str, other: str) -> bool:
    """Whether some path matches both; when in doubt, yes."""
    ones, others = _choices(one), _choices(other)
    if len(ones) * len(others) > _MOST_CHOICES:
        return True
    return any(_meet(_machine(a), _machine(b)) for a in ones for b in others)


@lru_cache(maxsize=512)
def _choices(glob: str) -> tuple[str, ...]:
    """The patterns without braces that one stands for, or more than are looked at."""
    waiting = [glob]
    plain: list[str] = []
    while waiting and len(waiting) + len(plain) <= _MOST_CHOICES:
        each = waiting.pop()
        if found := _BRACES.search(each):
            before, behind = each[: found.start()], each[found.end() :]
            waiting += [before + choice + behind for choice in found[1].split(",")]
        else:
            plain.append(each.removeprefix("./").rstrip("/"))
    return (*plain, *waiting)


@lru_cache(maxsize=512)
def _machine(glob: str) -> _Machine:
    """States with their steps; the last state is the one to reach."""
    states: list[tuple[_Step, ...]] = []
    for token in _TOKEN.finditer(glob):
        here = len(states)
        match token.lastgroup:
            case "deep":
                states.append(((None, here + 1), (None, here + 2)))
                states.append(((_ANY, here + 1), ("/", here + 2)))
            case "all" | "star" as kind:
                reads = _ANY if kind == "all" else _INSIDE
                states.append(((reads, here), (None, here + 1)))
            case "one":
                states.append(((_INSIDE, here + 1),))
            case _:
                states.append(((token[0], here + 1),))
    end = len(states)
    if not re.search(r"[*?]", glob.rpartition("/")[2]):
        states += [((None, end + 2), ("/", end + 1)), ((_ANY, end + 1), (None, end + 2))]
        end += 2
    return (*states, ()), end


def _meet(one: _Machine, other: _Machine) -> bool:
    goal = (one[1], other[1])
    seen, waiting = {(0, 0)}, [(0, 0)]
    while waiting:
        state = waiting.pop()
        if state == goal or len(seen) > _MOST_STATES:
            return True
        for following in _following(one, other, state):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _following(one: _Machine, other: _Machine, state: tuple[int, int]) -> list[tuple[int, int]]:
    here, there = one[0][state[0]], other[0][state[1]]
    found = [(to, state[1]) for reads, to in here if reads is None]
    found += [(state[0], to) for reads, to in there if reads is None]
    found += [(a, b) for r, a in here for s, b in there if r and s and _alike(r, s)]
    return found


def _alike(one: str, other: str) -> bool:
    """Whether one character can satisfy both."""
    if _ANY in (one, other):
        return True
    if _INSIDE in (one, other):
        return "/" not in (one, other)
    return one == other
