"""What a secret looks like: tokens of well-known services, and something random that is assigned.

Here are the ways in which one is said: under a telling name, in an address, on a command line.
Every pattern is bounded and begins where a run of its own characters begins, so that a search is
linear in the text however it was made up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.secret_looks import (
    EXAMPLE,
    QUIET,
    RANDOM_BITS,
    REFERENCE,
    Hit,
    Rule,
    entropy,
    is_token,
    looks_random,
)
from agentcanvas.proposals.secret_tokens import TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS: Final = re.compile(
    r"(?:^|/)\.(?:env|npmrc|pypirc|netrc)[^/]*$|\.(?:env|ini|cfg|conf|properties|ya?ml|toml|tfvars"
    r"|sh)$|(?:^|/)(?:Dockerfile[^/]*|credentials|npmrc|_netrc)$",
    re.IGNORECASE,
)
_KEY_BEGINS: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|^Private-Lines: \d"
)
_KEY_BODY: Final = re.compile(r"(?:^|\\n|[\s\"'+])[A-Za-z0-9+/]{40}")


@dataclass(frozen=True, slots=True)
class _Password:
    """``name: value`` with a name that speaks of a secret and a value that looks random."""

    name: str = "assigned_secret"

    def may_occur(self, lowered: str) -> bool:
        return any(word in lowered for word in _SPEAKING)

    def search(self, path: str, text: str) -> Iterator[Hit]:
        if QUIET.search(path):
            return
        in_settings = _SETTINGS.search(path) is not None
        for found in _ASSIGNED.finditer(text):
            kind = next(kind for kind in ("double", "single", "bare") if found[kind] is not None)
            if kind == "bare" and not in_settings:
                continue  # code: a name or a call, not a value
            value, start = found[kind], found.start(kind)
            if _OTHER_MATTER.search(found["suffix"]) is None and looks_random(value):
                yield Hit(self.name, start, start + len(value), specific=False)


_SPEAKING: Final = ("passw", "pwd", "passphrase", "secret", "token", "key", "credential")
_ASSIGNED: Final = re.compile(
    r"(?:passw(?:or)?d|pwd|passphrase|secret|token|credential|(?:api|access|auth|private|signing"
    r"|encryption|account|service)[_-]?key)(?P<suffix>[a-z0-9_-]{0,30})[\"'\]]{0,2}[ \t]{0,8}"
    r"(?::[ \t]{0,2}[&a-z][\w&'<>\[\]|,. \t]{0,40}(?==))?(?::=|=>|=|:)[ \t]{0,8}"
    r"(?:[rbfu]?\"(?P<double>[^\"\n]{8,200})\"|[rbfu]?'(?P<single>[^'\n]{8,200})'"
    r"|(?P<bare>[A-Za-z0-9+/=_.~!@%^&*$-]{12,200})(?![^\s,;#]))",
    re.IGNORECASE,
)
_OTHER_MATTER: Final = re.compile(
    r"(?:hash|digest|sha\d*|name|url|uri|path|file|type|len|length|count|limit|regex|_re|pattern|field"
    r"|header|expires?|ttl|prefix|label|title|hint|error|message|endpoint|ref|_id|arn|version|env"
    r"|address|contract"
    r"|format|scope|class|checksum|fingerprint)s?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _InAddress:
    """``scheme://user:password@host``."""

    name: str = "password_in_address"

    def may_occur(self, lowered: str) -> bool:
        return "://" in lowered

    def search(self, path: str, text: str) -> Iterator[Hit]:
        if QUIET.search(path):
            return
        for found in _ADDRESS.finditer(text):
            word = found["body"]
            known = EXAMPLE.search(word) or REFERENCE.search(word) or word.lower() in _COMMON
            if not known and word != found["user"]:
                yield Hit(self.name, found.start("body"), found.end("body"))


_ADDRESS: Final = re.compile(
    r"[a-z]://(?P<user>[^\s:/@\"'<>]{0,64}):(?P<body>[^\s:/\"'<>]{6,128})@[A-Za-z0-9\[]",
    re.IGNORECASE,
)
_COMMON: Final = frozenset({"password", "passwd", "secret", "postgres", "guest", "username"})


