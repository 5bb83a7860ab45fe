"""What a secret looks like: tokens of well-known services, and assignments of something random.

Every pattern is bounded and begins where a run of its own characters begins, so that a search is
linear in the text however it was made up. Placeholders and examples are passed over; guesses from
names alone are not made in lock files, tests and documentation, where hashes and samples live.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXAMPLE: Final = re.compile(
    r"example|placeholder|redacted|change.?me|your[-_ ]|dummy|fake|sample|x{4}|\*{3}|\.{3}|…"
    r"|0{8}|1234567|abcdef[^0-9]|deadbeef|insert|todo|lorem|foobar|not.?a.?real",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(r"^[<$%{@&#(]|\$\{|\{\{|%\(|<%|\{\w*\}|://|^sha\d+[-:]|^arn:|^env:")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WORDS: Final = re.compile(r"(?:[A-Za-z]{1,40}\d{0,3}|\d{1,4})(?:[^A-Za-z0-9]{1,3}|$)")
_QUIET: Final = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures?|testdata|__snapshots__|examples?|docs?|mocks?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[._-](?:test|spec)\.[^/]*)$"
    r"|\.(?:md|rst|adoc|snap|map|svg|ipynb|po|lock|sum)$|[.-]min\.(?:js|css)$"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.ya?ml|requirements[^/]*\.txt)$",
    re.IGNORECASE,
)
_SETTINGS: Final = re.compile(
    r"(?:^|/)\.(?:env|npmrc|pypirc|netrc)[^/]*$|\.(?:env|ini|cfg|conf|properties|ya?ml|toml|tfvars"
    r"|sh)$|(?:^|/)Dockerfile[^/]*$",
    re.IGNORECASE,
)
_KEY_BEGINS: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(r"(?:^|\\n|[\s\"'+])[A-Za-z0-9+/]{40}")
_RANDOM_BITS: Final = 3.0
_RANDOM_LONG: Final = 16
_HEX_SECRET: Final = 32
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Hit:
    """A secret from ``start`` to ``end``; ``public`` is the part of it that says nothing."""

    rule: str
    start: int
    end: int
    public: str = ""
    specific: bool = True

    def moved(self, by: int) -> Hit:
        return replace(self, start=self.start + by, end=self.end + by)


class Rule(Protocol):
    """One way to know a secret; ``may_occur`` is the cheap question, on the text in lower case."""

    def may_occur(self, lowered: str) -> bool: ...

    def search(self, path: str, text: str) -> Iterator[Hit]: ...


@dataclass(frozen=True, slots=True)
class Token:
    """A form that a service gives its tokens; what the group ``body`` matches must look random."""

    name: str
    trigger: str
    pattern: re.Pattern[str]
    in_tests: bool = True

    def may_occur(self, lowered: str) -> bool:
        return self.trigger in lowered

    def search(self, path: str, text: str) -> Iterator[Hit]:
        if not self.in_tests and _QUIET.search(path):
            return
        for found in self.pattern.finditer(text):
            body = found["body"]
            if _EXAMPLE.search(body) is None and entropy(body) >= _RANDOM_BITS:
                yield Hit(self.name, found.start(), found.end(), _public(found))


def _public(found: re.Match[str]) -> str:
    return found.string[found.start() : found.start("body")]


def _token(name: str, trigger: str, form: str, *, in_tests: bool = True) -> Token:
    return Token(name, trigger, re.compile(r"(?<![A-Za-z0-9_-])" + form), in_tests)


_TOKENS: Final = (
    _token("aws_access_key", "akia", r"AKIA(?P<body>[A-Z2-7]{16})(?![A-Za-z0-9])"),
    _token("aws_access_key", "asia", r"ASIA(?P<body>[A-Z2-7]{16})(?![A-Za-z0-9])"),
    _token("gcp_api_key", "aiza", r"AIza(?P<body>[\w-]{35})(?![\w-])"),
    _token("gcp_oauth_secret", "gocspx-", r"GOCSPX-(?P<body>[\w-]{28})(?![\w-])"),
    _token("github_token", "gh", r"gh[pousr]_(?P<body>[A-Za-z0-9]{36,255})(?!\w)"),
    _token("github_token", "github_pat_", r"github_pat_(?P<body>\w{60,255})(?!\w)"),
    _token("gitlab_token", "gl", r"gl(?:pat|dt|rt|ptt|cbt|agent|soat|ft)-(?P<body>[\w-]{20,255})"),
    _token("slack_token", "xox", r"xox[abeoprs]-(?P<body>[A-Za-z0-9-]{24,255})"),
    _token("slack_token", "xapp-", r"xapp-\d-(?P<body>[A-Za-z0-9-]{24,255})"),
    Token(
        "slack_webhook",
        "hooks.slack.com/",
        re.compile(r"hooks\.slack\.com/services/(?P<body>T\w{8,12}/B\w{8,12}/\w{20,30})"),
    ),
    _token("stripe_key", "_live_", r"[sr]k_live_(?P<body>[A-Za-z0-9]{20,250})(?!\w)"),
    _token("stripe_webhook_secret", "whsec_", r"whsec_(?P<body>[A-Za-z0-9+/=]{32,80})"),
    _token("anthropic_key", "sk-ant-", r"sk-ant-(?:[a-z]{3,8}\d{2}-)?(?P<body>[\w-]{32,255})"),
    _token("openai_key", "sk-", r"sk-(?:proj|svcacct|admin|None)-(?P<body>[\w-]{40,255})"),
    _token("openai_key", "sk-", r"sk-(?P<body>[A-Za-z0-9]{48})(?![\w-])"),
    _token("npm_token", "npm_", r"npm_(?P<body>[A-Za-z0-9]{36})(?!\w)"),
    _token("pypi_token", "pypi-", r"pypi-(?P<body>[\w-]{50,512})"),
    _token("hugging_face_token", "hf_", r"hf_(?P<body>[A-Za-z0-9]{34,40})(?!\w)"),
    _token("sendgrid_key", "sg.", r"SG\.(?P<body>[\w-]{22}\.[\w-]{43})(?![\w-])"),
    _token("azure_storage_key", "accountkey=", r"AccountKey=(?P<body>[A-Za-z0-9+/]{86}==)"),
    _token(
        "jwt",
        "eyj",
        r"(?P<body>eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{20,1000})",
        in_tests=False,
    ),
)


@dataclass(frozen=True, slots=True)
class _Password:
    """``name: value`` with a name that speaks of a secret and a value that looks random."""

    name: str = "assigned_secret"

    def may_occur(self, lowered: str) -> bool:
        return any(word in lowered for word in _SPEAKING)

    def search(self, path: str, text: str) -> Iterator[Hit]:
        if _QUIET.search(path):
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
    r"(?::[ \t]{0,2}[a-z]{1,20}[ \t]{0,2}(?==))?(?::=|=>|=|:)[ \t]{0,8}"
    r"(?:[rbfu]?\"(?P<double>[^\"\n]{8,200})\"|[rbfu]?'(?P<single>[^'\n]{8,200})'"
    r"|(?P<bare>[A-Za-z0-9+/=_.~!@%^&*$-]{12,200})(?![^\s,;#]))",
    re.IGNORECASE,
)
_OTHER_MATTER: Final = re.compile(
    r"(?:hash|digest|sha\d*|name|url|uri|path|file|type|len|length|count|limit|regex|pattern|field"
    r"|header|expires?|ttl|prefix|label|title|hint|error|message|endpoint|ref|_id|arn|version|env"
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
        if _QUIET.search(path):
            return
        for found in _ADDRESS.finditer(text):
            word = found["body"]
            known = _EXAMPLE.search(word) or _REFERENCE.search(word) or word.lower() in _COMMON
            if not known and word != found["user"]:
                yield Hit(self.name, found.start("body"), found.end("body"))


_ADDRESS: Final = re.compile(
    r"[a-z]://(?P<user>[^\s:/@\"'<>]{0,64}):(?P<body>[^\s:/@\"'<>]{6,128})@[A-Za-z0-9\[]",
    re.IGNORECASE,
)
_COMMON: Final = frozenset({"password", "passwd", "secret", "postgres", "guest", "username"})

RULES: Final[tuple[Rule, ...]] = (*_TOKENS, _InAddress(), _Password())


def entropy(text: str) -> float:
    """Bits a character, by how often each occurs."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) if text else 0.0


