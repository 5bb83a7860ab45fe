"""What went wrong with a call, in our words; both vendors' clients raise alike.

An exception is read by its shape (status, headers, body), so that one reading serves both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import httpx2

from agentcanvas.agents.runtimes.model.endpoint import CallFailed
from agentcanvas.protocol.records import FailureClass

_LONGEST = 500
_BY_STATUS = {
    401: FailureClass.AUTH,
    402: FailureClass.QUOTA,
    403: FailureClass.AUTH,
    404: FailureClass.MODEL_NOT_FOUND,
    408: FailureClass.SERVER,
    409: FailureClass.SERVER,
    413: FailureClass.TURN_LIMIT,
    429: FailureClass.RATE_LIMIT,
}
_QUOTA_WORDS = ("insufficient_quota", "billing", "credit balance", "exceeded your current quota")
_FIRST_SERVER_ERROR = 500

NOT_UNDERSTOOD = (ValueError, TypeError, LookupError, AttributeError)
"""What a stream that is not what it should be raises: the clients do not hold it to its types."""

ADVICE = {
    FailureClass.AUTH: "check the key in the variable that keyEnv names",
    FailureClass.QUOTA: "add credit, or give the task to another agent",
    FailureClass.MODEL_NOT_FOUND: "check the model's name and the url",
    FailureClass.TURN_LIMIT: "the conversation is too long for the model; split the task",
}


def of_status(error: Any) -> CallFailed:
    """Read an answer that was an error."""
    status = int(error.status_code)
    said = _said(error)
    found = _BY_STATUS.get(status, FailureClass.UNKNOWN)
    if status >= _FIRST_SERVER_ERROR:
        found = FailureClass.SERVER
    if found in {FailureClass.RATE_LIMIT, FailureClass.UNKNOWN} and _is_about_money(said):
        found = FailureClass.QUOTA
    if "context" in said.casefold() and "length" in said.casefold():
        found = FailureClass.TURN_LIMIT
    again = found in {FailureClass.RATE_LIMIT, FailureClass.SERVER}
    headers = getattr(error.response, "headers", {})
    return CallFailed(
        found,
        _sentence(f"The model's endpoint answered {status}: {said}", found),
        again=again,
        wait_s=_wait(headers) if again else None,
    )


def of_connection(error: Exception, *, timed_out: bool = False) -> CallFailed:
    """Read a call that got no answer, or only a part of one."""
    cause = error.__cause__ or error
    found = FailureClass.TIMEOUT if timed_out else FailureClass.NETWORK
    said = " ".join(str(cause).split())[:_LONGEST] or type(cause).__name__
    return CallFailed(found, f"The model's endpoint could not be reached: {said}.", again=True)


def of_stream(error: Exception) -> CallFailed:
    """Read an error that came in the middle of a stream."""
    said = _said(error)
    if _is_about_money(said):
        return CallFailed(FailureClass.QUOTA, _sentence(said, FailureClass.QUOTA))
    if isinstance(error, httpx2.HTTPError):
        return of_connection(error)
    return CallFailed(
        FailureClass.SERVER, _sentence(f"The model's answer broke off: {said}", None), again=True
    )


def _said(error: Any) -> str:
    """The endpoint's own words, from wherever it put them."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            words = [inner.get("message"), inner.get("code"), inner.get("type")]
            body = " ".join(dict.fromkeys(str(word) for word in words if word))
    text = body if isinstance(body, str) and body else str(getattr(error, "message", error))
    return " ".join(text.split())[:_LONGEST] or type(error).__name__


def _sentence(said: str, found: FailureClass | None) -> str:
    advice = ADVICE.get(found) if found else None
    said = said.rstrip(".")
    return f"{said}; {advice}." if advice else f"{said}."


def _is_about_money(said: str) -> bool:
    return any(word in said.casefold() for word in _QUOTA_WORDS)


def _wait(headers: Mapping[str, str]) -> float | None:
    """How long to wait, where the endpoint says so in seconds; a date is rare and not read."""
    for name, scale in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            wait = float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait) and wait >= 0:
            return wait
    return None
