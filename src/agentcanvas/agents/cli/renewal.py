"""What of a login that comes back from an agent is a renewal of the one that was lent.

It lay in the agent's HOME, where any command of the agent could replace it, and whose a token is
only the vendor can tell. So no more is taken over than what renewing changes: tokens and their
times, into the document that was lent. What names another account, or has lost its form, is none.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

import msgspec

_ACCOUNT: Final = re.compile(
    r"(account|user|organi[sz]ation|tenant|workspace)[-_]?(uu)?(id)?$|e-?mail|^login$|^sub$",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"token|refresh|^access$", re.IGNORECASE)
_TOKENS: Final = re.compile(r"tokens?$", re.IGNORECASE)
"""A document of this name holds nothing but tokens, whatever each is called."""
_TIME: Final = re.compile(r"expir|date$|_at$|(?<=[a-z])At$|(?<=[a-z])AT$")
_USE: Final = re.compile(r"(ur[il]|endpoint|host|type|scopes?|client_?id)$", re.IGNORECASE)
"""What says where a token is shown, and how."""
_SETTING: Final = re.compile(rb"[:=\n]")
_OWNER: Final = ("iss", "sub", "email")
_PARTS_OF_A_JWT: Final = 3


class NoRenewal(Exception):
    """What came back is not the login that was lent; the words say what it is."""


def renewed(kept: bytes, came: bytes) -> bytes:
    """Give the login that was lent, with the tokens that came back in it."""
    document, other = _read(kept), _read(came)
    if isinstance(document, dict) and isinstance(other, dict):
        merged = _document(document, other, are_tokens=False)
        return kept if merged == document else _written(merged)
    if kept == came or (_is_bare(kept) and _is_bare(came)):
        return came
    raise _another_form()


def _another_form() -> NoRenewal:
    return NoRenewal("it has another form")


def _another_account() -> NoRenewal:
    return NoRenewal("it is of another account")


def _read(content: bytes | str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _written(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _is_bare(content: bytes) -> bool:
    """Whether it is a line that is a token, and no setting or document."""
    line = content.strip()
    return line.isascii() and bool(line) and not _SETTING.search(line)


def _document(kept: dict[str, Any], came: dict[str, Any], *, are_tokens: bool) -> dict[str, Any]:
    """Give a document as it was lent, with what was renewed in it."""
    dated = are_tokens or any(_TOKEN.search(name) and _is_plain(kept[name]) for name in kept)
    found = {}
    for name, value in kept.items():
        is_token = _is_token(name, dated=dated, are_tokens=are_tokens)
        found[name] = _value(name, value, came.get(name), is_token=is_token)
    return found


def _is_token(name: str, *, dated: bool, are_tokens: bool) -> bool:
    if _ACCOUNT.search(name) or _USE.search(name):
        return False
    return are_tokens or bool(_TOKEN.search(name)) or (dated and bool(_TIME.search(name)))


def _value(name: str, kept: Any, came: Any, *, is_token: bool) -> Any:
    if isinstance(kept, dict) and isinstance(came, dict):
        return _document(kept, came, are_tokens=bool(_TOKENS.search(name)))
    if isinstance(kept, list) and isinstance(came, list) and len(kept) == len(came):
        pairs = zip(kept, came, strict=True)
        return [_value(name, one, other, is_token=False) for one, other in pairs]
    if not _is_plain(kept) or came is None or came == "":  # what has not changed may be left out
        return kept
    if isinstance(kept, str) and isinstance(inner := _read(kept), dict):
        other = _read(came) if isinstance(came, str) else None
        found = _value(name, inner, other, is_token=False)
        return kept if found == inner else msgspec.json.encode(found).decode()
    if is_token:
        return _token(kept, came)
    if _ACCOUNT.search(name) and came != kept:
        raise _another_account()
    return kept


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _token(kept: Any, came: Any) -> Any:
    if not _is_plain(came) or isinstance(came, str) is not isinstance(kept, str):
        raise _another_form()
    if isinstance(kept, str) and (then := _claims(kept)):
        now = _claims(came)
        if not now:
            raise _another_form()
        if any(now.get(name) != then[name] for name in _OWNER if name in then):
            raise _another_account()
    return came


def _claims(token: str) -> dict[str, Any]:
    """What a signed token says of itself; nothing where it is none."""
    parts = token.split(".")
    if len(parts) != _PARTS_OF_A_JWT:
        return {}
    try:
        said = _read(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
