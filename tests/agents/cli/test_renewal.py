"""What of a login that comes back is a renewal: its tokens and their times, and nothing else."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.agents.cli.renewal import NoRenewal, renewed

pytestmark = pytest.mark.req("D12")


def jwt(**claims: Any) -> str:
    parts = ({"alg": "RS256"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    return b".".join((*encoded, b"c2lnbmVk")).decode()


def text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


CLAUDE = {
    "claudeAiOauth": {
        "accessToken": "a1",
        "refreshToken": "r1",
        "expiresAt": 1,
        "scopes": ["user:inference"],
        "subscriptionType": "max",
    }
}
CODEX = {
    "OPENAI_API_KEY": None,
    "tokens": {
        "id_token": jwt(iss="https://auth", sub="user-1", email="a@b.test", iat=1),
        "access_token": jwt(iss="https://auth", sub="user-1", exp=2),
        "refresh_token": "r1",
        "account_id": "acc-1",
    },
    "last_refresh": "2026-11-19T00:00:00Z",
}
OPENCODE = {"anthropic": {"type": "oauth", "refresh": "r1", "access": "a1", "expires": 1}}
QWEN = {
    "access_token": "a1",
    "refresh_token": "r1",
    "token_type": "Bearer",
    "resource_url": "portal.test",
    "expiry_date": 1,
}
COPILOT = {
    "last_logged_in_user": {"host": "https://github.test", "login": "ann"},
    "copilot_tokens": {"https://github.test:ann": "gho_1"},
    "trusted_folders": ["/a"],
    "firstLaunchAt": "2026-01-01",
}
NESTED = {"cline:clineAccountId": text({"idToken": "i1", "userInfo": {"email": "a@b.test"}})}


def changed(document: dict[str, Any], *path: str, to: Any) -> dict[str, Any]:
    """The document with one value changed; the path may lead into JSON in a text."""
    first, *rest = path
    inner = document.get(first, {})
    if rest and isinstance(inner, str):
        return {**document, first: text(changed(json.loads(inner), *rest, to=to))}
    return {**document, first: changed(inner, *rest, to=to) if rest else to}


def back(kept: Any, came: Any) -> Any:
    return json.loads(renewed(json.dumps(kept).encode(), json.dumps(came).encode()))


@pytest.mark.parametrize(
    ("kept", "path", "to"),
    [
        (CLAUDE, ("claudeAiOauth", "accessToken"), "a2"),
        (CLAUDE, ("claudeAiOauth", "refreshToken"), "r2"),
        (CLAUDE, ("claudeAiOauth", "expiresAt"), 2.5),
        (CODEX, ("tokens", "id_token"), jwt(iss="https://auth", sub="user-1", email="a@b.test")),
        (CODEX, ("tokens", "refresh_token"), "r2"),
        (CODEX, ("last_refresh",), "2026-11-20T00:00:00Z"),
        (OPENCODE, ("anthropic", "access"), "a2"),
        (OPENCODE, ("anthropic", "expires"), 2),
        (QWEN, ("expiry_date",), 2),
        (COPILOT, ("copilot_tokens", "https://github.test:ann"), "gho_2"),
        (NESTED, ("cline:clineAccountId", "idToken"), "i2"),
    ],
)
def test_tokens_and_their_times_are_taken_over(
    kept: dict[str, Any], path: tuple[str, ...], to: Any
) -> None:
    came = changed(kept, *path, to=to)
    assert back(kept, came) == came


@pytest.mark.parametrize(
    ("kept", "path", "to"),
    [
        (CLAUDE, ("claudeAiOauth", "scopes"), []),
        (CLAUDE, ("claudeAiOauth", "subscriptionType"), "none"),
        (CLAUDE, ("mcpServers",), {"evil": {"command": "sh"}}),
        (CODEX, ("OPENAI_API_KEY",), "sk-of-somebody-else"),
        (OPENCODE, ("anthropic", "type"), "api"),
        (OPENCODE, ("anthropic", "key"), "sk-of-somebody-else"),
        (QWEN, ("resource_url",), "evil.test"),
        (QWEN, ("token_type",), "evil"),
        (QWEN, ("token_endpoint",), "https://evil.test"),
        (COPILOT, ("trusted_folders",), ["/"]),
        (COPILOT, ("firstLaunchAt",), "2026-01-02"),
        (COPILOT, ("last_logged_in_user", "host"), "https://evil.test"),
        (CODEX, ("tokens", "refresh_token"), ""),
        (CODEX, ("tokens", "refresh_token"), None),
        (CODEX, ("tokens",), "none"),
        (NESTED, ("cline:clineAccountId",), "opaque"),
    ],
)
def test_everything_else_stays_as_it_was_lent(
    kept: dict[str, Any], path: tuple[str, ...], to: Any
) -> None:
    assert back(kept, changed(kept, *path, to=to)) == kept


@pytest.mark.parametrize(
    ("kept", "path", "to", "why"),
    [
        (CODEX, ("tokens", "account_id"), "acc-2", "another account"),
        (CODEX, ("tokens", "id_token"), jwt(iss="https://auth", sub="user-2"), "another account"),
        (CODEX, ("tokens", "access_token"), jwt(sub="user-1"), "another account"),
        (CODEX, ("tokens", "access_token"), "opaque", "another form"),
        (CODEX, ("tokens", "refresh_token"), {"a": 1}, "another form"),
        (COPILOT, ("last_logged_in_user", "login"), "eve", "another account"),
        (NESTED, ("cline:clineAccountId", "userInfo", "email"), "e@v.test", "another account"),
    ],
)
def test_another_account_or_form_is_no_renewal(
    kept: dict[str, Any], path: tuple[str, ...], to: Any, why: str
) -> None:
    with pytest.raises(NoRenewal, match=why):
        back(kept, changed(kept, *path, to=to))


@pytest.mark.parametrize("came", [b"", b"{", b"[]", b"1", b"\xff\xfe", b'"text"', b"[" * 100_000])
def test_what_is_no_document_any_more_is_no_renewal(came: bytes) -> None:
    with pytest.raises(NoRenewal, match="another form"):
        renewed(json.dumps(CLAUDE).encode(), came)


def test_a_bare_token_is_renewed_by_a_bare_token_only() -> None:
    assert renewed(b"token-1\n", b"token-2\n") == b"token-2\n"
    for came in (b"", b'{"token": 1}', b"a\nb\n", b"NAME=value", b"NAME: value", b"\xff"):
        with pytest.raises(NoRenewal):
            renewed(b"token-1\n", came)
    with pytest.raises(NoRenewal):
        renewed(b"OPENAI_API_KEY: sk-1\n", b"OPENAI_API_KEY: sk-2\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@given(st.binary(max_size=99) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_back_the_account_is_the_same(came: bytes) -> None:
    try:
        taken = json.loads(renewed(json.dumps(CODEX).encode(), came))
    except NoRenewal:
        return
    assert taken["tokens"]["account_id"] == "acc-1"
    assert taken.keys() == CODEX.keys()
