"""AutoGen beside us, for information: in an environment of its own, made when it is needed."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread

from bench.network.talks import Work

_HOME = Path(__file__).parent.parent / ".autogen"
_WANTED = "autogen-ext[grpc]>=0.7"


def autogen_python() -> str:
    """Return the interpreter that has AutoGen; empty, and said why, if there is none."""
    python = _HOME / "bin" / "python"
    if not python.exists():
        steps = [
            [sys.executable, "-m", "venv", str(_HOME)],
            [str(python), "-m", "pip", "install", "--quiet", _WANTED],
        ]
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no word"])[-1]
                print(f"AutoGen is left out, {_WANTED} cannot be installed: {last}")
                python.unlink(missing_ok=True)
                return ""
    return str(python)


@asynccontextmanager
async def through_autogen(python: str, number: int) -> AsyncIterator[Work]:
    """Ask and be answered through its gRPC runtime; nothing is kept."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    peer = Path(__file__).with_name("autogen_peer.py")
    child = subprocess.Popen(  # noqa: ASYNC220 - it is only started here
        [python, str(peer), address, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    to, from_ = child.stdin, child.stdout
    try:
        assert await anyio.to_thread.run_sync(from_.readline) == "ready\n"

        async def work() -> None:
            to.write("go\n")
            to.flush()
            assert await anyio.to_thread.run_sync(from_.readline) == "done\n"

        yield work
    finally:
        child.kill()
        child.wait()
        to.close()
        from_.close()