@dataclass(frozen=True, slots=True)
class _Said:
    """A form in which a secret is said otherwise; ``taken`` tells its value from a sample."""

    name: str
    trigger: str
    pattern: re.Pattern[str]
    paths: re.Pattern[str] | None = None
    taken: Callable[[str], bool] = looks_random

    def may_occur(self, lowered: str) -> bool:
        return self.trigger in lowered

    def search(self, path: str, text: str) -> Iterator[Hit]:
        if QUIET.search(path) or (self.paths is not None and self.paths.search(path) is None):
            return
        for found in self.pattern.finditer(text):
            if self.taken(found["body"]):
                yield Hit(self.name, found.start("body"), found.end("body"), specific=False)


def _said(
    name: str,
    trigger: str,
    form: str,
    paths: str | None = None,
    taken: Callable[[str], bool] = looks_random,
) -> _Said:
    places = None if paths is None else re.compile(paths)
    return _Said(name, trigger, re.compile(form, re.IGNORECASE | re.MULTILINE), places, taken)


_SAID: Final = (
    _said(
        "authorization_header",
        "authorization",
        r"authorization[\"'`\]]{0,2}[ \t]{0,4}[:=,][ \t]{0,4}[frbu]{0,2}[\"'`]?"
        r"(?:bearer|basic|token|bot)[ \t]{1,3}(?P<body>[A-Za-z0-9+/=_.~-]{16,500})",
    ),
    _said(
        "password_in_xml",
        "</",
        r"<[\w:.-]{0,30}(?:password|secret|token|api[_-]?key)>(?P<body>[^<>\s]{8,200})</",
    ),
    _said(
        "password_in_xml",
        "value=",
        r"(?:key|name)=[\"'][\w:.-]{0,40}(?:password|passwd|pwd|secret|token|api[_-]?key)[\"']"
        r"[ \t]{1,4}value=[\"'](?P<body>[^\"'\n]{8,200})[\"']",
    ),
    _said(
        "login_of_curl",
        "curl",
        r"\bcurl\b[^\n]{0,200}?[ \t](?:-u|--user)[ \t=]{0,3}[\"']?[^\s:\"'$]{1,64}:"
        r"(?P<body>[^\s\"'`]{6,128})",
    ),
    _said(
        "secret_of_a_command",
        "--",
        r"--(?<![\w-]--)(?:[a-z0-9]{1,20}-){0,2}(?:token|password|passwd|secret|(?:api|access)-?key)"
        r"(?:[ \t]{1,3}|[\"'],[ \t]{0,3})[\"']?(?P<body>(?!-)[^\s\"'`,;)]{8,200})",
    ),
    _said(
        "registry_token",
        ":_",
        r":_(?:auth|authtoken|password)[ \t]{0,2}=[ \t]{0,2}[\"']?(?P<body>[a-z0-9+/=_-]{12,300})",
        taken=is_token,
    ),
    _said(
        "hashed_password",
        ":",
        r"^[^:\s]{1,64}:(?P<body>\$(?:apr1|1|2[abxy]|5|6|y)\$[^:\s]{20,200}|\{SHA\}[^:\s]{20,60})",
        paths=r"(?:^|/)\.?(?:htpasswd|shadow)$",
        taken=bool,
    ),
    _said(
        "password_in_connection",
        ";",
        r";[ \t]?(?:password|pwd|sharedaccesskey)=(?P<body>[^;\"'\s]{8,200})[;\"']",
    ),
    _said(
        "defined_secret",
        "define",
        r"define\([ \t]{0,4}[\"'][\w-]{0,40}(?:passw(?:or)?d|secret|token|key|salt)[\"'][ \t]{0,4},"
        r"[ \t]{0,4}[\"'](?P<body>[^\"'\n]{8,200})[\"']",
    ),
    _said(
        "password_of_machine",
        "password",
        r"\bpassword[ \t]{1,4}(?P<body>[^\s#]{8,200})",
        paths=r"(?:^|/)[._]netrc$",
    ),
    _said(
        "registry_login",
        "auth",
        r"\"auth\"[ \t]{0,4}:[ \t]{0,4}\"(?P<body>[A-Za-z0-9+/]{16,300}={0,2})\"",
        paths=r"(?:^|/)\.?docker(?:cfg|config|/config)?\.?(?:json)?$",
    ),
)

RULES: Final[tuple[Rule, ...]] = (*TOKENS, *_SAID, _InAddress(), _Password())


def opens_key_block(line: str) -> bool:
    """Whether a private key begins here."""
    return _KEY_BEGINS.search(line) is not None


def in_key_block(line: str) -> bool:
    """Whether this could be the inside of a key, and not only talk of one."""
    found = _KEY_BODY.search(line)
    return found is not None and entropy(found[0]) >= RANDOM_BITS
