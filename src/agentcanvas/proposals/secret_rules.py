"""What a secret looks like: tokens of well-known services, and something random that is assigned.

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
    r"|sh)$|(?:^|/)(?:Dockerfile[^/]*|credentials|npmrc|_netrc)$",
    re.IGNORECASE,
)
_KEY_BEGINS: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|^Private-Lines: \d"
)
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
    _token("openrouter_key", "sk-or-", r"sk-or-(?:v1-)?(?P<body>[0-9a-f]{64})(?!\w)"),
    _token("groq_key", "gsk_", r"gsk_(?P<body>[A-Za-z0-9]{40,80})(?!\w)"),
    _token("xai_key", "xai-", r"xai-(?P<body>[A-Za-z0-9]{60,100})(?!\w)"),
    _token("perplexity_key", "pplx-", r"pplx-(?P<body>[A-Za-z0-9]{40,80})(?!\w)"),
    _token("replicate_token", "r8_", r"r8_(?P<body>[A-Za-z0-9]{37})(?!\w)"),
    _token("google_oauth_token", "ya29.", r"ya29\.(?P<body>[\w-]{40,500})"),
    _token("digitalocean_token", "_v1_", r"do[opr]_v1_(?P<body>[0-9a-f]{64})(?!\w)"),
    _token("docker_token", "dckr_", r"dckr_[op]at_(?P<body>[\w-]{27,40})(?![\w-])"),
    _token("rubygems_key", "rubygems_", r"rubygems_(?P<body>[0-9a-f]{48})(?!\w)"),
    _token("databricks_token", "dapi", r"dapi(?P<body>[0-9a-f]{32})(?:-\d)?(?!\w)"),
    _token("atlassian_token", "atatt3", r"ATATT3(?P<body>[\w=-]{60,300})"),
    _token("linear_key", "lin_", r"lin_(?:api|oauth)_(?P<body>[A-Za-z0-9]{40,64})(?!\w)"),
    _token("notion_token", "ntn_", r"ntn_(?P<body>[A-Za-z0-9]{40,60})(?!\w)"),
    _token("postman_key", "pmak-", r"PMAK-(?P<body>[0-9a-f]{24}-[0-9a-f]{34})(?!\w)"),
    _token("shopify_token", "shp", r"shp(?:at|ca|pa|ss)_(?P<body>[0-9a-fA-F]{32})(?!\w)"),
    _token("square_secret", "sq0csp-", r"sq0csp-(?P<body>[\w-]{43})(?![\w-])"),
    _token("supabase_token", "sbp_", r"sbp_(?P<body>[0-9a-f]{40})(?!\w)"),
    _token("vault_token", "hv", r"hv[sb]\.(?P<body>[\w-]{24,300})"),
    _token("mailgun_key", "key-", r"key-(?P<body>[0-9a-f]{32})(?!\w)", in_tests=False),
    _token("telegram_token", ":aa", r"(?P<body>\d{8,10}:AA[\w-]{33})(?![\w-])"),
    _token("age_key", "age-secret-key-", r"AGE-SECRET-KEY-1(?P<body>[A-Z0-9]{58})(?!\w)"),
    Token(
        "discord_webhook",
        "/api/webhooks/",
        re.compile(
            r"discord(?:app)?\.com/api/webhooks/\d{17,20}/(?P<body>[\w-]{60,80})", re.IGNORECASE
        ),
    ),
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


@dataclass(frozen=True, slots=True)
class _Said:
    """A form in which a secret is said without an equals sign, and whose value looks random."""

    name: str
    trigger: str
    pattern: re.Pattern[str]
    paths: re.Pattern[str] | None = None

    def may_occur(self, lowered: str) -> bool:
        return self.trigger in lowered

    def search(self, path: str, text: str) -> Iterator[Hit]:
        if _QUIET.search(path) or (self.paths is not None and self.paths.search(path) is None):
            return
        for found in self.pattern.finditer(text):
            if looks_random(found["body"]):
                yield Hit(self.name, found.start("body"), found.end("body"), specific=False)


def _said(name: str, trigger: str, form: str, paths: str | None = None) -> _Said:
    places = None if paths is None else re.compile(paths)
    return _Said(name, trigger, re.compile(form, re.IGNORECASE), places)


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

RULES: Final[tuple[Rule, ...]] = (*_TOKENS, *_SAID, _InAddress(), _Password())


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
