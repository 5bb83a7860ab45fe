"""Heads of HTTP requests and answers: read strictly, because two readers must never differ.

Pure: bytes in, values out. What a head asks for is judged elsewhere; bodies are in ``bodies``.
"""

from __future__ import annotations

import re
from enum import Enum

import msgspec

from agentcanvas.errors import EgressRefused

END_OF_HEAD = b"\r\n\r\n"
_MOST_HEADERS = 200
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_LENGTH = re.compile(r"[0-9]{1,15}")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_METHODS = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

# Of one connection only, never passed on; "trailer" because trailers are not.
_OF_THE_CONNECTION = {
    "connection",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}

Headers = tuple[tuple[str, str], ...]


class Chunked(Enum):
    """A body that says its length piece by piece."""

    YES = "chunked"


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What both kinds have in common; names of headers are in lower case."""

    is_old: bool
    headers: Headers

    def all(self, name: str) -> list[str]:
        """Give every value of a header."""
        return [value for key, value in self.headers if key == name]

    def first(self, name: str) -> str:
        """Give the value of a header, empty when there is none."""
        return next(iter(self.all(name)), "")

    @property
    def wants_close(self) -> bool:
        """Whether the connection ends with this."""
        options = {o.strip().lower() for value in self.all("connection") for o in value.split(",")}
        return "close" in options or (self.is_old and "keep-alive" not in options)

    @property
    def length(self) -> int | Chunked | None:
        """Say how long the body is; None when the head does not tell."""
        lengths = set(self.all("content-length"))
        if codings := self.all("transfer-encoding"):
            if lengths or self.is_old or [c.strip().lower() for c in codings] != ["chunked"]:
                raise EgressRefused("The length of the body is said in two ways", status=400)
            return Chunked.YES
        if not lengths:
            return None
        if len(lengths) > 1 or not _LENGTH.fullmatch(found := lengths.pop()):
            raise EgressRefused("The length of the body is not a number", status=400)
        return int(found)

    def passed_on(self, *without: str) -> Headers:
        """Give the headers that are for the other side."""
        named = {o.strip().lower() for value in self.all("connection") for o in value.split(",")}
        dropped = _OF_THE_CONNECTION | named.difference({"content-length", "host"}) | set(without)
        return tuple((name, value) for name, value in self.headers if name not in dropped)


class RequestHead(Head, frozen=True, kw_only=True):
    """The head of a request."""

    method: str
    target: str

    @property
    def body(self) -> int | Chunked:
        """Say how long the body is; a request that does not tell has none."""
        return 0 if self.length is None else self.length


class AnswerHead(Head, frozen=True, kw_only=True):
    """The head of an answer."""

    status: int

    def body(self, method: str) -> int | Chunked | None:
        """Say how long the body is; None when it ends with the connection."""
        if method == "HEAD" or self.status in {204, 304}:
            return 0
        return self.length


def parse_request(raw: bytes) -> RequestHead:
    """Read the head of a request, without the empty line that ends it."""
    first, *rest = raw.split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or parts[2] not in {b"HTTP/1.0", b"HTTP/1.1"}:  # noqa: PLR2004 -- as the grammar says
        raise EgressRefused("The first line is not that of an HTTP/1 request", status=400)
    method = parts[0].decode("latin-1")
    if method not in _METHODS:
        raise EgressRefused("The method is not one that is passed on", status=405)
    if not _TARGET.fullmatch(parts[1]):
        raise EgressRefused("The address holds a character that it must not", status=400)
    head = RequestHead(
        is_old=parts[2].endswith(b"0"),
        headers=_headers(rest),
        method=method,
        target=parts[1].decode(),
    )
    if len(head.all("host")) > 1:
        raise EgressRefused("The host is said twice", status=400)
    _ = head.length  # judged before anything is passed on
    return head


def parse_answer(raw: bytes) -> AnswerHead:
    """Read the head of an answer, without the empty line that ends it."""
    first, *rest = raw.split(b"\r\n")
    found = _STATUS.fullmatch(first)
    if not found:
        raise EgressRefused("The answer is not HTTP/1", status=502)
    return AnswerHead(is_old=found[1] == b"0", headers=_headers(rest), status=int(found[2]))


def _headers(lines: list[bytes]) -> Headers:
    if len(lines) > _MOST_HEADERS:
        raise EgressRefused("There are too many headers", status=431)
    found = []
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise EgressRefused("A header is not well formed", status=400)
        found.append((name.decode().lower(), value.decode("latin-1")))
    return tuple(found)


def written(first: str, headers: Headers) -> bytes:
    """Write a head."""
    lines = [first, *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + END_OF_HEAD
