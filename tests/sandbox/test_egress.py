"""The one way out of a closed network: what passes, what does not, and that no key is ever seen.

Everything is on loopback: the hosts are ours, named by a resolver of the test, and certified by an
authority of the test.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import EgressRefused, SandboxError, ValidationError
from agentcanvas.sandbox.confine import Bind, Command, Confinement, Network, View
from agentcanvas.sandbox.confinements.landlock import Landlock
from agentcanvas.sandbox.confinements.seatbelt import profile
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.egress.addresses import allowed_addresses, is_allowed
from agentcanvas.sandbox.egress.bodies import END_OF_CHUNKS, chunk, pieces
from agentcanvas.sandbox.egress.flow import Allowance, Meter, tunnel
from agentcanvas.sandbox.egress.heads import Chunked, parse_answer, parse_request
from agentcanvas.sandbox.egress.limits import EgressLimits
from agentcanvas.sandbox.egress.log import Request
from agentcanvas.sandbox.egress.masking import Mask
from agentcanvas.sandbox.egress.proxy import Egress, open_egress
from agentcanvas.sandbox.egress.rules import Endpoint, Host, Rules, host_rule, plain_name
from agentcanvas.sandbox.process import Limits, Line, run_confined
from tests.sandbox.upstream import NAME, Authority, Upstream, make_authority, running

pytestmark = pytest.mark.req("D11")

KEY = "sk-real-key-of-the-user-0123456789"
LOOPBACK = ("127.0.0.0/8",)
LIMITS = Limits(deadline_s=60)
PREFIX = Path(sys.base_prefix)
PYTHON = f"{PREFIX}/bin/python3"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Make certificates once."""
    return make_authority(tmp_path_factory.mktemp("authority"))


@dataclass
class Scene:
    """An open door before two servers, one of them with TLS."""

    door: Egress
    secure: Upstream
    plain: Upstream
    authority: Authority
    told: list[Request] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def say(self, raw: bytes) -> bytes:
        """Send bytes to the door and hear it out."""
        reader, writer = await self.connect()
        writer.write(raw)
        with anyio.fail_after(30):
            answer = await reader.read()
        writer.close()
        return answer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.door.listen())

    @property
    def pass_(self) -> str:
        shown = base64.b64encode(f"agent:{self.door.token}".encode()).decode()
        return f"Proxy-Authorization: Basic {shown}\r\n"

    async def get(self, url: str, more: str = "") -> bytes:
        head = f"GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n"
        return await self.say(head.encode())

    @property
    def reached(self) -> int:
        return self.secure.connections + self.plain.connections


@asynccontextmanager
async def scene(
    authority: Authority,
    rules: Callable[[Upstream, Upstream], Rules] | None = None,
    *,
    limits: EgressLimits | None = None,
    keys: dict[str, str] | None = None,
    answers: dict[str, list[str]] | None = None,
) -> AsyncIterator[Scene]:
    """Set everything up; names in ``answers`` resolve to these, all others to loopback."""
    told: list[Request] = []
    asked: list[str] = []

    async def resolve(name: str, port: int) -> list[str]:
        asked.append(name)
        return (answers or {}).get(name, ["127.0.0.1"])

    async with AsyncExitStack() as stack:
        secure = await stack.enter_async_context(running(authority.server()))
        plain = await stack.enter_async_context(running())
        door = await stack.enter_async_context(
            open_egress(
                (rules or all_rules)(secure, plain),
                told.append,
                keys={"MODEL_KEY": KEY} if keys is None else keys,
                limits=limits,
                resolve=resolve,
                tls=authority.client(),
            )
        )
        yield Scene(door, secure, plain, authority, told, asked)


def all_rules(secure: Upstream, plain: Upstream) -> Rules:
    return Rules(
        hosts=(
            Host(name=NAME, ports=(secure.port,), within=LOOPBACK),
            Host(name="plain.test", ports=(plain.port,), within=LOOPBACK),
            Host(name="*.rebound.test", ports=(plain.port,)),
            Host(name="rebound.test", ports=(plain.port,)),
        ),
        models=(
            Endpoint(
                name="m",
                url=f"https://{NAME}:{secure.port}/base",
                key_from="MODEL_KEY",
                header="x-api-key",
                scheme="",
                within=LOOPBACK,
            ),
        ),
        hub=Endpoint(name="hub", url=f"http://127.0.0.1:{plain.port}/api"),
    )


def body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# -- who may pass, and to where


async def test_a_request_without_the_token_goes_nowhere(authority: Authority) -> None:
    async with scene(authority) as s:
        url = f"http://plain.test:{s.plain.port}/"
        wrong = "Proxy-Authorization: Basic " + base64.b64encode(b"agent:wrong").decode() + "\r\n"
        for more in (
            "",
            wrong,
            "Proxy-Authorization: Basic !!!\r\n",
            "Authorization: Bearer x\r\n",
        ):
            assert status(await s.get(url, more)) == 407
        target = f"{NAME}:{s.secure.port}"
        assert status(await s.say(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())) == 407
        assert s.reached == 0
        assert s.asked == []
        assert [request.allowed for request in s.told] == [False] * 5


