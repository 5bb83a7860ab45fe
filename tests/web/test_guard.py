"""Who is let in, and what every answer carries."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest

from agentcanvas.app.server import ServerInfo
from tests.web.office import FakeOffice, started

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1")]

RUNS = "/api/v1/runs"
ORDER = {"flow": "f", "flowText": "name: f", "request": "fix it"}


@pytest.fixture
def port(server: ServerInfo) -> int:
    port = urlsplit(server.url).port
    assert port
    return port


@pytest.fixture
async def stranger(server: ServerInfo) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody without a token."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as stranger:
        yield stranger


@pytest.fixture
async def browser(server: ServerInfo) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who followed the link."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as browser:
        assert (await browser.get(server.link)).status_code == 303
        yield browser


def code(answer: httpx.Response) -> object:
    return answer.json()["payload"]["error_code"]


@pytest.mark.parametrize("path", [RUNS, "/", "/api/v1/events", "/assets/index.js", "/nothing"])
async def test_without_the_token_nothing_is_given(stranger: httpx.AsyncClient, path: str) -> None:
    answer = await stranger.get(path)
    assert answer.status_code == 401
    assert code(answer) == "UNAUTHENTICATED"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "shown", ["Bearer wrong", "Bearer", "Basic {token}", "Bearer {token}x", "{token}"]
)
async def test_a_wrong_token_is_refused(
    stranger: httpx.AsyncClient, server: ServerInfo, shown: str
) -> None:
    headers = {"authorization": shown.format(token=server.token)}
    assert (await stranger.get(RUNS, headers=headers)).status_code == 401


async def test_the_link_gives_a_strict_cookie_and_takes_the_token_out_of_the_address(
    stranger: httpx.AsyncClient, server: ServerInfo, port: int
) -> None:
    answer = await stranger.get(f"/runs/r1?tab=board&token={server.token}&x=%26")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs/r1?tab=board&x=%26"
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"agentcanvas_{port}=")
    assert server.token not in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert (await stranger.get(RUNS)).status_code == 200


async def test_a_link_cannot_lead_to_another_host(
    stranger: httpx.AsyncClient, server: ServerInfo
) -> None:
    url = httpx.URL(server.url).copy_with(raw_path=f"//evil.test/?token={server.token}".encode())
    answer = await stranger.get(url)
    assert answer.headers["location"] == "/evil.test/"


async def test_an_old_link_says_what_to_do_to_a_person_in_a_browser(
    stranger: httpx.AsyncClient,
) -> None:
    answer = await stranger.get("/?token=old", headers={"accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "Open the one that <code>agentcanvas serve</code> prints" in answer.text
    assert "set-cookie" not in answer.headers
    assert its_style_is_let_in(answer)


def its_style_is_let_in(answer: httpx.Response) -> bool:
    _, _, rest = answer.text.partition("<style>")
    digest = hashlib.sha256(rest.partition("</style>")[0].encode()).digest()
    policy = answer.headers["content-security-policy"]
    return f"style-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


async def test_a_token_in_the_address_does_not_open_the_api(
    stranger: httpx.AsyncClient, server: ServerInfo
) -> None:
    assert (await stranger.get(f"{RUNS}?token={server.token}")).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.test", "evil.test:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.test", ""]
)
async def test_a_name_that_was_made_to_point_here_is_refused(
    client: httpx.AsyncClient, port: int, host: str
) -> None:
    answer = await client.get(RUNS, headers={"host": host.format(port=port)})
    assert answer.status_code == 403
    assert code(answer) == "PERMISSION_DENIED"


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
async def test_the_names_of_loopback_are_accepted(
    client: httpx.AsyncClient, port: int, host: str
) -> None:
    answer = await client.get(RUNS, headers={"host": host.format(port=port)})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.test", "http://127.0.0.1:1", "https://localhost:{port}", "null"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_another_page_can_neither_read_nor_change_anything(
    client: httpx.AsyncClient, office: FakeOffice, port: int, method: str, origin: str
) -> None:
    headers = {"origin": origin.format(port=port)}
    answer = await client.request(method, RUNS, headers=headers, json=ORDER)
    assert answer.status_code == 403
    assert not office.calls


async def test_a_browser_must_say_where_a_change_comes_from(
    browser: httpx.AsyncClient, server: ServerInfo, office: FakeOffice
) -> None:
    await office.write("r1", started())
    assert (await browser.get(RUNS)).status_code == 200
    assert (await browser.post(f"{RUNS}/r1/stop")).status_code == 403
    assert not office.calls
    answer = await browser.post(f"{RUNS}/r1/stop", headers={"origin": server.url})
    assert answer.status_code == 204


@pytest.mark.parametrize("path", ["/", RUNS, "/nothing.js", "/api/v1/nothing"])
async def test_every_answer_says_how_little_a_browser_may_do_with_it(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, path: str
) -> None:
    for answer in (await client.get(path), await stranger.get(path)):
        policy = answer.headers["content-security-policy"]
        if policy.startswith("default-src 'none'"):  # a page of one style and no script
            assert its_style_is_let_in(answer)
        else:
            assert "script-src 'self';" in policy
            assert "style-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
