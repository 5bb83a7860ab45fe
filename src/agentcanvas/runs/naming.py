"""What ``ground`` calls the transactions of a run, in the words of people: its tasks."""

from __future__ import annotations

import re
from typing import Final

_TRANSACTION: Final = re.compile(
    r"\b(run_\d{8}_\d{6}(?:_[0-9a-z]{1,8})?)\.([\w.-]+?)\.r\d+(?:-[\w-]+)?(?![\w-])"
)


_TAKE_BACK: Final = re.compile(rf"\bTake back {_TRANSACTION.pattern} first")


def in_words(sentence: str) -> str:
    """The sentence with each transaction named by task and run; with the command that takes one
    back, where that is the advice."""
    advised = _TAKE_BACK.sub(r"Take back \2 of \1 first (agentcanvas undo \1 \2)", sentence)
    return _TRANSACTION.sub(r"\2 of \1", advised)