@pytest.mark.parametrize(
    "target",
    [
        "other.test:443",
        "plain.test:1",
        "sub.plain.test:{plain}",
        "plain.test.evil.test:{plain}",
        "xplain.test:{plain}",
        "127.0.0.1:{plain}",
        "[::1]:{plain}",
        "[::ffff:127.0.0.1]:{plain}",
        "localhost:{plain}",
    ],
)
async def test_only_named_hosts_and_ports_are_reached(authority: Authority, target: str) -> None:
    async with scene(authority) as s:
        where = target.format(plain=s.plain.port)
        asked = [
            f"CONNECT {where} HTTP/1.1\r\n{s.pass_}\r\n",
            f"GET http://{where}/ HTTP/1.1\r\n{s.pass_}\r\n",
        ]
        for raw in asked:
            assert status(await s.say(raw.encode())) == 403
        assert s.reached == 0
        assert s.asked == [], "not even its name is looked up"
        assert {request.reason[-44:] for request in s.told} == {
            " is not among the hosts that this agent may reach"[-44:]
        }


@pytest.mark.parametrize(
    "spelled", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1."]
)
async def test_an_address_in_disguise_is_no_name(authority: Authority, spelled: str) -> None:
    def rules(secure: Upstream, plain: Upstream) -> Rules:
        return Rules(hosts=(Host(name="*.1", ports=(plain.port,)), Host(name=spelled)))

    async with scene(authority, rules) as s:
        raw = f"CONNECT {spelled}:{s.plain.port} HTTP/1.1\r\n{s.pass_}\r\n"
        assert status(await s.say(raw.encode())) == 400
        assert s.asked == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "fec0::1",
        "::7f00:1",
        "::10.0.0.1",
        "::ffff:0:127.0.0.1",
        "5f00::1",
        "nonsense",
    ],
)
async def test_an_allowed_name_that_leads_inside_is_refused(
    authority: Authority, address: str
) -> None:
    async with scene(authority, answers={"rebound.test": [address]}) as s:
        answer = await s.get(f"http://rebound.test:{s.plain.port}/", s.pass_)
        assert status(answer) == 403
        assert b"not public" in answer
        assert s.reached == 0


def test_public_addresses_are_allowed_and_private_ones_when_named() -> None:
    anywhere, inside = Host(name="a.test"), Host(name="a.test", within=("10.0.0.0/8",))
    assert is_allowed("93.184.216.34", anywhere)
    assert is_allowed("2606:2800:220:1::1", anywhere)
    assert is_allowed("::ffff:93.184.216.34", anywhere)
    assert is_allowed("64:ff9b::93.184.216.34", anywhere)
    assert is_allowed("10.9.8.7", inside)
    assert not is_allowed("192.168.0.1", inside)


async def test_of_several_addresses_only_the_allowed_ones_are_tried() -> None:
    async def resolve(name: str, port: int) -> list[str]:
        return ["10.0.0.1", "93.184.216.34", "127.0.0.1"]

    found = await allowed_addresses(Host(name="a.test"), "a.test", 443, resolve)
    assert found == ["93.184.216.34"]


async def test_a_name_is_resolved_once_so_that_it_cannot_be_rebound(authority: Authority) -> None:
    answers = iter(["127.0.0.1", "127.0.0.99", "127.0.0.99"])

    async def rebinding(name: str, port: int) -> list[str]:
        return [next(answers)]

    async with running() as plain:
        rules, told = all_rules(Upstream(port=1), plain), list[Request]()
        async with open_egress(rules, told.append, resolve=rebinding) as door:
            s = Scene(door, Upstream(), plain, authority, told)
            assert status(await s.get(f"http://plain.test:{plain.port}/", s.pass_)) == 200
    assert plain.connections == 1
    assert next(answers) == "127.0.0.99", "nobody asked a second time"


