"""The workspace's one server: it listens on loopback, says where, and can be found (D1).

``serve_beside`` runs it on the event loop that the office works on; ``find_server`` is how another
process of the same user finds it. What it answers is ``web``'s matter.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx
import msgspec

from agentcanvas import _version
from agentcanvas.app.browser_key import browser_key
from agentcanvas.app.hub import OpenHub
from agentcanvas.app.quiet_server import QuietServer
from agentcanvas.app.workspace import FOLDER
from agentcanvas.clock import Clock
from agentcanvas.errors import ResourceError, StoreBusy
from agentcanvas.protocol.limits import Limits
from agentcanvas.runs.office import Office
from agentcanvas.store import OwnerLock, Store
from agentcanvas.web import app as web
from agentcanvas.web.planning import Planner
from agentcanvas.web.sockets import socket_protocol
from agentcanvas.web.use import Use
from agentcanvas.web.views import ServerView

__all__ = [
    "PORT",
    "UI",
    "ServerInfo",
    "Use",
    "find_server",
    "find_server_in",
    "info_path",
    "info_path_in",
    "lock_path",
    "new_token",
    "read_info",
    "serve_app",
    "serve_beside",
]

PORT = 7717
UI = Path(web.__file__).parent / "_ui"
"""Where the build puts the interface."""

_LOCK = "server.lock"
_LOOPBACK = "127.0.0.1"
_BACKLOG = 2048
"""Many agents come back at once after a restart."""

_PING_S = 20.0
_DEFAULT_LIMITS = Limits()
_PORTS_TRIED = 50
_GRACE_S = 2
_ANSWERS_WITHIN_S = 2.0
_TOKEN_BYTES = 32
_OK = 200
_LONGEST_INFO = 4096
_AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ServerInfo(msgspec.Struct, frozen=True):
    """server.json: how to reach the server, for processes of the same user only."""

    pid: int
    url: str
    token: str
    version: str

    @property
    def link(self) -> str:
        """What a person opens."""
        return f"{self.url}/?token={self.token}"


def info_path(root: Path) -> Path:
    """Where a server says how to reach it."""
    return info_path_in(root / FOLDER)


def info_path_in(folder: Path) -> Path:
    """The same by the folder that the server keeps its files in."""
    return folder / "server.json"


def lock_path(root: Path) -> Path:
    """What a server holds while it runs."""
    return root / FOLDER / _LOCK


@asynccontextmanager
async def serve_beside(
    office: Office,
    store: Store,
    root: Path,
    *,
    port: int = PORT,
    static: Path | None = UI,
    version: str = _version.__version__,
    clock: Clock | None = None,
    use: Use | None = None,
    hub: OpenHub | None = None,
    planner: Planner | None = None,
) -> AsyncIterator[ServerInfo]:
    """Serve the workspace for as long as the block lasts, at ``port`` or the next free one.

    ``StoreBusy`` when another server has the workspace. Port 0 is any free one. ``use`` tells the
    caller for how long nobody has asked for anything. With ``hub`` its office can be asked, and
    agents of other processes may join; with ``planner`` runs can be planned.
    """
    token = new_token()
    app = web.build_app(
        office,
        store,
        token=token,
        root=root,
        version=version,
        static=static,
        clock=clock,
        use=use,
        hub_office=hub.keeper if hub is not None else None,
        doors=hub.doors if hub is not None else None,
        planner=planner,
        browser_key=await anyio.to_thread.run_sync(browser_key, root / FOLDER),
    )
    if hub is not None:
        hub.hub.redactor.know("server token", token)
    ports = _from(port)
    async with serve_app(app, root / FOLDER, token=token, version=version, ports=ports) as info:
        yield info


def new_token() -> str:
    """A token for whoever may do everything here."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


@asynccontextmanager
async def serve_app(
    app: web.WebApp,
    folder: Path,
    *,
    token: str,
    version: str,
    ports: Sequence[int],
    host: str = _LOOPBACK,
    largest_message: int = _DEFAULT_LIMITS.message.size_bytes,
) -> AsyncIterator[ServerInfo]:
    """Serve for as long as the block lasts at the first of ``ports`` that is free.

    ``StoreBusy`` when another server has the folder; while it lasts the folder says where it is.
    """
    with OwnerLock(folder / _LOCK), _listening(host, ports) as listener:
        named = f"[{host}]" if ":" in host else host
        url = f"http://{named}:{listener.getsockname()[1]}"
        info = ServerInfo(os.getpid(), url, token, version)
        server = QuietServer(
            app,
            ws=socket_protocol(),
            ws_per_message_deflate=False,
            # What is a little too large is told so; what is far too large is cut off (1009).
            ws_max_size=2 * largest_message,
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PING_S,
        )
        serving = asyncio.create_task(server.serve([listener]), name="agentcanvas server")
        try:
            await server.wait_started(serving)
            with _published(info, info_path_in(folder)):
                yield info
        finally:
            app.end_streams()
            server.end()
            with anyio.CancelScope(shield=True):
                await serving


