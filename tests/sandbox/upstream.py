"""A web server on loopback, with a certificate of our own authority: what tests reach for."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "models.test"


@dataclass(frozen=True)
class Authority:
    """The files of a certificate authority and of one server's certificate."""

    ca: Path
    chain: Path

    def client(self) -> ssl.SSLContext:
        """Trust this authority alone."""
        return ssl.create_default_context(cafile=str(self.ca))

    def server(self) -> ssl.SSLContext:
        """Be the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        return context


def make_authority(folder: Path) -> Authority:
    """Make the keys; a few milliseconds."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
    ca = _certificate(issuer, issuer, ca_key.public_key(), ca_key, is_ca=True)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    leaf = _certificate(subject, issuer, key.public_key(), ca_key, is_ca=False)
    found = Authority(folder / "ca.pem", folder / "chain.pem")
    pem = serialization.Encoding.PEM
    found.ca.write_bytes(ca.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    found.chain.write_bytes(leaf.public_bytes(pem) + secret)
    return found


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if is_ca:
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    else:
        names = x509.SubjectAlternativeName([x509.DNSName(NAME)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


@dataclass(frozen=True)
class Heard:
    """A request as the server got it."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Upstream:
    """A running server; answers with what it was asked, unless the path says otherwise."""

    port: int = 0
    connections: int = 0
    heard: list[Heard] = field(default_factory=list)
    go_on: anyio.Event = field(default_factory=anyio.Event)
    """``/stream`` waits for it between its pieces."""
    hung_up: anyio.Event = field(default_factory=anyio.Event)
    """``/hang`` sets it when the other side gives up."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, EOFError):
            pass
        finally:
            self.hung_up.set()
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.strip().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (one.partition(":") for one in rest)}
        heard = Heard(line, headers, await _body(reader, headers))
        self.heard.append(heard)
        path = line.split()[1].partition("?")[0]
        if path.endswith("/hang"):
            await reader.read()
            return False
        if path.endswith("/stream"):
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
            await self.go_on.wait()
            writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
            return True
        if path.endswith("/until-the-end"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            return False
        if path.endswith("/nonsense"):
            writer.write(b"\x00\xff not http\r\n\r\n")
            return False
        told = {"line": line, "headers": headers, "body": heard.body.decode("latin-1")}
        answer = json.dumps(told).encode()
        shown = headers.get("x-api-key", "")
        writer.write(
            f"HTTP/1.1 200 OK\r\nx-shown: {shown}\r\ncontent-length: {len(answer)}\r\n\r\n".encode()
        )
        writer.write(answer)
        return True


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return body
    return await reader.readexactly(int(headers.get("content-length", "0")))


@asynccontextmanager
async def running(context: ssl.SSLContext | None = None) -> AsyncIterator[Upstream]:
    """Serve on a free port of loopback."""
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, ssl=context)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()
