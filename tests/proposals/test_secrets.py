"""Secrets in added lines are found by rule, named by place, and never repeated (D48)."""

from __future__ import annotations

import base64
import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.secrets import MOST_FINDINGS, SecretFinding, secrets_in, without_secrets
from tests.proposals.workspaces import diff

pytestmark = pytest.mark.req("D48")

ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "_-"


def made(alphabet: str, length: int, seed: int = 7) -> str:
    """Random, but the same each time; written out, other scanners would find it here."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def patch(path: str, *lines: str) -> bytes:
    body = "".join(f"+{line}\n" for line in lines)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000..1111111\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}"
    ).encode(errors="surrogatepass")


def rules(path: str, *lines: str) -> list[tuple[int, str]]:
    return [(found.line, found.rule) for found in secrets_in(patch(path, *lines))]


HEX = "0123456789abcdef"
TOKENS: dict[str, tuple[str, str]] = {
    "aws_access_key": ("AKIA", made(string.ascii_uppercase + "234567", 16)),
    "aws_access_key, temporary": ("ASIA", made(string.ascii_uppercase + "234567", 16)),
    "gcp_api_key": ("AIza", made(URL, 35)),
    "gcp_oauth_secret": ("GOCSPX-", made(URL, 28)),
    "github_token": ("ghp_", made(ALNUM, 36)),
    "github_token, of an app": ("ghs_", made(ALNUM, 36)),
    "github_token, fine-grained": ("github_pat_", made(ALNUM, 22) + "_" + made(ALNUM, 59)),
    "gitlab_token": ("glpat-", made(URL, 20)),
    "slack_token": ("xoxb-", "9081726354-" + made(string.digits, 12) + "-" + made(ALNUM, 24)),
    "slack_webhook": (
        "hooks.slack.com/services/",
        f"T{made(ALNUM, 8)}/B{made(ALNUM, 8)}/{made(ALNUM, 24)}",
    ),
    "stripe_key": ("sk_live_", made(ALNUM, 24)),
    "stripe_key, restricted": ("rk_live_", made(ALNUM, 24)),
    "anthropic_key": ("sk-ant-api03-", made(URL, 93) + "AA"),
    "openai_key": ("sk-proj-", made(URL, 120)),
    "openai_key, old form": ("sk-", made(ALNUM, 48)),
    "npm_token": ("npm_", made(ALNUM, 36)),
    "pypi_token": ("pypi-", "AgEIcHlwaS5vcmc" + made(URL, 140)),
    "hugging_face_token": ("hf_", made(string.ascii_letters, 34)),
    "sendgrid_key": ("SG.", made(URL, 22) + "." + made(URL, 43)),
    "azure_storage_key": ("AccountKey=", made(ALNUM + "+/", 86) + "=="),
    "openrouter_key": ("sk-or-v1-", made(HEX, 64)),
    "groq_key": ("gsk_", made(ALNUM, 52)),
    "xai_key": ("xai-", made(ALNUM, 80)),
    "perplexity_key": ("pplx-", made(ALNUM, 48)),
    "replicate_token": ("r8_", made(ALNUM, 37)),
    "google_oauth_token": ("ya29.", made(ALNUM, 60)),
    "digitalocean_token": ("dop_v1_", made(HEX, 64)),
    "docker_token": ("dckr_pat_", made(ALNUM, 27)),
    "rubygems_key": ("rubygems_", made(HEX, 48)),
    "databricks_token": ("dapi", made(HEX, 32)),
    "atlassian_token": ("ATATT3", made(ALNUM, 180)),
    "linear_key": ("lin_api_", made(ALNUM, 40)),
    "notion_token": ("ntn_", made(ALNUM, 46)),
    "postman_key": ("PMAK-", f"{made(HEX, 24)}-{made(HEX, 34)}"),
    "shopify_token": ("shpat_", made(HEX, 32)),
    "square_secret": ("sq0csp-", made(URL, 43)),
    "supabase_token": ("sbp_", made(HEX, 40)),
    "vault_token": ("hvs.", made(ALNUM, 90)),
    "mailgun_key": ("key-", made(HEX, 32)),
    "telegram_token": ("", f"{made(string.digits, 10)}:AA{made(ALNUM, 33)}"),
    "age_key": ("AGE-SECRET-KEY-1", made(string.ascii_uppercase + string.digits, 58)),
    "discord_webhook": (
        "discord.com/api/webhooks/928374650192837465/",
        made(ALNUM, 68),
    ),
    "jwt": ("", f"eyJ{made(URL, 30)}.eyJ{made(URL, 60)}.{made(URL, 43)}"),
    "stripe_test_key": ("sk_test_", made(ALNUM, 24)),
    "discord_token": ("MTA4NzY1NDMyMTA5ODc2NTQz.Gh3kQz.", made(URL, 38)),
    "twilio_token": (f"AC{made(HEX, 32, 8)}:", made(HEX, 32)),
    "azure_signature": ("&sig=", made(ALNUM, 40) + "%2B%2F" + made(ALNUM, 1) + "%3D"),
}


@pytest.mark.parametrize("case", TOKENS)
@pytest.mark.parametrize("line", ["key = '{}'", "{}", "url: https://{}/x?y", "a {} b # c", '"{}",'])
def test_a_token_of_a_service_is_found_wherever_it_stands(case: str, line: str) -> None:
    rule = case.partition(",")[0]
    public, body = TOKENS[case]
    (found,) = secrets_in(patch("src/app.py", "nothing", line.format(public + body)))
    assert (found.path, found.line, found.rule) == ("src/app.py", 2, rule)
    assert body not in found.excerpt
    assert body[:6] not in found.excerpt, "not even its beginning"
    assert f"({len(public + body)} characters)" in found.excerpt


KEYS = ["RSA ", "EC ", "OPENSSH ", "DSA ", "ENCRYPTED ", ""]


@pytest.mark.parametrize("kind", KEYS)
def test_a_private_key_is_found_by_its_first_line_and_body(kind: str) -> None:
    begin, end = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    body = [made(ALNUM + "+/", 64, seed) for seed in range(4)]
    (found,) = secrets_in(patch("deploy/id", "# deploy", begin, *body, end))
    assert (found.line, found.rule) == (2, "private_key")
    assert not any(line in found.excerpt for line in body)
    header = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00", ""]
    assert rules("id", begin, *header, *body, end) == [(1, "private_key")]
    one_line = f'KEY = "{begin}\\n{body[0]}\\n{end}"'
    assert rules("a.py", one_line) == [(1, "private_key")]


def test_talk_of_private_keys_and_public_ones_is_none() -> None:
    body = made(ALNUM + "+/", 64)
    assert rules("a.py", 'if line == "-----BEGIN PRIVATE KEY-----":', "    pass") == []
    assert rules("a.pem", "-----BEGIN PUBLIC KEY-----", body, "-----END PUBLIC KEY-----") == []
    assert rules("a.pem", "-----BEGIN CERTIFICATE-----", body) == []


def test_a_key_whose_first_line_was_there_before_is_found_by_what_is_added(tmp_path: Path) -> None:
    begin, end = "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n"
    body = made(ALNUM, 64) + "\n"
    change = diff(tmp_path, {"id": begin + end}, {"id": begin + body + end})
    assert [(found.line, found.rule) for found in secrets_in(change)] == [(1, "private_key")]


def test_only_added_lines_count(tmp_path: Path) -> None:
    secret = f"key = 'ghp_{TOKENS['github_token'][1]}'\n"
    before, without = {"f": f"1\n{secret}2\n3\n"}, {"f": "1\n2\n3\n"}
    assert secrets_in(diff(tmp_path / "removed", before, without)) == ()
    assert secrets_in(diff(tmp_path / "context", before, {"f": f"1\n{secret}2\nthree\n"})) == ()
    (found,) = secrets_in(diff(tmp_path / "added", without, before))
    assert found.line == 2


ASSIGNED = [
    ('password = "{}"', "tR7!kq92Lw"),
    ("DB_PASSWORD={}", "k3jH82hsKq29xLw0"),
    ("  client_secret: '{}'", made(ALNUM, 32)),
    ('"apiKey": "{}",', made(ALNUM, 40)),
    ('api_key: str = "{}"', made(HEX, 32)),
    ("auth_token => '{}'", made(URL, 24)),
    ('const SECRET_KEY = "{}";', made(ALNUM + "!@#%^&*", 50)),
    ("aws_secret_access_key = {}", made(ALNUM + "+/", 40)),
    ('os.environ["ACCESS_KEY"] = "{}"', made(ALNUM, 20)),
]


@pytest.mark.parametrize(("line", "secret"), ASSIGNED)
def test_something_random_under_a_telling_name_is_found(line: str, secret: str) -> None:
    (found,) = secrets_in(patch("settings.env", line.format(secret)))
    assert found.rule == "assigned_secret"
    assert secret not in found.excerpt
    assert found.excerpt.startswith(line.split("{", maxsplit=1)[0].strip()[:5])


UUID = "3f2c1b7a-9e4d-4c1a-8b2f-7d6e5c4b3a21"
SAID = [
    ("deploy.sh", "curl -sS -u admin:{} https://example.org", "login_of_curl"),
    ("deploy.sh", "curl --user 'admin:{}' https://example.org", "login_of_curl"),
    ("src/run.py", 'subprocess.run("tool --token {} --quiet")', "secret_of_a_command"),
    ("src/run.py", '["tool", "--api-key", "{}"]', "secret_of_a_command"),
    ("run.mk", "\ttool --db-password '{}'", "secret_of_a_command"),
    ("Web.config", '<add key="Db.Password" value="{}"/>', "password_in_xml"),
    ("beans.xml", '<property name="apiKey" value="{}" />', "password_in_xml"),
    (".npmrc", "//registry.npmjs.org/:_authToken={}", "registry_token"),
    ("ci/npmrc.txt", "//npm.example.org/:_password={}", "registry_token"),
    ("src/lib.rs", 'const API_KEY: &str = "{}";', "assigned_secret"),
    ("src/lib.rs", 'static TOKEN: &\'static str = "{}";', "assigned_secret"),
    ("src/a.ts", 'let secret: string | undefined = "{}";', "assigned_secret"),
    ("client.py", "headers = {'Authorization': 'Bearer {}'}", "authorization_header"),
    ("fetch.sh", "curl -H 'Authorization: Bearer {}' example.org", "authorization_header"),
    ("app.xml", "<db:password>{}</db:password>", "password_in_xml"),
    ("Web.cs", 'c = "Server=db;User Id=sa;Password={};"', "password_in_connection"),
    ("config.php", "define('DB_PASSWORD', '{}');", "defined_secret"),
    ("home/.netrc", "machine host login me password {}", "password_of_machine"),
    (".docker/config.json", '"auth": "{}"', "registry_login"),
    ("home/.aws/credentials", "aws_secret_access_key = {}", "assigned_secret"),
]


@pytest.mark.parametrize(("path", "line", "rule"), SAID)
def test_something_random_is_found_in_the_ways_in_which_it_is_said(
    path: str, line: str, rule: str
) -> None:
    secret = made(ALNUM, 40)
    (found,) = secrets_in(patch(path, line.replace("{}", secret)))
    assert found.rule == rule
    assert secret[:6] not in found.excerpt
    for harmless in ("${SECRET}", "your-password", "changeme-now-1", "<redacted>", "********"):
        assert secrets_in(patch(path, line.replace("{}", harmless))) == ()
    assert secrets_in(patch(f"tests/{path}", line.replace("{}", secret))) == ()


def test_a_token_of_a_registry_is_one_also_when_it_is_a_uuid() -> None:
    assert rules(".npmrc", f"//registry.npmjs.org/:_authToken={UUID}") == [(1, "registry_token")]


@pytest.mark.parametrize(
    "line",
    [
        "admin:$apr1$Qk2vNw8x$" + made(ALNUM + "./", 22),
        "ada:$2y$10$" + made(ALNUM + "./", 53),
        "eve:{SHA}" + made(ALNUM + "+/", 27) + "=",
        "old:$6$Qk2vNw8x$" + made(ALNUM + "./", 86),
    ],
)
def test_a_file_of_passwords_is_pointed_out_though_they_are_hashed(line: str) -> None:
    for path in (".htpasswd", "conf/htpasswd", "etc/shadow"):
        (found,) = secrets_in(patch(path, "# users", line))
        assert (found.line, found.rule) == (2, "hashed_password")
        assert line[-12:] not in found.excerpt
    assert secrets_in(patch("src/users.py", f"'{line}'")) == ()


def test_the_client_key_of_a_kubeconfig_is_found_and_its_certificates_are_not() -> None:
    key, certificate = (
        base64.b64encode(f"-----BEGIN {kind}-----\n{made(ALNUM, 600)}".encode()).decode()
        for kind in ("EC PRIVATE KEY", "CERTIFICATE")
    )
    lines = [
        f"    certificate-authority-data: {certificate}",
        f"    client-certificate-data: {certificate}",
        f"    client-key-data: {key}",
    ]
    (found,) = secrets_in(patch("kubeconfig", *lines))
    assert (found.line, found.rule) == (3, "private_key_in_base64")
    assert f"({len(key)} characters)" in found.excerpt, "to its end, so that nothing of it is kept"


def test_a_password_with_an_at_sign_is_found_whole() -> None:
    (found,) = secrets_in(patch("a.py", 'DB = "postgres://admin:tR7k@q92@Lw@db.internal/x"'))
    assert found.excerpt == 'DB = "postgres://admin:… (11 characters)'


def test_a_key_of_putty_is_one() -> None:
    lines = ["PuTTY-User-Key-File-3: ssh-rsa", "Private-Lines: 2"]
    body = [made(ALNUM + "+/", 64, seed) for seed in range(2)]
    assert rules("me.ppk", *lines, *body) == [(2, "private_key")]
    assert rules("notes.txt", "Private-Lines: 2", "and so on") == []


HARMLESS = [
    'password = ""',
    'password = "password"',
    'password = "changeme-now-123"',
    'PASSWORD = "your-password-Here1"',
    "password = getpass.getpass()",
    "token = request.headers['X-Token-Header-9']",
    'token = os.environ["GITHUB_TOKEN"]',
    'secret = "${VAULT_SECRET_9}"',
    'secret: "{{ vault.Secret9 }}"',
    'api_key = "<YOUR-API-KEY-1>"',
    'token = "xxxxxxxxxxxxxxxxxxxxX1"',
    'next_token = "next-page-token"',
    'token_type = "Bearer-Token-Type-2"',
    'password_hash = "$2b$12$abcdEFGH1234abcdEFGH12"',
    'secret_name = "prod/Db9/credentials"',
    'secretKeyRef: "app-secrets-V2x9"',
    'token_url = "https://auth.example.com/Token2"',
    'password_field = "userPasswordField1"',
    'key = "9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c"',
    'commit = "9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c00112233"',
    'TOKEN_ID = "123e4567-e89b-12d3-a456-426614174000"',
    'token = "123e4567-e89b-12d3-a456-426614174000"',
    'integrity = "sha512-' + made(ALNUM, 86) + '=="',
    'api_key_checksum = "sha256:' + made(HEX, 64) + '"',
    "if token == 'EndOfFile': pass",
    "password: the password of the user (at least 8 characters)",
    "tokens = tokenizer.encode(text)[:max_Tokens9]",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-ant-api03-your-key-goes-here-placeholder-0000000",
    "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_your_key_goes_here_please",
    "postgres://user:password@localhost/db",
    "postgres://$USER:$PASSWORD@host/db",
    "https://user:{password}@host",
    "task-" + made(ALNUM, 48),
    "desk-" + made(ALNUM, 48),
    "tokenAddress: 0x" + made(HEX, 40),
    "Authorization: Bearer token-of-the-user",
    "<password>Forgotten?</password>",
    "define('TABLE_KEY', 'users_by_name');",
    "a;password=anything;b",
    "the key-value-pairs of dapi and hvs.example.org",
    "secret: /run/secrets/db_password",
    'token_file = "~/.config/tool/token"',
    'secret = "../certs/server-key.pem"',
    'TOKEN_RE = "[A-Za-z0-9]+-[0-9a-f]{32}"',
    "curl -u $USER:$PASSWORD https://example.org",
    "curl -u user:password https://example.org && curl -u admin: https://example.org",
    "curl --user-agent Mozilla:5.0-compatible-X11 https://example.org",
    'parser.add_argument("--token", help="The token of Somebody1 or 2")',
    'parser.add_argument("--password", default=None, type=SomeType1)',
    "tool --token $TOKEN_9 --password <PASSWORD-1> --secret name-of-secret-2",
    '["-p", "--password", "--use-random-password"]',
    "tool --token-file /run/secrets/Token9 --tokenizer cl100k_base_Xy",
    '<add key="Password" value="changeme-Now-1"/>',
    '<property name="password.label" value="Kennwort-Nr9 vergessen?"/>',
    '<option name="tokenizer" value="cl100k_Base-Xy"/>',
    "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
    "?sig=short&sv=2021 and &sig=" + "x" * 43 + "%3D",
    "AC" + made(HEX, 32) + " is the account",
    "sha1 " + made(HEX, 40) + ", AC" + made(HEX, 32) + ".json",
    "MyVeryLongModuleNameOfMany.prototype.somethingQuiteLongAndWordyIndeed",
    "M" + "a" * 24 + ".Object." + "getOwnPropertyDescriptors_of_x",
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t" + made(ALNUM, 400),
    "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0K" + made(ALNUM, 400),
    "ada:$apr1$Qk2vNw8x$" + made(ALNUM, 22),
    "let token: Option<String> = None; // 'abc-def-1'",
    "https://example.org:8080/a@b and ssh://git@host:22/x@y",
    "see https://example.org/?a=b:c@d",
]


@pytest.mark.parametrize("line", HARMLESS)
@pytest.mark.parametrize("path", ["src/app.py", "config.yaml"])
def test_placeholders_references_hashes_and_names_are_passed_over(line: str, path: str) -> None:
    assert secrets_in(patch(path, line)) == ()


QUIET = [
    *("package-lock.json", "yarn.lock", "poetry.lock", "Cargo.lock", "go.sum", "pnpm-lock.yaml"),
    *("tests/test_login.py", "src/__tests__/login.js", "spec/fixtures/user.yml", "src/a.test.ts"),
    *("docs/setup.md", "README.md", "static/app.min.js", "conftest.py", "app.js.map"),
]


@pytest.mark.parametrize("path", QUIET)
def test_where_hashes_and_samples_live_names_alone_prove_nothing(path: str) -> None:
    assert rules(path, 'password = "tR7!kq92Lw"', f'"token": "{made(ALNUM, 40)}"') == []
    assert rules(path, "postgres://admin:tR7kq92Lw@db.internal/x") == []
    token = "".join(TOKENS["github_token"])
    assert rules(path, token) == [(1, "github_token")], "a token of a service is one anywhere"


def test_a_password_in_an_address_is_found() -> None:
    (found,) = secrets_in(patch("a.py", 'DB = "postgres://admin:tR7kq92Lw@db.internal/x"'))
    assert found.rule == "password_in_address"
    assert found.excerpt == 'DB = "postgres://admin:… (9 characters)'


def test_two_secrets_on_a_line_are_two_findings_and_neither_shows_the_other() -> None:
    one, two = ("".join(TOKENS[name]) for name in ("github_token", "npm_token"))
    found = secrets_in(patch("a.py", f"x = ['{one}', '{two}']"))
    assert [each.rule for each in found] == ["github_token", "npm_token"]
    for each in found:
        assert TOKENS["github_token"][1] not in each.excerpt
        assert TOKENS["npm_token"][1] not in each.excerpt


def test_one_place_is_one_finding_by_the_rule_that_knows_most() -> None:
    assert rules("a.py", f'token = "{"".join(TOKENS["gitlab_token"])}"') == [(1, "gitlab_token")]


def test_binary_files_are_not_searched(tmp_path: Path) -> None:
    secret = b"\0" + "".join(TOKENS["github_token"]).encode()
    assert secrets_in(diff(tmp_path, {}, {"blob": secret})) == ()


def test_a_patch_that_is_none_is_one_clear_error() -> None:
    with pytest.raises(ProposalMalformed, match="line 1 is not part of a plain git diff"):
        secrets_in(b"hello\n")


def test_there_is_an_end_to_what_is_told() -> None:
    lines = [f"'ghp_{made(ALNUM, 36, seed)}'" for seed in range(MOST_FINDINGS + 50)]
    assert len(secrets_in(patch("a.py", *lines))) == MOST_FINDINGS
    assert len(secrets_in(patch("a.py", " ".join(lines)))) == MOST_FINDINGS


ENDLESS = [
    *("ghp_", "github_pat_", "eyJ", "eyJaaaaaaaaaaaa.", "token", 'token="', "token='", "password="),
    *("://", "a://a:", "a://aaaaaa:bbbbbbb", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "sk-"),
    *(
        "sk-ant-",
        "pypi-",
        "xoxb-",
        "AKIA",
        "secret_",
        "passwd ",
        "key=A1b",
        "hooks.slack.com/services/T",
        "authorization: bearer ",
        "<password>a",
        ";pwd=",
        "define('password','",
        "12345678:AA",
        "discord.com/api/webhooks/1",
        "curl ",
        "curl -u a:",
        "curl -u ",
        "--token ",
        "--token",
        "--",
        "a-" * 20 + "token ",
        "&sig=",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
        "M" * 25 + ".",
        f"M{'a' * 24}.{'b' * 6}.",
        "AC" + "0a" * 16,
        'key="password" value="',
        ":_authToken=",
        "secret: a ",
        "token:&'<>",
        "a://a:a@",
        "a:$apr1$",
    ),
    *(
        "a",
        "A1",
        "/",
        '"',
        "password: str = ",
        "api-key-",
        "SG.",
        "AccountKey=",
        "\\n",
        "pwd:" + "x" * 199,
    ),
]


@pytest.mark.parametrize("unit", ENDLESS)
def test_made_up_text_costs_no_more_than_its_length(unit: str) -> None:
    """A megabyte each: a search that went back and forth would not come back."""
    secrets_in(patch("a.env", unit * (300_000 // len(unit))))
    secrets_in(patch("a.env", *[unit] * 20_000))


@settings(max_examples=200)
@given(st.sampled_from(sorted(TOKENS)), st.text(max_size=60), st.text(max_size=60), st.integers())
def test_whatever_stands_around_it_no_secret_is_ever_repeated(
    case: str, before: str, after: str, seed: int
) -> None:
    public, body = TOKENS[case]
    shuffled = "".join(random.Random(seed).sample(body, len(body)))
    for secret in (body, shuffled):
        line = f"{before} '{public}{secret}' {after}".replace("\n", " ")
        for found in secrets_in(patch("a.py", line)):
            assert secret[:12] not in found.excerpt
            assert secret[-12:] not in found.excerpt
            assert found.excerpt.isprintable()
            assert isinstance(found, SecretFinding)
            assert found.sentence.startswith("a.py:1 looks like a secret")


@settings(max_examples=100)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=5))
def test_any_added_text_is_searched_without_a_fault(lines: list[str]) -> None:
    clean = [line.replace("\n", " ").encode(errors="replace").decode() for line in lines]
    assert all(1 <= found.line <= len(clean) for found in secrets_in(patch("x.env", *clean)))


def test_a_text_that_is_kept_is_kept_without_secrets() -> None:
    token = "ghp_q8Zr2LmX7vKc4TnB9wYd1HsJ6pFgA3uE5oRi"
    said = without_secrets(f"Use {token} here\nand {token} there")
    assert said == "Use … here\nand … there"
    assert without_secrets("Nothing to hide") == "Nothing to hide"
