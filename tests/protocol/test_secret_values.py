"""Secrets are hidden wherever they turn up; ordinary words are left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.protocol.secret_values import SHORTEST, is_hidden

pytestmark = pytest.mark.req("D37")

SECRET_NAMES = ["OPENAI_API_KEY", "GH_TOKEN", "PGPASSWORD", "client_secret", "SSH_PASSPHRASE"]
ORDINARY = [
    "true",
    "1",
    "test",
    "none",
    "secret",
    "0",
    "key",
    "",
    "password",
    "ChangeMe",
    "disabled",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
@pytest.mark.parametrize("value", ORDINARY)
def test_short_values_and_words_said_in_place_of_a_secret_are_not_looked_for(
    name: str, value: str
) -> None:
    assert not is_hidden(name, value)


@pytest.mark.parametrize("name", SECRET_NAMES)
@pytest.mark.parametrize("value", ["sk-proj-4f9aBc31x", "swordfish", "12345678", "/a+b/c9=="])
def test_a_name_that_promises_a_secret_is_believed(name: str, value: str) -> None:
    assert is_hidden(name, value)


@pytest.mark.parametrize(
    "value",
    [
        "production",
        "en-US.UTF",
        "python:slim",
        "/home/ann/project/src",
        "~/.config/tool",
        "./node_modules/.bin",
        "http://127.0.0.1:8118",
        "https://example.org/v1",
        "20260219",
        "127.0.0.1:8080",
        "v22.12.0",
        "debug,trace",
    ],
)
def test_what_reads_like_words_paths_and_numbers_is_left_alone(value: str) -> None:
    assert not is_hidden("NODE_ENV", value)


@pytest.mark.parametrize(
    "value",
    [
        "postgres://ann:pw@localhost/db",
        "http://agent:f3x9@127.0.0.1:8118",
        "ghp_16C7e42F292c6912E7",
        "eyJhbGciOi.J9.x_1",
        "a1b2c3d4",
    ],
)
def test_a_value_that_does_not_is_hidden_whatever_its_name(value: str) -> None:
    assert is_hidden("DATABASE", value)


@given(st.text(max_size=SHORTEST - 1), st.sampled_from(SECRET_NAMES))
def test_nothing_short_is_ever_looked_for(value: str, name: str) -> None:
    assert not is_hidden(name, value)


@given(st.binary(min_size=16, max_size=64).map(bytes.hex), st.sampled_from(["A", *SECRET_NAMES]))
def test_a_random_token_is_always_hidden(value: str, name: str) -> None:
    assert is_hidden(name, f"t{value}9")


def test_a_long_value_is_judged_quickly() -> None:
    """No pattern goes back and forth over a value that almost matches."""
    for almost in (
        "a-" * 50_000 + "!",
        "/" * 50_000 + "\n",
        "1." * 50_000 + "x",
        "/a " * 50_000 + "\0",
    ):
        is_hidden("NODE_ENV", almost)
