"""One connection from inside: its requests are read, judged, carried out and told, one by one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from ssl import SSLContext

import anyio

from agentcanvas.errors import EgressRefused
from agentcanvas.sandbox.egress.addresses import Resolve, allowed_addresses
from agentcanvas.sandbox.egress.aims import Aim, Guide
from agentcanvas.sandbox.egress.bodies import END_OF_CHUNKS, PIECE, chunk, pieces
from agentcanvas.sandbox.egress.flow import Allowance, Meter, Stream, tunnel
from agentcanvas.sandbox.egress.heads import (
    END_OF_HEAD,
    AnswerHead,
    Chunked,
    RequestHead,
    parse_answer,
    parse_request,
    written,
)
from agentcanvas.sandbox.egress.limits import EgressLimits
from agentcanvas.sandbox.egress.log import Tell, Telling, defect_of
from agentcanvas.sandbox.egress.masking import Mask

_TROUBLE = (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError)
_INTERIM = range(100, 200)
_SWITCHING = 101
_LINGER_S = 2.0


@dataclass(frozen=True)
class Terms:
    """What all connections of one door have in common."""

    guide: Guide
    tell: Tell
    limits: EgressLimits
    allowance: Allowance
    resolve: Resolve
    tls: SSLContext


class Exchange:
    """Serves one connection."""

    def __init__(self, terms: Terms, client: Stream) -> None:
        self._terms = terms
        self._client = client
        self._served = 0
        self._upstream: tuple[tuple[str, int, bool], Stream] | None = None

    async def serve(self) -> None:
        """Answer requests until either side has had enough."""
        try:
            while await self._serve_one():
                pass
        except _TROUBLE:
            pass  # whoever is inside went away; what was moved is told
        finally:
            self._hang_up()

    async def _serve_one(self) -> bool:
        """Serve a request; gives whether another may follow on this connection."""
        told = Telling(self._terms.tell, self._terms.allowance)
        try:
            head = await self._read_head()
            if head is None:
                return False
            told.ask(head.method)
            self._terms.allowance.ask()
            aim = self._terms.guide.aim(head, told.name)
            told.allow()
            if head.method == "CONNECT":
                await self._tunnel(aim, told)
                return False
            return await self._carry_out(head, aim, told)
        except EgressRefused as refusal:
            told.refuse(refusal)
            if not told.has_begun:
                await self._answer(refusal)
            return False
        except _TROUBLE as trouble:
            broken = EgressRefused(f"The connection broke: {trouble!r}", status=502)
            told.refuse(broken)
            if not told.has_begun:
                await self._answer(broken)
            return False
        except Exception as error:  # noqa: BLE001 -- of this request alone, whatever it is
            defect = defect_of(error)
            told.refuse(defect)
            if not told.has_begun:
                await self._answer(defect)
            return False
        finally:
            told.close()

    async def _read_head(self) -> RequestHead | None:
        limits, is_first = self._terms.limits, not self._served
        self._served += 1
        try:
            with anyio.fail_after(limits.head_s if is_first else limits.keep_alive_s):
                raw = await self._client[0].readuntil(END_OF_HEAD)
        except asyncio.LimitOverrunError:
            raise EgressRefused("The head of the request is too long", status=431) from None
        except asyncio.IncompleteReadError as end:
            if end.partial:
                raise EgressRefused("The request breaks off", status=400) from None
            return None
        except TimeoutError:
            if not is_first:
                return None
            raise EgressRefused("The request did not come in time", status=408) from None
        return parse_request(raw.removesuffix(END_OF_HEAD))

    async def _connect(self, aim: Aim) -> Stream:
        addresses = await allowed_addresses(aim.host, aim.name, aim.port, self._terms.resolve)
        tls = {"ssl": self._terms.tls, "server_hostname": aim.name} if aim.is_secure else {}
        trouble: OSError | None = None
        for address in addresses:
            try:
                return await asyncio.open_connection(
                    address,
                    aim.port,
                    limit=self._terms.limits.head_bytes,
                    **tls,  # type: ignore[arg-type]  # the stubs want them one by one
                )
            except OSError as error:
                trouble = error
        raise EgressRefused(f"{aim.name} does not answer: {trouble}", status=502)

    async def _reach(self, aim: Aim) -> Stream:
        """Connect, or take the connection of the request before if it led to the same host."""
        where = (aim.name, aim.port, aim.is_secure)
        if self._upstream and self._upstream[0] == where and not self._upstream[1][0].at_eof():
            return self._upstream[1]
        self._hang_up()
        try:
            with anyio.fail_after(self._terms.limits.connect_s):
                stream = await self._connect(aim)
        except TimeoutError:
            raise EgressRefused(f"{aim.name} does not answer", status=504) from None
        self._upstream = (where, stream)
        return stream

    async def _tunnel(self, aim: Aim, told: Telling) -> None:
        upstream = await self._reach(aim)
        self._client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        told.begin(200)
        await tunnel(self._client, upstream, told.meter, self._terms.limits)

    async def _carry_out(self, head: RequestHead, aim: Aim, told: Telling) -> bool:
        upstream = await self._reach(aim)
        goes_on = False
        with anyio.CancelScope() as scope:
            told.meter.give_up(scope, self._terms.limits.idle_s)
            await self._pass_request(head, aim, upstream, told.meter)
            answer = await self._read_answer(upstream)
            told.begin(answer.status)
            goes_on = await self._pass_answer(head, answer, upstream, Mask(aim.key), told.meter)
            if answer.wants_close or answer.body(head.method) is None:
                self._hang_up()
        if scope.cancelled_caught:
            raise EgressRefused(f"{aim.name} has said nothing for too long", status=504)
        return goes_on

    async def _pass_request(
        self, head: RequestHead, aim: Aim, upstream: Stream, meter: Meter
    ) -> None:
        writer, length = upstream[1], head.body
        default = aim.port == (443 if aim.is_secure else 80)
        host = f"[{aim.name}]" if ":" in aim.name else aim.name
        headers = (
            ("host", host if default else f"{host}:{aim.port}"),
            *head.passed_on("host", *aim.without),
            *aim.headers,
            *((("transfer-encoding", "chunked"),) if length is Chunked.YES else ()),
        )
        raw = written(f"{head.method} {aim.path} HTTP/1.1", headers)
        meter.count_sent(len(raw))
        writer.write(raw)
        if head.first("expect").lower() == "100-continue":
            self._client[1].write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async for data in pieces(self._client[0], length):
            meter.count_sent(len(data))
            with suppress(ConnectionError):  # it may have answered and had enough
                writer.write(chunk(data) if length is Chunked.YES else data)
                await writer.drain()
        with suppress(ConnectionError):
            if length is Chunked.YES:
                writer.write(END_OF_CHUNKS)
            await writer.drain()

    async def _read_answer(self, upstream: Stream) -> AnswerHead:
        while True:
            try:
                raw = await upstream[0].readuntil(END_OF_HEAD)
            except (EOFError, asyncio.LimitOverrunError) as error:
                raise EgressRefused("The host gave no answer", status=502) from error
            answer = parse_answer(raw.removesuffix(END_OF_HEAD))
            if answer.status == _SWITCHING:
                raise EgressRefused("The host speaks something else than HTTP", status=502)
            if answer.status not in _INTERIM:
                return answer

    async def _pass_answer(
        self, head: RequestHead, answer: AnswerHead, upstream: Stream, mask: Mask, meter: Meter
    ) -> bool:
        writer = self._client[1]
        length = answer.body(head.method)
        chunked = not isinstance(length, int) and not head.is_old
        goes_on = not head.wants_close and not head.is_old
        headers = tuple((name, mask.text(value)) for name, value in answer.passed_on())
        headers += (("transfer-encoding", "chunked"),) if chunked else ()
        headers += () if goes_on else (("connection", "close"),)
        writer.write(written(f"HTTP/1.1 {answer.status} ", headers))

        async def hand_on(data: bytes) -> None:
            if data:
                meter.count_received(len(data))
                writer.write(chunk(data) if chunked else data)
                await writer.drain()

        async for data in pieces(upstream[0], length):
            await hand_on(mask.feed(data))
        await hand_on(mask.finish())
        if chunked:
            writer.write(END_OF_CHUNKS)
        await writer.drain()
        return goes_on

    async def _answer(self, refusal: EgressRefused) -> None:
        """Say why not, in a sentence, as far as anybody listens."""
        text = f"AgentCanvas: {refusal}.\n".encode()
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        headers.append(("content-length", str(len(text))))
        if refusal.status == 407:  # noqa: PLR2004 -- what HTTP calls it
            headers.append(("proxy-authenticate", 'Basic realm="agentcanvas"'))
        reader, writer = self._client
        writer.write(written(f"HTTP/1.1 {refusal.status} Refused", tuple(headers)) + text)
        with suppress(*_TROUBLE), anyio.move_on_after(_LINGER_S):
            writer.write_eof()
            # Closing on what was not read would take back what was just written.
            while await reader.read(PIECE):
                pass

    def _hang_up(self) -> None:
        if self._upstream:
            self._upstream[1][1].transport.abort()
            self._upstream = None
