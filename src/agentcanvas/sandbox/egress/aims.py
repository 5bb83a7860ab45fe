"""Where a request leads: read from its head, judged by the rules, with the key put in its place.

Pure: nothing is resolved or connected here.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from agentcanvas.errors import EgressRefused, ValidationError
from agentcanvas.sandbox.egress.heads import RequestHead
from agentcanvas.sandbox.egress.rules import Endpoint, Host, Rules, plain_name

_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_KEY_IN_A_QUERY = "key"

Name = Callable[[str, int], None]


@dataclass(frozen=True)
class Aim:
    """Where a request leads, and what becomes of it on the way."""

    host: Host
    name: str
    port: int
    path: str = ""
    is_secure: bool = False
    key: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guide:
    """Finds the aim of a request."""

    rules: Rules
    token: str = field(repr=False)
    keys: Mapping[str, str] = field(repr=False)

    def aim(self, head: RequestHead, name_it: Name) -> Aim:
        """Judge a request; ``name_it`` is told where it wants to go before that is judged."""
        if head.target.startswith("/") and head.method != "CONNECT":
            return self._aim_at_endpoint(head, name_it)
        name, port, path = _target(head)
        name_it(name, port)
        if not self._may_pass(head):
            raise EgressRefused("The egress proxy wants its token", status=407)
        host = self.rules.host(name, port)
        if host is None:
            raise EgressRefused(f"{name}:{port} is not among the hosts that this agent may reach")
        return Aim(host, name, port, path)

    def _may_pass(self, head: RequestHead) -> bool:
        scheme, _, said = head.first("proxy-authorization").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            _, _, password = base64.b64decode(said, validate=True).partition(b":")
        except ValueError:  # also of a header that is not ASCII
            return False
        return hmac.compare_digest(password, self.token.encode())

    def _aim_at_endpoint(self, head: RequestHead, name_it: Name) -> Aim:
        path, _, query = head.target.partition("?")
        found = self.rules.endpoint(path)
        if found is None:
            raise EgressRefused("There is no such model; this is AgentCanvas's proxy", status=404)
        endpoint, rest = found
        host = endpoint.host
        name_it(host.name, host.ports[0])
        if "\\" in unquote(rest) or {".", ".."} & set(unquote(rest).split("/")):
            raise EgressRefused("The path leads out of the model's own", status=400)
        aim = Aim(host, host.name, host.ports[0], endpoint.path + rest, endpoint.is_secure)
        return self._with_key(endpoint, aim, head, query)

    def _with_key(self, endpoint: Endpoint, aim: Aim, head: RequestHead, query: str) -> Aim:
        """Put the key where the token was; an endpoint without a key asks for its own."""
        if not endpoint.key_from:
            return replace(aim, path=f"{aim.path}?{query}" if query else aim.path)
        asked = parse_qsl(query, keep_blank_values=True)
        shown = [value for name, value in asked if name == _KEY_IN_A_QUERY]
        shown += [head.first(name).removeprefix("Bearer ") for name in _KEY_HEADERS]
        token = self.token.encode()
        if not any(hmac.compare_digest(value.encode(), token) for value in shown):
            raise EgressRefused("The token for this model is not the one of this turn", status=401)
        key = self.keys.get(endpoint.key_from, "")
        if not key:
            raise EgressRefused(f"{endpoint.key_from} is not set on the host", status=503)
        rest = urlencode([pair for pair in asked if pair[0] != _KEY_IN_A_QUERY])
        return replace(
            aim,
            path=f"{aim.path}?{rest}" if rest else aim.path,
            key=key,
            headers=((endpoint.header, f"{endpoint.scheme}{key}"),),
            # What is packed cannot be searched for the key on its way back.
            without=(*_KEY_HEADERS, "accept-encoding", "cookie"),
        )


def _target(head: RequestHead) -> tuple[str, int, str]:
    """Read ``host:port`` of a CONNECT, or the ``http://`` address of another request."""
    is_tunnel = head.method == "CONNECT"
    try:
        parts = urlsplit(f"//{head.target}" if is_tunnel else head.target)
        name, port = plain_name(parts.hostname or ""), parts.port
    except (ValueError, ValidationError):
        raise EgressRefused("That is not the name of a host and a port", status=400) from None
    if parts.username is not None or parts.fragment:
        raise EgressRefused("An address says no more than host, port, path and query", status=400)
    if not is_tunnel and parts.scheme.lower() != "http":
        raise EgressRefused("Only http:// is passed on as it is; use CONNECT for https", status=400)
    if is_tunnel and (port is None or parts.path or parts.query):
        raise EgressRefused("CONNECT wants a host and a port", status=400)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return name, port or 80, path