async def test_a_name_that_nobody_knows_is_told(authority: Authority) -> None:
    async def nobody(name: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    rules, told = Rules(hosts=(Host(name="gone.test"),)), list[Request]()
    async with open_egress(rules, told.append, resolve=nobody) as door:
        s = Scene(door, Upstream(), Upstream(), authority, told)
        answer = await s.get("http://gone.test/", s.pass_)
    assert status(answer) == 502
    assert told[0].reason == "gone.test could not be found: Name or service not known"


# -- tunnels and plain requests


async def test_a_tunnel_carries_tls_from_end_to_end(authority: Authority) -> None:
    async with scene(authority) as s:
        reader, writer = await s.connect()
        writer.write(f"CONNECT {NAME}:{s.secure.port} HTTP/1.1\r\n{s.pass_}\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        await writer.start_tls(authority.client(), server_hostname=NAME)
        writer.write(b"GET /x HTTP/1.1\r\nhost: models.test\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await s.secure.hung_up.wait()
        while not s.told:
            await anyio.lowlevel.checkpoint()
        request = s.told[0]
    assert s.secure.heard[0].line == "GET /x HTTP/1.1"
    assert (request.method, request.host, request.allowed) == ("CONNECT", NAME, True)
    assert request.port == s.secure.port
    assert request.sent > 100
    assert request.received > 500


async def test_a_plain_request_is_passed_on_without_what_was_for_the_proxy(
    authority: Authority,
) -> None:
    async with scene(authority) as s:
        raw = (
            f"POST http://plain.test:{s.plain.port}/p?q=1 HTTP/1.1\r\nHost: evil\r\n{s.pass_}"
            "Connection: close, X-Secret\r\nX-Secret: 1\r\nX-Kept: yes\r\nUpgrade: websocket\r\n"
            "Transfer-Encoding: chunked\r\nTE: trailers\r\n\r\n"
            "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n"
        )
        answer = await s.say(raw.encode())
        assert status(answer) == 200
        heard = s.plain.heard[0]
        assert heard.line == "POST /p?q=1 HTTP/1.1"
        assert heard.body == b"abcde"
        assert heard.headers == {
            "host": f"plain.test:{s.plain.port}",
            "x-kept": "yes",
            "transfer-encoding": "chunked",
        }
        (request,) = s.told
        assert (request.method, request.host, request.status) == ("POST", "plain.test", 200)


async def test_each_request_on_a_connection_is_judged_on_its_own(authority: Authority) -> None:
    async with scene(authority) as s:
        fine = f"GET http://plain.test:{s.plain.port}/a HTTP/1.1\r\n{s.pass_}\r\n"
        bad = f"GET http://other.test:{s.plain.port}/b HTTP/1.1\r\n{s.pass_}\r\n"
        answer = await s.say((fine + fine + bad + fine).encode())
        assert answer.count(b"HTTP/1.1 200") == 2
        assert answer.count(b"HTTP/1.1 403") == 1
        assert [h.line for h in s.plain.heard] == ["GET /a HTTP/1.1"] * 2
        assert s.plain.connections == 1, "the second went over the connection of the first"


async def test_an_answer_that_ends_with_its_connection_is_whole(authority: Authority) -> None:
    async with scene(authority) as s:
        url = f"http://plain.test:{s.plain.port}/until-the-end"
        answer = await s.get(url, s.pass_)
        assert body(answer) == b"9\r\nall of it\r\n0\r\n\r\n"
        old = await s.say(f"GET {url} HTTP/1.0\r\n{s.pass_}\r\n".encode())
        assert body(old) == b"all of it"


async def test_an_answer_that_is_not_http_is_not_passed_on(authority: Authority) -> None:
    async with scene(authority) as s:
        answer = await s.get(f"http://plain.test:{s.plain.port}/nonsense", s.pass_)
        assert status(answer) == 502
        assert s.told[0].reason == "The answer is not HTTP/1"


# -- models and the hub


async def test_the_proxy_puts_the_key_where_the_token_was(authority: Authority) -> None:
    async with scene(authority) as s:
        for shown in (
            f"x-api-key: {s.door.token}\r\n",
            f"Authorization: Bearer {s.door.token}\r\n",
            f"x-goog-api-key: {s.door.token}\r\n",
        ):
            answer = await s.get("/model/m/v1/messages?beta=1", shown + "Accept-Encoding: gzip\r\n")
            assert status(answer) == 200
            heard = s.secure.heard[-1]
            assert heard.line == "GET /base/v1/messages?beta=1 HTTP/1.1"
            assert heard.headers["x-api-key"] == KEY
            assert heard.headers["host"] == f"{NAME}:{s.secure.port}"
            assert not {"authorization", "x-goog-api-key", "accept-encoding"} & set(heard.headers)
        await s.get(f"/model/m/v1?key={s.door.token}&a=b")
        assert s.secure.heard[-1].line == "GET /base/v1?a=b HTTP/1.1"
        assert {(r.host, r.allowed, r.status) for r in s.told} == {(NAME, True, 200)}


async def test_an_answer_that_repeats_the_key_shows_stars(authority: Authority) -> None:
    async with scene(authority) as s:
        answer = await s.get("/model/m/v1", f"x-api-key: {s.door.token}\r\n")
        assert KEY.encode() not in answer
        assert json.loads(body(answer))["headers"]["x-api-key"] == "*" * len(KEY)
        assert f"x-shown: {'*' * len(KEY)}".encode() in answer


async def test_a_model_is_not_for_whoever_lacks_the_token(authority: Authority) -> None:
    async with scene(authority) as s:
        for more in ("", "x-api-key: guess\r\n", f"Authorization: Bearer {KEY}\r\n", s.pass_):
            assert status(await s.get("/model/m/v1", more)) == 401
        assert s.reached == 0


@pytest.mark.parametrize(
    "path", ["/model/m/../x", "/model/m/%2e%2e/x", "/model/m/a%2f..%2f..", "/model/m/a\\..\\x"]
)
async def test_a_path_does_not_lead_out_of_the_models_own(authority: Authority, path: str) -> None:
    async with scene(authority) as s:
        assert status(await s.get(path, f"x-api-key: {s.door.token}\r\n")) == 400
        assert s.reached == 0


@pytest.mark.parametrize("path", ["/model/m", "/model/m/v1", "/hub", "/hub/x", "/"])
async def test_no_tunnel_leads_to_a_model_or_the_hub(authority: Authority, path: str) -> None:
    async with scene(authority) as s:
        shown = f"x-api-key: {s.door.token}\r\n{s.pass_}"
        assert status(await s.say(f"CONNECT {path} HTTP/1.1\r\n{shown}\r\n".encode())) == 400
        assert s.reached == 0
        assert [request.allowed for request in s.told] == [False]


@pytest.mark.parametrize("path", ["/", "/model", "/model/", "/model/other/v1", "/nothing", "/hubx"])
async def test_a_path_that_stands_for_nothing_is_not_found(authority: Authority, path: str) -> None:
    async with scene(authority) as s:
        assert status(await s.get(path, f"x-api-key: {s.door.token}\r\n")) == 404
        assert s.reached == 0


async def test_a_key_that_the_host_lacks_is_named(authority: Authority) -> None:
    async with scene(authority, keys={}) as s:
        answer = await s.get("/model/m/v1", f"x-api-key: {s.door.token}\r\n")
        assert status(answer) == 503
        assert b"MODEL_KEY is not set on the host" in answer


async def test_a_model_with_a_strange_certificate_never_gets_the_key(
    authority: Authority, tmp_path: Path
) -> None:
    other = make_authority(tmp_path)

    async def resolve(name: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with running(other.server()) as impostor:
        rules, told = all_rules(impostor, Upstream()), list[Request]()
        async with open_egress(
            rules, told.append, keys={"MODEL_KEY": KEY}, resolve=resolve, tls=authority.client()
        ) as door:
            s = Scene(door, impostor, Upstream(), authority, told)
            answer = await s.get("/model/m/v1", f"x-api-key: {door.token}\r\n")
    assert status(answer) == 502
    assert impostor.heard == []


async def test_a_stream_arrives_piece_by_piece(authority: Authority) -> None:
    async with scene(authority) as s:
        reader, writer = await s.connect()
        writer.write(f"GET /model/m/stream HTTP/1.1\r\nx-api-key: {s.door.token}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(8) == b"3\r\none\r\n"
        s.secure.go_on.set()
        assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"
        writer.close()


async def test_the_hub_is_reached_with_the_agents_own_token(authority: Authority) -> None:
    async with scene(authority) as s:
        answer = await s.get("/hub/v1/inbox?since=0", "Authorization: Bearer of-the-agent\r\n")
        assert status(answer) == 200
        heard = s.plain.heard[0]
        assert heard.line == "GET /api/v1/inbox?since=0 HTTP/1.1"
        assert heard.headers["authorization"] == "Bearer of-the-agent"


# -- bounds


def bounded(**lower: float) -> EgressLimits:
    return EgressLimits(**lower)  # type: ignore[arg-type]  # ints and floats alike


async def test_a_head_that_is_too_long_is_refused(authority: Authority) -> None:
    async with scene(authority, limits=bounded(head_bytes=2000)) as s:
        assert status(await s.say(b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 2000)) == 431
        assert status(await s.say(b"G" * 100_000)) == 431


async def test_a_head_that_drips_is_cut_off(authority: Authority) -> None:
    async with scene(authority, limits=bounded(head_s=0.2)) as s:
        reader, writer = await s.connect()
        with anyio.fail_after(30):
            try:
                while not reader.at_eof() and not s.told:
                    writer.write(b"x")
                    await writer.drain()
                    await anyio.sleep(0.01)
            except ConnectionError:
                pass
        assert s.told[0].status == 408
        writer.close()


async def test_no_more_connections_than_allowed_are_served(authority: Authority) -> None:
    async with scene(authority, limits=bounded(connections=3)) as s:
        held = [await s.connect() for _ in range(3)]
        for _, writer in held:
            writer.write(b"GET ")
        assert await s.say(b"") == b""
        assert s.told[0].reason == "There are too many connections at one time"
        for _, writer in held:
            writer.close()


async def test_a_turn_cannot_send_more_than_it_may(authority: Authority) -> None:
    async with scene(authority, limits=bounded(sent_bytes=10_000)) as s:
        raw = (
            f"POST http://plain.test:{s.plain.port}/ HTTP/1.1\r\n{s.pass_}"
            "Content-Length: 1000000\r\n\r\n"
        )
        answer = await s.say(raw.encode() + b"x" * 1_000_000)
        assert status(answer) == 413
        assert s.plain.heard == []
        assert status(await s.get(f"http://plain.test:{s.plain.port}/", s.pass_)) == 413


async def test_a_turn_cannot_make_more_requests_than_it_may(authority: Authority) -> None:
    async with scene(authority, limits=bounded(requests=2)) as s:
        url = f"http://plain.test:{s.plain.port}/"
        assert [status(await s.get(url, s.pass_)) for _ in range(3)] == [200, 200, 429]


async def test_a_host_that_says_nothing_is_given_up(authority: Authority) -> None:
    async with scene(authority, limits=bounded(idle_s=0.2)) as s:
        assert status(await s.get(f"http://plain.test:{s.plain.port}/hang", s.pass_)) == 504
        with anyio.fail_after(30):
            await s.plain.hung_up.wait()


async def test_a_tunnel_in_which_one_side_has_ended_does_not_stay(authority: Authority) -> None:
    async with scene(authority, limits=bounded(half_open_s=0.2)) as s:
        reader, writer = await s.connect()
        writer.write(f"CONNECT plain.test:{s.plain.port} HTTP/1.1\r\n{s.pass_}\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET /stream HTTP/1.1\r\n\r\n")  # goes on only when it is told to
        await reader.readuntil(b"one\r\n")
        writer.write_eof()
        with anyio.fail_after(30):
            assert await reader.read() == b""
        writer.close()


async def test_one_side_of_a_tunnel_that_cannot_half_close_is_not_asked_to(
    authority: Authority,
) -> None:
    limits = bounded(half_open_s=0.2)
    async with running(authority.server()) as secure:
        ours, theirs = socket.socketpair()
        inside = await asyncio.open_connection(sock=ours)
        outside = await asyncio.open_connection(
            "127.0.0.1", secure.port, ssl=authority.client(), server_hostname=NAME
        )
        theirs.shutdown(socket.SHUT_WR)
        with anyio.fail_after(30):
            await tunnel(inside, outside, Meter(Allowance(limits)), limits)
        outside[1].close()
        inside[1].close()
        theirs.close()


async def test_a_door_out_of_descriptors_opens_again(authority: Authority) -> None:
    async with scene(authority) as s:
        where = ("127.0.0.1", s.door.listen())
        client = socket.socket()
        client.setblocking(False)  # noqa: FBT003 -- its signature
        with no_more_descriptors():
            await asyncio.get_running_loop().sock_connect(client, where)
            with anyio.fail_after(30):
                while not s.told:
                    await anyio.lowlevel.checkpoint()
        assert "Too many open files" in s.told[0].reason
        reader, writer = await asyncio.open_connection(sock=client)
        writer.write(b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n")
        with anyio.fail_after(30):
            assert status(await reader.read()) == 404
        writer.close()
        assert [request.status for request in s.told] == [0, 404], "it is said once"


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Let nothing more be opened in this process, until the block ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as held:
        highest = max(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 -- names only
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with suppress(OSError):
            while True:
                held.callback(os.close, os.dup(0))
        yield


async def test_closing_the_door_ends_everything(authority: Authority) -> None:
    async with scene(authority) as s:
        port = s.door.listen()
        reader, writer = await s.connect()
        writer.write(f"CONNECT plain.test:{s.plain.port} HTTP/1.1\r\n{s.pass_}\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
    with anyio.fail_after(30):
        assert await reader.read() == b""
        await s.plain.hung_up.wait()
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_without_need_the_machine_has_no_open_port(authority: Authority) -> None:
    async with scene(authority) as s:
        assert s.door._port == 0
        assert s.door.listen() == s.door.listen()


# -- hostile input


REQUEST_LIKE = st.lists(
    st.sampled_from(
        [
            *(b"GET", b"CONNECT", b" ", b"/", b"http://a.test/", b"a.test:443", b"HTTP/1.1"),
            *(b"\r\n", b"\n", b"\r", b"\0", b":", b"host", b"Content-Length", b"HTTP/1.0"),
            *(
                b"Proxy-Authorization: Basic ",
                b"Transfer-Encoding",
                b"chunked",
                b"-1",
                b"5",
                b"9" * 20,
                b"\t",
                b"\xff",
                b"x" * 300,
            ),
        ]
    ),
    max_size=40,
).map(b"".join)


@given(st.binary(max_size=400) | REQUEST_LIKE)
def test_no_bytes_are_more_than_refused(raw: bytes) -> None:
    for parse in (parse_request, parse_answer):
        try:
            head = parse(raw)
        except EgressRefused:
            continue
        text = "".join(name + value for name, value in head.headers)
        assert not set(text) & {"\r", "\n", "\0"}


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 5, 5",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        " Folded: yes",
        "No colon",
        "Bad\tname: x",
        "Host: a\r\nHost: b",
        "X: a\nY: b",
        "X: a\rY: b",
        "X: \0",
    ],
)
def test_a_head_that_two_readers_could_read_differently_is_refused(head: str) -> None:
    with pytest.raises(EgressRefused):
        parse_request(f"POST http://a.test/ HTTP/1.1\r\n{head}".encode())


@pytest.mark.parametrize("line", ["TRACE / HTTP/1.1", "PRI * HTTP/2.0", "GET  / HTTP/1.1", "GET /"])
def test_a_first_line_of_another_kind_is_refused(line: str) -> None:
    with pytest.raises(EgressRefused):
        parse_request(line.encode())


@pytest.mark.parametrize("shown", [b"\xff", b"\xc3\xa9", b"YQ==\xff", b"=", b"", b"\xff" * 9000])
async def test_a_token_of_any_bytes_is_no_token_and_leaves_the_door_open(
    authority: Authority, shown: bytes
) -> None:
    async with scene(authority) as s:
        head = f"CONNECT {NAME}:{s.secure.port} HTTP/1.1\r\nProxy-Authorization: Basic ".encode()
        assert status(await s.say(head + shown + b"\r\n\r\n")) == 407
        assert status(await s.get(f"http://plain.test:{s.plain.port}/", s.pass_)) == 200


async def test_a_defect_ends_its_connection_alone_and_is_told(authority: Authority) -> None:
    async def broken(name: str, port: int) -> list[str]:
        if name == "a.test":
            raise RuntimeError("of which the key might be a part")
        return ["10.0.0.1"]

    rules, told = Rules(hosts=(Host(name="a.test"), Host(name="b.test"))), list[Request]()
    async with open_egress(rules, told.append, resolve=broken) as door:
        s = Scene(door, Upstream(), Upstream(), authority, told)
        answer = await s.get("http://a.test/", s.pass_)
        assert status(answer) == 500
        assert status(await s.get("http://b.test/", s.pass_)) == 403
    assert [(request.host, request.status) for request in told] == [
        ("a.test", 500),
        ("b.test", 403),
    ]
    assert "RuntimeError at test_egress.py:" in told[0].reason
    assert "key" not in told[0].reason + answer.decode()


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=200) | REQUEST_LIKE, min_size=1, max_size=5))
def test_nothing_that_is_said_breaks_the_door(said: list[bytes]) -> None:
    async def say_it() -> None:
        rules, told = Rules(hosts=(Host(name="a.test", ports=(443,)),)), list[Request]()

        async def resolve(name: str, port: int) -> list[str]:
            return ["10.0.0.1"]

        async with open_egress(rules, told.append, resolve=resolve) as door:
            for raw in said:
                reader, writer = await asyncio.open_connection("127.0.0.1", door.listen())
                writer.write(raw)
                writer.write_eof()
                with anyio.fail_after(30):
                    answer = await reader.read()
                assert not answer or status(answer) >= 400
                writer.close()
        assert not any(request.status == 200 for request in told)

    anyio.run(say_it)


async def read_all(data: bytes, length: int | Chunked | None) -> bytes:
    reader = asyncio.StreamReader(limit=1000)
    reader.feed_data(data)
    reader.feed_eof()
    return b"".join([piece async for piece in pieces(reader, length)])


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=10))
def test_chunks_come_out_as_they_went_in(parts: list[bytes]) -> None:
    raw = b"".join(map(chunk, parts)) + END_OF_CHUNKS
    assert anyio.run(read_all, raw, Chunked.YES) == b"".join(parts)


@given(st.binary(max_size=300) | st.text("0123456789abcdef\r\n;:x", max_size=100).map(str.encode))
def test_broken_chunks_are_refused(raw: bytes) -> None:
    try:
        anyio.run(read_all, raw, Chunked.YES)
    except (EgressRefused, EOFError):
        return
    assert raw.lstrip(b"0123456789abcdef").startswith((b"\r\n", b";"))


@given(st.text("skxy", max_size=60), st.text("skxy", min_size=1, max_size=6), st.data())
def test_no_cut_of_a_stream_lets_the_key_through(
    text: str, secret: str, data: st.DataObject
) -> None:
    text = text + secret + text
    mask, left, out = Mask(secret), text.encode(), b""
    while left:
        cut = data.draw(st.integers(1, len(left)))
        out += mask.feed(left[:cut])
        left = left[cut:]
    out += mask.finish()
    assert len(out) == len(text)
    assert secret.encode() not in out


@given(st.text(max_size=40))
def test_a_name_has_one_spelling_or_none(name: str) -> None:
    try:
        plain = plain_name(name)
    except ValidationError:
        return
    assert plain == plain_name(plain)
    assert plain.isascii()
    assert plain == plain.lower()


@pytest.mark.parametrize(
    ("text", "covered", "not_covered"),
    [
        ("Example.ORG.", ("example.org", 443), ("sub.example.org", 443)),
        ("*.example.org", ("a.b.example.org", 80), ("example.org", 443)),
        ("*.example.org", ("x.example.org", 443), ("xexample.org", 443)),
        ("example.org:8443", ("example.org", 8443), ("example.org", 443)),
        ("bücher.example", ("xn--bcher-kva.example", 443), ("bucher.example", 443)),
        ("[::1]:8080", ("::1", 8080), ("::1", 80)),
        ("10.0.0.1", ("10.0.0.1", 80), ("10.0.0.2", 80)),
    ],
)
def test_a_rule_covers_what_it_says(
    text: str, covered: tuple[str, int], not_covered: tuple[str, int]
) -> None:
    rule = host_rule(text)
    assert rule.covers(*covered)
    assert not rule.covers(*not_covered)


def test_a_rule_can_name_a_private_network_and_localhost_names_its_own() -> None:
    assert host_rule("git.corp.example:443@10.0.0.0/8, 192.168.0.0/16").within == (
        "10.0.0.0/8",
        "192.168.0.0/16",
    )
    assert is_allowed("127.0.0.1", host_rule("localhost:8080"))
    assert not is_allowed("127.0.0.1", host_rule("localhost.example:8080"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "*.", "*.org", "a b", "http://a.test", "a.test/path", "a.test:0", "127.1"),
        *("a.test:99999", "a.test@nowhere", "*.10.0.0.1", "a..test", "-a.test", "a@b@c"),
        "x" * 300 + ".test",
    ],
)
def test_a_rule_that_means_nothing_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match=r"network\.hosts"):
        host_rule(text)


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint(name="m", url="ftp://a.test"),
        Endpoint(name="m", url="https://user@a.test"),
        Endpoint(name="m", url="https://"),
        Endpoint(name="a/b", url="https://a.test"),
        Endpoint(name="m", url="http://a.test", key_from="KEY"),
    ],
)
def test_an_endpoint_that_could_not_be_served_is_refused(endpoint: Endpoint) -> None:
    with pytest.raises(ValidationError):
        Rules(models=(endpoint,))


