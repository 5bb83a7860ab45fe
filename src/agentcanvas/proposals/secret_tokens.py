"""The forms that well-known services give their tokens.

Each pattern is bounded and begins where a run of its own characters begins, so that a search is
linear in the text however it was made up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.secret_looks import EXAMPLE, QUIET, RANDOM_BITS, Hit, entropy

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        if not self.in_tests and QUIET.search(path):
            return
        for found in self.pattern.finditer(text):
            body = found["body"]
            if EXAMPLE.search(body) is None and entropy(body) >= RANDOM_BITS:
                yield Hit(self.name, found.start(), found.end(), _public(found))


def _public(found: re.Match[str]) -> str:
    return found.string[found.start() : found.start("body")]


def _token(name: str, trigger: str, form: str, *, in_tests: bool = True) -> Token:
    return Token(name, trigger, re.compile(r"(?<![A-Za-z0-9_-])" + form), in_tests)


TOKENS: Final = (
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
    _token("stripe_test_key", "_test_", r"[sr]k_test_(?P<body>[A-Za-z0-9]{20,250})(?!\w)"),
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
    # Looked for in nearly every text, hence by the first letters, and only then by what is before.
    Token(
        "twilio_token",
        "ac",
        re.compile(
            r"AC(?<![A-Za-z0-9_-]AC)[0-9a-f]{32}[\"'`]?[ \t]{0,4}[:,=][ \t]{0,4}[\"'`]?"
            r"(?P<body>[0-9a-f]{32})(?!\w)"
        ),
        in_tests=False,
    ),
    Token(
        "discord_token",
        ".",
        re.compile(
            r"[MNO](?<![A-Za-z0-9_-][MNO])[A-Za-z0-9_-]{23,27}\.[\w-]{6}\."
            r"(?P<body>(?=[\w-]{0,45}\d)[\w-]{27,45})(?![\w-])"
        ),
    ),
    Token(
        "discord_webhook",
        "/api/webhooks/",
        re.compile(
            r"discord(?:app)?\.com/api/webhooks/\d{17,20}/(?P<body>[\w-]{60,80})", re.IGNORECASE
        ),
    ),
    Token(
        "azure_signature",
        "sig=",
        re.compile(
            r"[?&;]sig=(?P<body>(?:[A-Za-z0-9+/_-]|%2[BbFf]){43}(?:%3[Dd]|=))(?![A-Za-z0-9%])"
        ),
        in_tests=False,
    ),
    Token(
        "private_key_in_base64",
        "ls0tls1crudjti",
        # What "-----BEGIN RSA PRIVATE KEY" and the like are then; the beginning of it is judged.
        re.compile(
            r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURSBLRVk|BFQyBQUklWQVRFIEtFWS0|BQUklWQVRFIEtFWS0"
            r"|BPUEVOU1NIIFBSSVZBVEUgS0VZ|BFTkNSWVBURUQgUFJJVkFURSBLRVkt)"
            r"(?P<body>[A-Za-z0-9+/]{40,64})[A-Za-z0-9+/]{0,9000}={0,2}"
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