def looks_random(value: str) -> bool:
    """Whether an assigned value is more likely a secret than words, a reference or a sample."""
    if _EXAMPLE.search(value) or _REFERENCE.search(value) or _UUID.fullmatch(value):
        return False
    if any(char.isspace() for char in value) or entropy(value) < _RANDOM_BITS - 0.25:
        return False
    if _HEX_DIGITS.issuperset(value):
        return len(value) >= _HEX_SECRET
    if _made_of_words(value):
        return False
    kinds = sum(
        any(test(char) for char in value)
        for test in (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    )
    long_enough = len(value) >= _RANDOM_LONG and entropy(value) >= _RANDOM_BITS
    return kinds >= 3 or (kinds == 2 and long_enough)  # noqa: PLR2004 - kinds of characters


def _made_of_words(value: str) -> bool:
    """``next-page-2`` or ``usersPerPage``, as against ``xK3v…``."""
    end = 0
    while end < len(value) and (word := _WORDS.match(value, end)):
        end = word.end()
    flips = sum(a.islower() and b.isupper() for a, b in pairwise(value))
    return end == len(value) and flips * 4 <= len(value)


def opens_key_block(line: str) -> bool:
    """Whether a private key begins here."""
    return _KEY_BEGINS.search(line) is not None


def in_key_block(line: str) -> bool:
    """Whether this could be the inside of a key, and not only talk of one."""
    found = _KEY_BODY.search(line)
    return found is not None and entropy(found[0]) >= _RANDOM_BITS