# -- from inside a confinement

INSIDE = """
import json, os, ssl, sys, urllib.error, urllib.request, http.client, pathlib
asked, results = json.loads(sys.argv[1]), {}
for name, (url, headers) in asked.items():
    try:
        request = urllib.request.Request(url, headers=headers)
        results[name] = urllib.request.urlopen(request, timeout=20).read().decode()
    except urllib.error.HTTPError as error:
        results[name] = f"{error.code} " + error.read().decode()
    except Exception as error:
        results[name] = repr(error)
seen = [json.dumps(dict(os.environ)), json.dumps(results)]
for root in {"HOME": os.environ["HOME"], "TMPDIR": os.environ["TMPDIR"], "cwd": ".",
             "self": "/proc/self", "one": "/proc/1"}.values():
    for path in pathlib.Path(root).glob("*"):
        try:
            with path.open("rb") as file:  # the map of the memory would never end
                seen.append(file.read(100_000).decode("latin-1"))
        except (OSError, ValueError):
            pass
results["seen"] = "".join(seen)
print(json.dumps(results))
"""


@pytest.fixture
def view(bare_view: View) -> View:
    """Show an empty tree, and this Python."""
    return replace(bare_view, read_only=(Bind(PREFIX, PREFIX),))


async def from_inside(
    confinement: Confinement, view: View, asked: dict[str, tuple[str, dict[str, str]]]
) -> dict[str, str]:
    command = Command((PYTHON, "-I", "-c", INSIDE, json.dumps(asked)))
    ending, lines = await run_confined(confinement, view, command, LIMITS)
    assert ending.exit_code == 0, lines
    return dict(json.loads("".join(line.text for line in lines)))


