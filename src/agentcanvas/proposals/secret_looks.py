"""What tells a secret from words, references and samples; and a place where one was found.

Pure, and used by every rule. Placeholders and examples are passed over; guesses from names alone
are not made in lock files, tests and documentation, where hashes and samples live.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE: Final = re.compile(
    r"example|placeholder|redacted|change.?me|your[-_ ]|dummy|fake|sample|x{4}|\*{3}|\.{3}|…"
    r"|0{8}|1234567|abcdef[^0-9]|deadbeef|insert|todo|lorem|foobar|not.?a.?real"
    r"|4eC39HqLyjWDarjtT1zdp7dc|BQokikJOvBiI2HlWgH4olfQ2",  # of Stripe's documentation
    re.IGNORECASE,
)
REFERENCE: Final = re.compile(r"^[<$%{@&#(]|\$\{|\{\{|%\(|<%|\{\w*\}|://|^sha\d+[-:]|^arn:|^env:")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WORDS: Final = re.compile(r"(?:[A-Za-z]{1,40}\d{0,3}|\d{1,4})(?:[^A-Za-z0-9]{1,3}|$)")
QUIET: Final = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures?|testdata|__snapshots__|examples?|docs?|mocks?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[._-](?:test|spec)\.[^/]*)$"
    r"|\.(?:md|rst|adoc|snap|map|svg|ipynb|po|lock|sum)$|[.-]min\.(?:js|css)$"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.ya?ml|requirements[^/]*\.txt)$",
    re.IGNORECASE,
)
RANDOM_BITS: Final = 3.0
_RANDOM_LONG: Final = 16
_HEX_SECRET: Final = 32
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Hit:
    """A secret from ``start`` to ``end``; ``public`` is the part of it that says nothing."""

    rule: str
    start: int
    end: int
    public: str = ""
    specific: bool = True

    def moved(self, by: int) -> Hit:
        return replace(self, start=self.start + by, end=self.end + by)


class Rule(Protocol):
    """One way to know a secret; ``may_occur`` is the cheap question, on the text in lower case."""

    def may_occur(self, lowered: str) -> bool: ...

    def search(self, path: str, text: str) -> Iterator[Hit]: ...


def entropy(text: str) -> float:
    """Bits a character, by how often each occurs."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) if text else 0.0


def looks_random(value: str) -> bool:
    """Whether an assigned value is more likely a secret than words, a reference or a sample."""
    if EXAMPLE.search(value) or REFERENCE.search(value) or _UUID.fullmatch(value):
        return False
    if any(char.isspace() for char in value) or entropy(value) < RANDOM_BITS - 0.25:
        return False
    if _HEX_DIGITS.issuperset(value):
        return len(value) >= _HEX_SECRET
    if _made_of_words(value.lstrip("/~.")):  # a path begins with a separator
        return False
    kinds = sum(
        any(test(char) for char in value)
        for test in (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    )
    long_enough = len(value) >= _RANDOM_LONG and entropy(value) >= RANDOM_BITS
    return kinds >= 3 or (kinds == 2 and long_enough)  # noqa: PLR2004 - kinds of characters


def _made_of_words(value: str) -> bool:
    """``next-page-2`` or ``usersPerPage``, as against ``xK3v…``."""
    end = 0
    while end < len(value) and (word := _WORDS.match(value, end)):
        end = word.end()
    flips = sum(a.islower() and b.isupper() for a, b in pairwise(value))
    return end == len(value) and flips * 4 <= len(value)


def is_token(value: str) -> bool:
    """The same for where only a token can stand: that may be a UUID."""
    return _UUID.fullmatch(value) is not None or looks_random(value)
