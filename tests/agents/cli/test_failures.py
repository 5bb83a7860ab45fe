"""Words of a dozen services, and what they mean for whoever has to act."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.agents.cli.failures import reset_ms, why
from agentcanvas.protocol.records import FailureClass as Why

NOW = 1_794_800_000_000


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}", Why.AUTH),
        ("Please run /login", Why.AUTH),
        ("Please set an Auth method in your settings.json", Why.AUTH),
        ("HTTP 403 Forbidden", Why.DENIED),
        ("429 Too Many Requests", Why.RATE_LIMIT),
        ("status: RESOURCE_EXHAUSTED", Why.RATE_LIMIT),
        ("429: You exceeded your current quota, please check your plan and billing", Why.QUOTA),
        ("Your credit balance is too low to access the Anthropic API", Why.QUOTA),
        ("Claude AI usage limit reached|1794803600", Why.QUOTA),
        ("402 Payment Required", Why.QUOTA),
        (
            "404 The model `gpt-9` does not exist or you do not have access to it",
            Why.MODEL_NOT_FOUND,
        ),
        (
            "models/gemini-9 is not found for API version v1beta: model not found",
            Why.MODEL_NOT_FOUND,
        ),
        ("overloaded_error: Overloaded", Why.SERVER),
        ("503 Service Unavailable", Why.SERVER),
        ("getaddrinfo ENOTFOUND api.example.org", Why.NETWORK),
        ("Reached max turns (3)", Why.TURN_LIMIT),
        ("permission denied by policy", Why.DENIED),
        ("something else entirely", Why.UNKNOWN),
    ],
)
def test_words_have_a_class(words: str, expected: Why) -> None:
    assert why(words) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, Why.AUTH),
        (402, Why.QUOTA),
        (429, Why.RATE_LIMIT),
        (500, Why.SERVER),
        (529, Why.SERVER),
    ],
)
def test_a_status_says_it_where_the_words_do_not(status: int, expected: Why) -> None:
    assert why("it failed", status) is expected


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 20s", 20),
        ("Please retry in 12.5s.", 12.5),
        ("try again in 1m30s", 90),
        ("resets in 2 hours 5 minutes", 7_500),
        ("Please try again in 350ms", 0.35),
        ("retry-after: 30", 30),
        ('"retry_after": 45', 45),
        ("usage limit reached|1794803600", 3_600),
        ("limit resets at 2026-11-16T04:33:20Z", 0),
    ],
)
def test_the_end_of_a_limit_is_read_where_it_is_said(words: str, seconds: float) -> None:
    found = reset_ms(words, NOW)
    if "T04" in words:
        seconds = datetime(2026, 11, 16, 4, 33, 20, tzinfo=UTC).timestamp() - NOW / 1000
    assert found == NOW + round(seconds * 1000)


def test_a_time_of_day_is_the_next_one_here() -> None:
    found = reset_ms("Your limit will reset at 3pm", NOW)
    assert found is not None
    here = datetime.fromtimestamp(found / 1000).astimezone()
    assert (here.hour, here.minute) == (15, 0)
    assert 0 <= found - NOW <= 86_400_000


@pytest.mark.parametrize("words", ["rate limit", "retry", "in 400 days try again in 400 days", ""])
def test_what_is_not_said_is_not_known(words: str) -> None:
    assert reset_ms(words, NOW) is None


@given(st.text(max_size=80), st.integers(0, 4_000_000_000_000))
def test_no_words_make_it_raise(words: str, now: int) -> None:
    why(words)
    found = reset_ms(f"try again at {words} retry-after: {words}", now)
    assert found is None or found >= now