def text_of(lines: tuple[Line, ...]) -> str:
    return "\n".join(line.text for line in lines)


async def test_an_agent_reaches_its_model_and_never_sees_the_key(
    confinement: Confinement,
    view: View,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    async with scene(authority) as s:
        closed = replace(view, network=Network.MODEL, door=s.door)
        url = s.door.model_url(confinement.places(closed), "m")
        shown = {"x-api-key": s.door.token}
        results = await from_inside(
            confinement,
            closed,
            {
                "model": (f"{url}/v1/messages", shown),
                "directly": (f"https://127.0.0.1:{s.secure.port}/", {}),
                "elsewhere": (f"http://127.0.0.1:{s.plain.port}/", {}),
                "unnamed": ("http://other.test/", {}),
            },
        )
    assert s.secure.heard[0].headers["x-api-key"] == KEY, "it was used"
    assert json.loads(results["model"])["line"] == "GET /base/v1/messages HTTP/1.1"
    assert KEY not in json.dumps(results)
    assert "Error" in results["directly"]
    assert "Error" in results["elsewhere"]
    assert results["unnamed"].startswith("403 AgentCanvas: other.test:80 is not among the hosts")
    assert len(s.secure.heard) == 1
    assert s.plain.heard == []
    assert [(r.host, r.allowed) for r in s.told] == [(NAME, True), ("other.test", False)]


async def test_programs_reach_named_hosts_by_the_usual_variables(
    confinement: Confinement,
    view: View,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    async with scene(authority) as s:
        named = replace(view, network=Network.HOSTS, door=s.door)
        results = await from_inside(
            confinement,
            named,
            {
                "secure": (f"https://{NAME}:{s.secure.port}/s", {}),
                "plain": (f"http://plain.test:{s.plain.port}/p", {}),
                "unnamed": (f"https://other.test:{s.secure.port}/", {}),
            },
        )
    assert json.loads(results["secure"])["line"] == "GET /s HTTP/1.1"
    assert json.loads(results["plain"])["line"] == "GET /p HTTP/1.1"
    assert "403" in results["unnamed"]


async def test_several_processes_share_one_door(
    confinement: Confinement, view: View, authority: Authority
) -> None:
    async with scene(authority) as s:
        named = replace(view, network=Network.HOSTS, door=s.door)
        asked: dict[str, tuple[str, dict[str, str]]] = {
            "plain": (f"http://plain.test:{s.plain.port}/p", {})
        }
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(from_inside, confinement, named, asked)
        assert len(s.plain.heard) == 3


async def test_opening_the_door_leaves_nothing_inside(
    bubblewrap: Confinement, view: View, authority: Authority
) -> None:
    async with scene(authority) as s:
        closed = replace(view, network=Network.MODEL, door=s.door)
        processes = "for p in /proc/[0-9]*; do read name < $p/comm; echo $name; done; "
        command = Command(("/bin/sh", "-c", processes + "ls /proc/self/fd; exit 5"))
        ending, lines = await run_confined(bubblewrap, closed, command, LIMITS)
        assert s.door._port == 0, "and nothing on the machine's own loopback"
    # Processes, then descriptors, the last of them that of the listing.
    assert [line.text for line in lines] == ["bwrap", "sh", "0", "1", "2", "3"]
    assert ending.exit_code == 5


async def test_a_program_that_is_not_there_is_named_behind_a_door_too(
    confinement: Confinement, view: View, authority: Authority
) -> None:
    async with scene(authority) as s:
        closed = replace(view, network=Network.MODEL, door=s.door)
        ending, lines = await run_confined(confinement, closed, Command(("no-such",)), LIMITS)
    assert "no-such" in text_of(lines)
    assert ending.exit_code != 0


async def test_without_a_door_these_networks_are_refused(
    confinement: Confinement, view: View
) -> None:
    for network in (Network.MODEL, Network.HOSTS):
        with pytest.raises(SandboxError, match="egress proxy"):
            await run_confined(confinement, replace(view, network=network), Command(("true",)))


async def test_a_kernel_that_cannot_guard_ports_refuses_with_the_reason(
    landlock: Confinement, view: View, authority: Authority
) -> None:
    async with scene(authority) as s:
        closed = replace(view, network=Network.MODEL, door=s.door)
        with pytest.raises(SandboxError, match="needs Landlock ABI 4") as refusal:
            await run_confined(Landlock(3), closed, Command(("true",)))
        assert "bubblewrap" in str(refusal.value)
        assert s.door._port == 0


async def test_what_the_user_has_as_proxy_is_passed_on_only_where_it_helps(
    confinement: Confinement, view: View, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://user:secret@company:3128")

    async def variables(seen: View) -> dict[str, str]:
        _, lines = await run_confined(confinement, seen, Command(("/usr/bin/env",)), LIMITS)
        found = dict(line.text.split("=", 1) for line in lines)
        return {name: value for name, value in found.items() if "proxy" in name.lower()}

    assert await variables(view) == {}
    assert set(await variables(replace(view, network=Network.OPEN))) == {
        "HTTPS_PROXY",
        "http_proxy",
    }
    async with scene(authority) as s:
        ours = await variables(replace(view, network=Network.MODEL, door=s.door))
        assert s.door.token in ours["HTTPS_PROXY"]
    assert "secret" not in json.dumps(ours)
    assert ours["no_proxy"] == "127.0.0.1,localhost"


async def test_unconfined_and_mac_are_shown_the_door_too(view: View, authority: Authority) -> None:
    async with scene(authority) as s:
        closed = replace(view, network=Network.MODEL, door=s.door)
        assert Unconfined().places(closed).proxy == f"http://127.0.0.1:{s.door.listen()}"
        assert f'(remote ip "localhost:{s.door.listen()}")' in profile(closed)
        assert "(allow network*)" not in profile(closed)
