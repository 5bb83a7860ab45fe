"""What a host's name may mean: names are judged by their rule, and again by what they resolve to.

A name is resolved once, and the connection goes to the address that was judged, so that a second
answer of a resolver (rebinding) is never asked for.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from agentcanvas.errors import EgressRefused
from agentcanvas.sandbox.egress.rules import Host, address_of

Resolve = Callable[[str, int], Awaitable[list[str]]]

# Public by their numbers, but answered by the machine that one's own runs on.
_METADATA = frozenset({IPv4Address("168.63.129.16")})
_TRANSLATED = ip_network("64:ff9b::/96")
# All that is handed out to the public; what is outside leads to a neighbour, or by another name to
# an IPv4 address.
_HANDED_OUT = ip_network("2000::/3")


async def resolve(name: str, port: int) -> list[str]:
    """Ask the machine's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def allowed_addresses(host: Host, name: str, port: int, ask: Resolve) -> list[str]:
    """Resolve a name that ``host`` covers, and keep the addresses that may be connected to."""
    if address_of(name):
        return [name]  # a rule for an address names it, and needs no other leave
    try:
        found = await ask(name, port)
    except OSError as error:
        raise EgressRefused(f"{name} could not be found: {error.strerror}", status=502) from error
    allowed = [address for address in found if is_allowed(address, host)]
    if not allowed:
        raise EgressRefused(
            f"{name} leads to {', '.join(found[:3]) or 'no address'}, which is not public; name "
            "the network after an '@' if that is meant"
        )
    return allowed


def is_allowed(address: str, host: Host) -> bool:
    """Say whether an address is public, or in a network that the rule names."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if any(found in ip_network(network) for network in host.within):
        return True
    return all(map(_is_public, _meanings(found)))


def _meanings(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Give the address and those that it carries inside; any of them may be where it ends."""
    yield address
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if address in _TRANSLATED:
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped or address in _TRANSLATED:
            return True  # judged by what it carries
        if address not in _HANDED_OUT:
            return False
    return address.is_global and not address.is_multicast and address not in _METADATA
