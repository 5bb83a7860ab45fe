"""What may be reached through the egress proxy: hosts by name and port, models and the hub by path.

Pure values. What a name resolves to is judged in ``addresses``.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

import msgspec

from agentcanvas.errors import ValidationError

WEB_PORTS = (443, 80)
_LOOPBACK = ("127.0.0.0/8", "::1/128")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST_NAME = 253
_MOST_PORTS = 65_535
_RULE = re.compile(r"(?P<name>\[[^\]]*\]|[^:@\[\]]*)(:(?P<port>\d{1,5}))?(@(?P<within>[^@]+))?")
_SEGMENT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A host that may be reached; ``*.name`` stands for all hosts below a name, not for itself.

    A name that leads into a private network is refused, unless ``within`` names that network.
    """

    name: str
    ports: tuple[int, ...] = WEB_PORTS
    within: tuple[str, ...] = ()

    def covers(self, name: str, port: int) -> bool:
        """Say whether this is the host; ``name`` is plain."""
        if port not in self.ports:
            return False
        return name.endswith(self.name[1:]) if self.name.startswith("*.") else name == self.name


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A service that is reached by a path of the proxy itself, without TLS on the way to it.

    With ``key_from``, the name of a variable of the host, whoever asks shows the door's token where
    the key would be, and the proxy puts the key there: ``header`` is where, ``scheme`` what stands
    before it.
    """

    name: str
    url: str
    key_from: str = ""
    header: str = "authorization"
    scheme: str = "Bearer "
    within: tuple[str, ...] = ()
    told_in: tuple[str, ...] = ()
    """The variables in which tools look for its address."""
    told_path: str = ""
    """What follows the address there; some tools want ``/v1`` in it, some add it."""

    @property
    def host(self) -> Host:
        """Where it is."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return Host(name=plain_name(parts.hostname or ""), ports=(port,), within=self.within)

    @property
    def is_secure(self) -> bool:
        """Whether it is reached by TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def path(self) -> str:
        """What its paths begin with."""
        return urlsplit(self.url).path.rstrip("/")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All that one agent may reach."""

    hosts: tuple[Host, ...] = ()
    models: tuple[Endpoint, ...] = ()
    hub: Endpoint | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be served, before anything runs."""
        for endpoint in (*self.models, *((self.hub,) if self.hub else ())):
            _check(endpoint)

    def host(self, name: str, port: int) -> Host | None:
        """Find the rule that allows a host."""
        return next((host for host in self.hosts if host.covers(name, port)), None)

    def endpoint(self, path: str) -> tuple[Endpoint, str] | None:
        """Find the endpoint that a path of the proxy stands for, with the path there."""
        first, _, rest = path.removeprefix("/").partition("/")
        if first == "hub" and self.hub:
            return self.hub, f"/{rest}"
        name, _, rest = rest.partition("/")
        if first == "model":
            for endpoint in self.models:
                if endpoint.name == name:
                    return endpoint, f"/{rest}"
        return None


def host_rule(text: str) -> Host:
    """Read ``name``, ``*.name``, ``name:port`` or ``name:port@network``."""
    found = _RULE.fullmatch(text.strip())
    if not found:
        raise ValidationError(
            f"network.hosts: '{text}' is not a host; write api.example.org, *.example.org or "
            "example.org:8443"
        )
    below = found["name"].startswith("*.")
    name = plain_name(found["name"][2:] if below else found["name"].strip("[]"))
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port <= _MOST_PORTS:
        raise ValidationError(f"network.hosts: '{text}' names a port that does not exist")
    if below and ("." not in name or address_of(name)):
        raise ValidationError(f"network.hosts: '{text}' is too wide; name a domain after the '*.'")
    within = _networks(found["within"], text) if found["within"] else ()
    # A name without a dot leads into a private network only, which has to be named beside it.
    if "." not in name and name != "localhost" and not (within or address_of(name)):
        raise ValidationError(
            f"network.hosts: {text} is neither a mode (none, model, open) nor a host; for "
            "everything write network: open"
        )
    if name == "localhost":
        within += _LOOPBACK
    return Host(
        name=f"*.{name}" if below else name,
        ports=WEB_PORTS if port is None else (port,),
        within=within,
    )


def _networks(said: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(part.strip(), strict=False)) for part in said.split(","))
    except ValueError:
        raise ValidationError(
            f"network.hosts: what follows the '@' of '{text}' is no network; write 10.0.0.0/8"
        ) from None


def plain_name(name: str) -> str:
    """Give the one spelling of a host's name; refuse what resolvers read in ways of their own."""
    if address := address_of(name):
        return str(address)
    plain = name.removesuffix(".")
    if not plain.isascii() and len(plain) <= _LONGEST_NAME:
        try:
            plain = plain.encode("idna").decode()
        except UnicodeError:
            plain = ""
    plain = plain.lower()
    labels = plain.split(".")
    # "127.1", "0x7f000001" and "2130706433" are addresses to a resolver, and names to nobody.
    is_number = labels[-1].isdigit() or labels[-1].startswith("0x")
    if (
        len(plain) > _LONGEST_NAME
        or is_number
        or not plain.isascii()
        or not all(map(_LABEL.fullmatch, labels))
    ):
        raise ValidationError(f"network.hosts: '{name}' is not the name of a host")
    return plain


def address_of(name: str) -> IPv4Address | IPv6Address | None:
    """Read an address in its usual form."""
    try:
        return ip_address(name)
    except ValueError:
        return None


def _check(endpoint: Endpoint) -> None:
    parts = urlsplit(endpoint.url)
    if not _SEGMENT.fullmatch(endpoint.name):
        raise ValidationError(f"'{endpoint.name}' cannot be the name of a model; use a-z, 0-9, -")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise ValidationError(
            f"The address of {endpoint.name} is '{endpoint.url}'; write https://host/path"
        )
    plain_name(parts.hostname)
    # A key on a line that others can read is no secret. Loopback and named networks are ours.
    if endpoint.key_from and parts.scheme == "http" and not endpoint.within:
        raise ValidationError(
            f"The address of {endpoint.name} must begin with https, because its key goes there"
        )
