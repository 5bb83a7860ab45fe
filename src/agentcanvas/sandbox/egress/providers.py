"""The model services that are known by the variable that holds their key.

Tools find a service by its key's variable and another one for its address, so that both can be made
to lead through the proxy without a word to the tool.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import msgspec

from agentcanvas.sandbox.egress.rules import Endpoint

ANTHROPIC: Final = Endpoint(
    name="anthropic",
    url="https://api.anthropic.com",
    key_from="ANTHROPIC_API_KEY",
    header="x-api-key",
    scheme="",
    told_in=("ANTHROPIC_BASE_URL",),
)
OPENAI: Final = Endpoint(
    name="openai",
    url="https://api.openai.com",
    key_from="OPENAI_API_KEY",
    told_in=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    told_path="/v1",
)
GEMINI: Final = Endpoint(
    name="gemini",
    url="https://generativelanguage.googleapis.com",
    key_from="GEMINI_API_KEY",
    header="x-goog-api-key",
    scheme="",
    told_in=("GOOGLE_GEMINI_BASE_URL",),
)
PROVIDERS: Final = {
    endpoint.key_from: endpoint
    for endpoint in (
        ANTHROPIC,
        # A subscription's long-lived token is shown where others show a key (D12).
        msgspec.structs.replace(
            ANTHROPIC,
            key_from="CLAUDE_CODE_OAUTH_TOKEN",
            header="authorization",
            scheme="Bearer ",
        ),
        OPENAI,
        msgspec.structs.replace(OPENAI, key_from="CODEX_API_KEY"),
        GEMINI,
    )
}

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def endpoint_at(url: str, key_from: str = "") -> Endpoint:
    """A model service at an address of the user's own; unknown ones speak like OpenAI's.

    One on this machine may be reached, and needs no TLS.
    """
    like = PROVIDERS.get(key_from, OPENAI)
    is_here = urlsplit(url).hostname in _LOOPBACK_NAMES
    return Endpoint(
        name="own",
        url=url,
        key_from=key_from,
        header=like.header,
        scheme=like.scheme,
        within=("127.0.0.0/8", "::1/128") if is_here else (),
        told_in=like.told_in,
    )
