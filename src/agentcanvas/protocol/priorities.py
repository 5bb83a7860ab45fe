"""Priority as a number from 1 to 10, and as a word."""

from __future__ import annotations

from agentcanvas.protocol.values import Word


class PriorityWord(Word):
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
    PriorityWord.LOW,  # there is no 0
    *[PriorityWord.LOW] * 4,
    *[PriorityWord.MEDIUM] * 2,
    *[PriorityWord.HIGH] * 2,
    *[PriorityWord.CRITICAL] * 2,
)


def word_value(word: PriorityWord) -> int:
    """The number a word stands for."""
    return _VALUES[word]


def to_word(priority: int) -> PriorityWord:
    """The band a number from 1 to 10 falls into."""
    return _BANDS[priority]
