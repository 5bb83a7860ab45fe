"""Whose models a CLI may be given a key for, and in which wire format they are asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct, structs

from agentcanvas.sandbox.egress import providers
from agentcanvas.sandbox.egress.rules import Endpoint

CUSTOM = "cli-model"
"""The name of a service at an address of the user's own."""

_LOOPBACK = ("127.0.0.0/8", "::1/128")
_HAS_VERSION = re.compile(r"/v\d+\w*$")


class Api(StrEnum):
    """A wire format of models."""

    ANTHROPIC = "anthropic"
    CHAT = "chat"
    RESPONSES = "responses"
    GEMINI = "gemini"

    @property
    def is_openai(self) -> bool:
        """Whether it is one of OpenAI's two."""
        return self in {Api.CHAT, Api.RESPONSES}


class Provider(Struct, frozen=True):
    """A model service: its format, and its address with the name of the key's variable."""

    api: Api
    endpoint: Endpoint

    @property
    def name(self) -> str:
        """Name it, as in the proxy's path."""
        return self.endpoint.name

    @property
    def key_env(self) -> str:
        """Name the variable with the key; empty where none is needed."""
        return self.endpoint.key_from

    def base(self, address: str) -> str:
        """The base URL for a client, where the service itself is found at ``address``.

        Clients of OpenAI's formats want the version in it, the others add it themselves.
        """
        if self.api.is_openai and not _HAS_VERSION.search(address):
            return f"{address}/v1"
        return address


ANTHROPIC = Provider(Api.ANTHROPIC, providers.ANTHROPIC)
CLAUDE_TOKEN = Provider(Api.ANTHROPIC, providers.PROVIDERS["CLAUDE_CODE_OAUTH_TOKEN"])
"""A subscription's long-lived token: it is shown where others show a key (D12)."""
OPENAI = Provider(Api.CHAT, providers.OPENAI)
OPENAI_RESPONSES = Provider(Api.RESPONSES, providers.OPENAI)
CODEX_KEY = Provider(Api.RESPONSES, providers.PROVIDERS["CODEX_API_KEY"])
GEMINI = Provider(Api.GEMINI, providers.GEMINI)
DASHSCOPE = Provider(
    Api.CHAT,
    Endpoint(
        name="dashscope",
        url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_from="DASHSCOPE_API_KEY",
    ),
)
MOONSHOT = Provider(
    Api.CHAT,
    Endpoint(name="moonshot", url="https://api.moonshot.ai/v1", key_from="MOONSHOT_API_KEY"),
)


def provider_for(
    known: Iterable[Provider],
    environ: Mapping[str, str],
    *,
    url: str = "",
    key_env: str = "",
    api: str = "",
) -> Provider | None:
    """The service to ask: the one that was named, else the first whose key is there.

    An address of one's own is asked in the CLI's first format, or in the one that is named. Where
    the environment names another address for a service, as for other tools, it is asked there.
    """
    fit = [each for each in known if not api or each.api == api]
    if not fit:
        return None
    if url:
        return _custom(fit[0], url, key_env)
    if key_env:
        same = next((each for each in fit if each.key_env == key_env), fit[0])
        return _at_home(
            Provider(same.api, structs.replace(same.endpoint, key_from=key_env)), environ
        )
    found = next((each for each in fit if environ.get(each.key_env)), None)
    return None if found is None else _at_home(found, environ)


def _at_home(provider: Provider, environ: Mapping[str, str]) -> Provider:
    """The service where this machine's tools look for it: a gateway of a company, or the vendor."""
    told = next((environ[name] for name in provider.endpoint.told_in if environ.get(name)), "")
    return _custom(provider, told, provider.key_env) if told else provider


def _custom(like: Provider, url: str, key_env: str) -> Provider:
    """A service at an address of the user's; one on this machine may be reached without TLS."""
    address = url.rstrip("/")
    if not like.api.is_openai:
        address = _HAS_VERSION.sub("", address)
    host = urlsplit(address).hostname or ""
    own = host in {"localhost", "::1"} or host.startswith("127.")
    endpoint = structs.replace(
        like.endpoint,
        name=CUSTOM,
        url=address,
        key_from=key_env,
        within=_LOOPBACK if own else (),
    )
    return Provider(like.api, endpoint)
