"""A socket that has a name on the disk is a door to whoever listens there, also read-only."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentcanvas.sandbox.confine import Bind, Command, Confinement, View
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import prepare_sandbox
from agentcanvas.sandbox.process import run_confined
from agentcanvas.sandbox.sockets import named_sockets
from agentcanvas.sandbox.views import worker_view
from tests.sandbox.conftest import RUN

pytestmark = pytest.mark.req("PR4")

CALL = """
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except OSError as error:
    print("refused:", type(error).__name__)
else:
    print("connected")
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """Give a folder with a short name, as those of sockets must be, with programs in it."""
    with tempfile.TemporaryDirectory(prefix="ac-", dir="/tmp") as name:
        Path(name, "bin").mkdir()
        Path(name, "lib").mkdir()
        yield Path(name)


@pytest.fixture
def listener(short: Path) -> Iterator[socket.socket]:
    """Listen beside the programs, to everybody."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(short / "lib/daemon"))
        (short / "lib/daemon").chmod(0o666)
        listener.listen()
        listener.settimeout(0)
        yield listener


def nobody_called(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return True
    return False


def test_the_sockets_that_are_open_now_are_listed(short: Path, listener: socket.socket) -> None:
    assert short / "lib/daemon" in set(named_sockets())
    with closing(socket.socket(socket.AF_UNIX)) as abstract:
        abstract.bind(f"\0{short}")
        assert all(path.is_absolute() and path.is_socket() for path in named_sockets())
    listener.close()
    assert short / "lib/daemon" not in set(named_sockets())


def test_where_the_kernel_lists_none_there_are_none(tmp_path: Path) -> None:
    assert list(named_sockets(tmp_path / "nowhere")) == []


@pytest.fixture(params=["a folder of the PATH", "a mounted folder"])
async def view(
    request: pytest.FixtureRequest,
    workspace: Path,
    short: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> View:
    """Show the folder with the socket, one way or the other."""
    sandbox = await prepare_sandbox(await take_generation(workspace, RUN), "coder")
    if request.param == "a mounted folder":
        return worker_view(sandbox, read_only=[Bind(short, short)])
    monkeypatch.setenv("PATH", f"{short}/bin:/usr/bin:/bin")
    return worker_view(sandbox)


async def test_a_daemon_beside_the_programs_is_not_reached(
    view: View, confinement: Confinement, listener: socket.socket
) -> None:
    command = Command(("python3", "-c", CALL, str(listener.getsockname())))
    ending, lines = await run_confined(confinement, view, command)
    assert (ending.exit_code, nobody_called(listener)) == (0, True)
    assert [line.text for line in lines][-1].startswith("refused:")
