"""Priority as a number from 1 to 10, and as a word."""

from __future__ import annotations

from enum import StrEnum


class PriorityWord(StrEnum):
    """The four words; each stands for one number and names a band of them."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


_VALUES = {
    PriorityWord.LOW: 3,
    PriorityWord.MEDIUM: 5,
    PriorityWord.HIGH: 7,
    PriorityWord.CRITICAL: 9,
}
_BANDS = (
    (4, PriorityWord.LOW),
    (6, PriorityWord.MEDIUM),
    (8, PriorityWord.HIGH),
    (10, PriorityWord.CRITICAL),
)


def word_value(word: PriorityWord) -> int:
    """The number a word stands for."""
    return _VALUES[word]


def to_word(priority: int) -> PriorityWord:
    """The band a number falls into."""
    return next(word for top, word in _BANDS if priority <= top)
