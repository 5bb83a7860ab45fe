"""Known secrets, found by their value wherever they turn up and replaced by their name (D37).

Known are: environment values that are passed by name, keys, and whatever has the form of one of our
tokens. Which values are worth looking for says ``protocol.secret_values``. Guessing what else may
be a secret is left to others.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw

from agentcanvas.errors import InvalidMessage, ProtocolError
from agentcanvas.protocol import scan
from agentcanvas.protocol.envelope import Envelope, from_json, to_json
from agentcanvas.protocol.secret_values import is_hidden

TOKEN_MARK = "act_"  # noqa: S105 - how a token begins, not one
TOKEN = re.compile(rf"{TOKEN_MARK}[a-z2-7]{{12}}_[A-Za-z0-9_-]{{43}}")
_TOKEN_BYTES = re.compile(TOKEN.pattern.encode())
_MARK = TOKEN_MARK.encode()
_ESCAPE, _UNICODE_ESCAPE, _SLASH_ESCAPE = b"\\", b"\\u", b"\\/"
"""Escapes that can stand for a character which needs none."""


class Redactor:
    """The secrets that are known, and how to be silent about them."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        """Know secrets by name: ``{"API_KEY": "the value"}``."""
        self._names: dict[str, str] = {}
        self._bytes: tuple[bytes, ...] = ()
        for name, value in (secrets or {}).items():
            self.know(name, value)

    def know(self, name: str, value: str) -> bool:
        """Look for a secret from now on; tell whether it is one that can be looked for."""
        if not is_hidden(name, value):
            return False
        encoded = value.encode(errors="surrogateescape")
        spellings = {
            value,
            quote(value, safe=""),
            base64.b64encode(encoded).decode().rstrip("="),
            base64.urlsafe_b64encode(encoded).decode().rstrip("="),
        }
        for spelling in spellings:
            self._names[spelling] = name
        # A longer secret may hold a shorter one; it goes first.
        self._names = dict(sorted(self._names.items(), key=lambda each: -len(each[0])))
        self._bytes = tuple({_in_json(each) for each in self._names})
        return True

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        for secret, name in self._names.items():
            if secret in text:
                text = text.replace(secret, f"[redacted:{name}]")
        return TOKEN.sub("[redacted:token]", text) if TOKEN_MARK in text else text

    def finds(self, line: bytes) -> bool:
        """Tell whether there may be a secret in JSON text; quick when there is none."""
        for secret in self._bytes:  # a plain loop: this is asked of every message
            if secret in line:
                return True
        if _MARK in line and _TOKEN_BYTES.search(line):
            return True
        # A single byte is found several times as fast as two.
        if _ESCAPE not in line or (_UNICODE_ESCAPE not in line and _SLASH_ESCAPE not in line):
            return False
        found = _parsed(line)
        return bool(self.value(found) != found)

    def value(self, value: Any) -> Any:
        """Return parsed JSON without secrets, in names of members too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            said = self.text(str(value))
            return value if said == str(value) else said
        if isinstance(value, Raw):
            said = self.text(bytes(value).decode())
            return value if said.encode() == bytes(value) else said
        return value

    def json(self, line: bytes) -> bytes:
        """Return JSON text without secrets."""
        return msgspec.json.encode(self.value(_parsed(line))) if line else line

    def quietly(self, line: bytes) -> bytes:
        """Do the same, and leave text alone that holds none."""
        return self.json(line) if self.finds(line) else line

    def envelope(self, envelope: Envelope) -> Envelope:
        """Return a message without secrets; the same one if it holds none."""
        line = to_json(envelope)
        if not self.finds(line):
            return envelope
        try:
            return from_json(self.json(line))
        except ProtocolError:
            raise InvalidMessage(
                "The message holds a known secret in a field that cannot be changed; "
                "send it without."
            ) from None

    def raw(self, raw: Raw) -> Raw:
        """Return free JSON without secrets."""
        return Raw(self.quietly(bytes(raw)))


def _parsed(line: bytes) -> Any:
    """Return parsed JSON; where a number is beyond all range, each is left as it was written."""
    try:
        return msgspec.json.decode(line)
    except msgspec.ValidationError:
        return scan.verbatim(line)


def _in_json(secret: str) -> bytes:
    """Return a secret as it is written inside a JSON string."""
    return msgspec.json.encode(secret.encode(errors="replace").decode())[1:-1]
