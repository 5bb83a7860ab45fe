"""What ``ground`` calls the transactions of a run, in the words of people: its tasks."""

from __future__ import annotations

import re
from typing import Final

_TRANSACTION: Final = re.compile(
    r"\b(run_\d{8}_\d{6}(?:_[0-9a-z]{1,8})?)\.([\w.-]+?)\.r\d+(?:-[\w-]+)?(?![\w-])"
)


def in_words(sentence: str) -> str:
    """The sentence with each transaction named by task and run."""
    return _TRANSACTION.sub(r"\2 of \1", sentence)
