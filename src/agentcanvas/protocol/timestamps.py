"""RFC 3339 time: read strictly, written one way."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from agentcanvas.errors import ProtocolError

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ](?!24)\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_PLAIN_LENGTH = len("2026-01-28T10:00:00Z")
_REMEMBERED_LENGTH = 40
_SECONDS = slice(17, 19)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_LAST_SECOND = timedelta(hours=23, minutes=59, seconds=59)
_MILLISECOND = timedelta(milliseconds=1)


def is_rfc3339(text: str) -> bool:
    """Whether ``text`` is a full date, time and offset that exists in the calendar."""
    if text[4::3] == "--T::Z" and len(text) == _PLAIN_LENGTH and text[11:13] != "24":
        # 2026-01-28T10:00:00Z, the common form: its punctuation in one look, its digits in C.
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return _parsed(text) is not None
        return True
    return _parsed(text) is not None


def parse_ms(text: str) -> int:
    """Milliseconds since the epoch."""
    moment = _parsed(text)
    if moment is None:
        raise ProtocolError(
            f"Invalid timestamp: {text!r}; write RFC 3339, for example 2026-01-28T10:00:00Z"
        )
    return (moment - _EPOCH) // _MILLISECOND


def format_ms(ms: int) -> str:
    """UTC with milliseconds, the form all our own messages use."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _parsed(text: str) -> datetime | None:
    # A message's timestamp is looked at where it is read, judged and written.
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _read(text)


@lru_cache(maxsize=512)
def _remembered(text: str) -> datetime | None:
    return _read(text)


def _read(text: str) -> datetime | None:
    if _RFC3339(text) is None:
        return None
    leap = text[_SECONDS] == "60"
    if leap:  # Python knows none: it is the last second of a day once more
        text = f"{text[:17]}59{text[19:]}"
    try:
        moment = datetime.fromisoformat(_as_python_reads(text.upper()))
    except ValueError:
        return None
    return None if leap and (moment - _EPOCH) % _DAY < _LAST_SECOND else moment


def _as_python_reads(text: str) -> str:
    """With at most six digits of a second, of which we keep three."""
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6]}{tail[digits:]}"
