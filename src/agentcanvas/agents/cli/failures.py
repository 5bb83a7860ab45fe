"""Why a turn of a CLI failed, from a status, a code or the words it used (issue: one for all).

CLIs pass on what the model's service said, so that a dozen patterns cover them all; what fits none
is ``unknown`` and keeps its words.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from agentcanvas.protocol.records import FailureClass as Why

_STATUS = {
    401: Why.AUTH,
    402: Why.QUOTA,
    403: Why.DENIED,
    407: Why.NETWORK,
    429: Why.RATE_LIMIT,
}
_SERVER_ERRORS = range(500, 600)

_QUOTA = (
    r"insufficient[_ ]quota|exceeded your current quota|credit balance|out of credits|"
    r"billing|payment required|quota (?:is )?(?:exceeded|exhausted)|usage limit|spending limit|"
    r"insufficient (?:funds|balance|credits)|free[- ]tier"
)


def _alone(number: str) -> str:
    """A number that is not a part of a path, a version or a place in a file."""
    return rf"(?<![\w/.-])(?<!\w:){number}(?![\w/.-])"


# The first that fits is taken: what is more special stands first.
_WORDS: tuple[tuple[Why, re.Pattern[str]], ...] = tuple(
    (why, re.compile(pattern, re.IGNORECASE))
    for why, pattern in (
        (Why.QUOTA, _QUOTA),
        (
            Why.RATE_LIMIT,
            r"rate[_ -]?limit|too many requests|resource[_ ]exhausted|throttl|" + _alone("429"),
        ),
        (
            Why.AUTH,
            r"invalid (?:api|x-api)[- _]key|incorrect api key|unauthori[sz]ed|unauthenticated|"
            r"authentication|not logged in|log ?in (?:required|first|again)|"
            r"please (?:run )?/?login|"
            r"api[_ ]key (?:is )?(?:missing|required|not (?:found|set|valid))|no api key|"
            r"auth_error|expired token|token (?:has )?expired|set an auth method|"
            + _alone("401")
            + r"|"
            r"no auth(?:entication)? (?:type|method)|missing credentials|provide .{0,20}api key",
        ),
        (
            Why.MODEL_NOT_FOUND,
            r"model[_ ]not[_ ]found|no such model|unknown model|model .{0,80}"
            r"(?:does not exist|not found|not supported|not available|is invalid)|"
            r"issue with the selected model|invalid model|"
            r"not_found_error.{0,40}model|unsupported model",
        ),
        (
            Why.DENIED,
            r"permission denied|permissions?_error|forbidden|not allowed|" + _alone("403") + r"|"
            r"rejected permission|"
            r"requires approval|untrusted (?:folder|workspace|directory)|denied by policy",
        ),
        (
            Why.TURN_LIMIT,
            r"max(?:imum)?[_ -]?(?:session[_ -]?)?turns?|maximum number of (?:actions|turns)|"
            r"turn limit|max[_ ]steps|reached max",
        ),
        (
            Why.NETWORK,
            r"econnrefused|econnreset|enotfound|etimedout|eai_again|"
            r"connection (?:error|refused|reset)|network error|could not resolve|"
            r"dns error|fetch failed|proxy refused",
        ),
        (
            Why.SERVER,
            r"overloaded|internal server error|internalservererror|server error|bad gateway|"
            r"service unavailable|high demand|stream disconnected|upstream|" + _alone(r"5\d\d"),
        ),
    )
)

_STATUS_IN_WORDS = re.compile(
    r"(?:status|code|http|error)\D{0,12}\b([45]\d\d)\b|\b([45]\d\d) [A-Z]", re.IGNORECASE
)


def why(message: str, status: int | None = None) -> Why:
    """The class of a failure; the words decide between kinds that share a status."""
    if status is None and (found := _STATUS_IN_WORDS.search(message)):
        status = int(found[1] or found[2])
    if status in {402, 403, 404, 429, 400}:
        for kind in (Why.QUOTA, Why.MODEL_NOT_FOUND):
            if _fits(kind, message):
                return kind
    if status is not None:
        if status in _SERVER_ERRORS:
            return Why.SERVER
        if status in _STATUS:
            return _STATUS[status]
    return next((kind for kind, pattern in _WORDS if pattern.search(message)), Why.UNKNOWN)


def _fits(kind: Why, message: str) -> bool:
    return any(pattern.search(message) for each, pattern in _WORDS if each is kind)


# -- when it ends ----------------------------------------------------------------------------------

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST_S = 8 * 86_400
_AFTER = re.compile(
    r"(?:retry|again|resets?|wait|available|try)\D{0,24}?"
    r"((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
    r"(?![a-z])[\s,and]*)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_RETRY_AFTER = re.compile(
    r"retry[-_]after\"?[:=\s]+\"?(\d+(?:\.\d+)?)\b(?!\s*[a-z])", re.IGNORECASE
)
_EPOCH = re.compile(r"(?:reset\w*|limit reached|until)\D{0,16}\b(1[6-9]\d{8}|2\d{9})(\d{3})?\b")
_ISO = re.compile(
    r"(?:reset|until|again|available)\D{0,16}"
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:reset\w*|until|again|available)(?: at)?\s+"
    r"(\d{1,2})(?::(\d\d))?\s*(am|pm)?\b(?!\s*[a-z]*s)",
    re.IGNORECASE,
)


def reset_ms(message: str, now_ms: int) -> int | None:
    """When a limit ends, as milliseconds since the epoch; None when the words do not say."""
    found = _moment_s(message, now_ms / 1000)
    if found is None:
        return None
    wait = found - now_ms / 1000
    return round(found * 1000) if 0 <= wait <= _LONGEST_S else None


def _moment_s(message: str, now: float) -> float | None:
    if match := _EPOCH.search(message):
        return float(match[1])
    if match := _ISO.search(message):
        return _iso(match[1])
    if match := _RETRY_AFTER.search(message):
        return now + float(match[1])
    if match := _AFTER.search(message):
        return now + sum(
            float(number) * _UNITS[_unit(word)] for number, word in _PART.findall(match[1])
        )
    if match := _CLOCK.search(message):
        return _by_the_clock(int(match[1]), int(match[2] or 0), (match[3] or "").lower(), now)
    return None


def _unit(word: str) -> str:
    word = word.lower()
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _iso(said: str) -> float | None:
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _by_the_clock(hour: int, minute: int, half: str, now: float) -> float | None:
    """The next time it is that late here: CLIs speak to a person at this machine."""
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:  # noqa: PLR2004 -- of a clock
        return None
    today = datetime.fromtimestamp(now).astimezone()
    moment = today.replace(hour=hour, minute=minute, second=0, microsecond=0).timestamp()
    return moment if moment > now else moment + 86_400
