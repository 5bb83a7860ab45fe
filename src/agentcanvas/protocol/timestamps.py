"""RFC 3339 time: read strictly, written one way."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from agentcanvas.errors import ProtocolError

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_PLAIN_LENGTH = len("2026-01-28T10:00:00Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def is_rfc3339(text: str) -> bool:
    """Whether ``text`` is a full date, time and offset that exists in the calendar."""
    if text[4::3] == "--T::Z" and len(text) == _PLAIN_LENGTH:
        # 2026-01-28T10:00:00Z, the common form: its punctuation in one look, its digits in C.
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return False
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
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _parsed(text: str) -> datetime | None:
    if _RFC3339(text) is None:
        return None
    try:
        return datetime.fromisoformat(_as_python_reads(text.upper()))
    except ValueError:
        return None


def _as_python_reads(text: str) -> str:
    """Without a leap second, and with at most six digits of a second; we keep 1 ms of either."""
    if text[17:19] == "60":
        text = f"{text[:17]}59{text[19:]}"
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6]}{tail[digits:]}"