async def find_server(root: Path, *, version: str = _version.__version__) -> ServerInfo | None:
    """The server of this workspace, if one runs and answers.

    What a server left behind that ended without a word is ignored. One of another version cannot
    be asked, and cannot be ignored either, since it has the workspace: that is ``StoreBusy``.
    """
    return await find_server_in(root / FOLDER, version=version)


async def find_server_in(folder: Path, *, version: str = _version.__version__) -> ServerInfo | None:
    """The same by the folder that the server keeps its files in."""
    info = await anyio.to_thread.run_sync(_read_info_in, folder)
    if info is None or not _is_alive(info.pid):
        return None
    view = await _ask_who(info)
    if view is None or view.pid != info.pid:
        return None
    if info.version != version:
        raise StoreBusy(
            f"{folder} is served by AgentCanvas {info.version} (process {info.pid}), and "
            f"this is {version}. Stop that server first: kill {info.pid}"
        )
    return info


class _NoFalseAlarm(logging.Filter):
    """uvicorn takes a WebSocket that is refused by an HTTP answer for one that nobody answered."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is worth a line."""
        return record.getMessage() != "ASGI callable returned without completing handshake."


logging.getLogger("uvicorn.error").addFilter(_NoFalseAlarm())


# -- listening -----------------------------------------------------------------------------------


@contextmanager
def _listening(host: str, ports: Sequence[int]) -> Iterator[socket.socket]:
    listener = _first_free(host, ports)
    try:
        yield listener
    finally:
        listener.close()


def _from(port: int) -> Sequence[int]:
    """This port or one of the next; 0 is any."""
    return range(port, min(port + _PORTS_TRIED, 65536)) if port else [0]


def _first_free(host: str, ports: Sequence[int]) -> socket.socket:
    for candidate in ports:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Named, because asyncio sends small answers at once only where it sees that it is TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            # Or a port stays unusable for a minute after its last server ended.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, candidate))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ResourceError(f"Nothing can listen on {host}: {error.strerror}.") from error
        else:
            return listener
    if len(ports) == 1:
        which = f"port {ports[0]} of {host} is"
    else:
        which = f"ports {min(ports, default=65535)} to {max(ports, default=65535)} of {host} are"
    raise ResourceError(f"The {which} in use; name another with --port, or 0 for any.")


# -- saying where --------------------------------------------------------------------------------


@contextmanager
def _published(info: ServerInfo, path: Path) -> Iterator[None]:
    _write_private(path, msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # ours: the lock is still held


def _write_private(path: Path, content: bytes) -> None:
    """The whole file or none, and never readable by anybody else (mkstemp makes it 0600)."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    fresh = Path(name)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no Path
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ResourceError(f"{path} could not be written: {error.strerror}.") from error


def read_info(root: Path) -> ServerInfo | None:
    """What is published, true or stale; ``find_server`` tells which."""
    return _read_info_in(root / FOLDER)


def _read_info_in(folder: Path) -> ServerInfo | None:
    """What a server of ours has said; what came with a repository leads nobody astray."""
    with suppress(OSError, ValueError, msgspec.MsgspecError):
        with open(os.open(info_path_in(folder), _AS_IT_IS), "rb") as file:  # noqa: PTH123  # no Path way
            found = os.fstat(file.fileno())
            info = msgspec.json.decode(file.read(_LONGEST_INFO), type=ServerInfo)
        if found.st_uid == os.geteuid() and not found.st_mode & 0o077 and _is_here(info.url):
            return info
    return None


def _is_here(url: str) -> bool:
    """Whether an address is one of this machine: only then something can be bound to it."""
    host = urlsplit(url).hostname
    if not host:
        return False
    family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as trial:
        trial.bind(address)
    return True


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):  # gone, or somebody else's
        return False
    return True


async def _ask_who(info: ServerInfo) -> ServerView | None:
    headers = {"authorization": f"Bearer {info.token}"}
    try:
        # Not through a proxy: loopback is this machine, whatever the environment says.
        async with httpx.AsyncClient(timeout=_ANSWERS_WITHIN_S, trust_env=False) as client:
            answer = await client.get(f"{info.url}{web.PREFIX}/server", headers=headers)
        return (
            msgspec.json.decode(answer.content, type=ServerView)
            if answer.status_code == _OK
            else None
        )
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError):
        return None
