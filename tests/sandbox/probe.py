"""What a hostile program tries. Runs inside a confinement, by itself; prints what each try gave.

Arguments: the real paths of things outside, as ``name=path``. Output: JSON {try: "done" or error}.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

OUT = dict(argument.split("=", 1) for argument in sys.argv[1:])


def attach() -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(16, int(OUT["parent"]), 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")


def new_namespace() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")


def in_a_thread() -> None:
    done: list[int] = []
    thread = threading.Thread(target=done.append, args=(1,))
    thread.start()
    thread.join()
    assert done


def read_through_a_link() -> None:
    Path("link-out").symlink_to(OUT["secret"])
    Path("link-out").read_bytes()


def link_hard() -> None:
    os.link(OUT["secret"], "hard-link")
    Path("hard-link").read_bytes()


def connect(family: int, address: object) -> None:
    with socket.socket(family) as client:
        client.connect(address)  # type: ignore[arg-type]  # each family has addresses of its own


def say_by_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", int(OUT["udp_port"])))


def read(*names: str) -> None:
    with Path(*names).open("rb") as file:
        file.read(1)


def make_a_socketpair() -> None:
    for end in socket.socketpair():
        end.close()


def run_a_script() -> None:
    Path("script.sh").write_text("#!/bin/sh\nexit 0\n")
    Path("script.sh").chmod(0o755)
    subprocess.run(["./script.sh"], check=True)


TRIES: dict[str, Callable[[], object]] = {
    "work: write": lambda: Path("made").write_text("x"),
    "work: rename": lambda: Path("made").rename("moved"),
    "work: remove": lambda: Path("moved").unlink(),
    "work: folder": lambda: Path("a/b/c").mkdir(parents=True),
    "work: link": lambda: Path("inner-link").symlink_to("README.md"),
    "work: hard link": lambda: os.link("README.md", "inner-hard"),
    "work: run a script": run_a_script,
    "work: edit": lambda: Path("README.md").write_text("edited"),
    "work: thread": in_a_thread,
    "work: socketpair": make_a_socketpair,
    "home: write": lambda: (Path(os.environ["HOME"]) / "x").write_text("x"),
    "tmp: write": lambda: (Path(os.environ["TMPDIR"]) / "x").write_text("x"),
    "input: read": lambda: read(OUT["input"], "README.md"),
    "dev: null": lambda: Path("/dev/null").write_text("x"),
    "input: write": lambda: (Path(OUT["input"]) / "README.md").write_text("forged"),
    "input: make it writable": lambda: (Path(OUT["input"]) / "README.md").chmod(0o666),
    "input: add": lambda: (Path(OUT["input"]) / "added").write_text("x"),
    "input: remove": lambda: os.unlink(OUT["input"] + "/README.md"),  # noqa: PTH108 -- as the kernel has it
    "outside: read a secret": lambda: Path(OUT["secret"]).read_bytes(),
    "outside: read through a link": read_through_a_link,
    "outside: read through a hard link": link_hard,
    "outside: write": lambda: Path(OUT["victim"]).write_text("owned"),
    "outside: truncate": lambda: os.truncate(OUT["victim"], 0),
    "outside: remove": lambda: Path(OUT["victim"]).unlink(),
    "outside: list": lambda: os.listdir(OUT["folder"]),  # noqa: PTH208 -- names only
    "outside: rename into": lambda: Path(OUT["victim"]).rename("stolen"),
    "outside: proposal": lambda: (Path(OUT["proposal"]) / "proposal.json").write_text("{}"),
    "outside: frozen tree": lambda: (Path(OUT["tree"]) / "README.md").write_text("forged"),
    "outside: real home": lambda: (Path(OUT["home"]) / ".profile").write_text("owned"),
    "system: write": lambda: Path("/usr/planted").write_text("x"),
    "system: passwords": lambda: Path("/etc/shadow").read_bytes(),
    "processes: environment": lambda: Path(f"/proc/{OUT['parent']}/environ").read_bytes(),
    "processes: memory": lambda: read("/proc", OUT["parent"], "mem"),
    "processes: signal": lambda: os.kill(int(OUT["parent"]), 0),
    "processes: attach": attach,
    "processes: namespace": new_namespace,
    "network: tcp": lambda: connect(socket.AF_INET, ("127.0.0.1", int(OUT["port"]))),
    "network: udp": say_by_udp,
    "network: unix socket": lambda: connect(socket.AF_UNIX, OUT["socket"]),
    "network: abstract socket": lambda: connect(socket.AF_UNIX, "\0" + OUT["abstract"]),
}


def main() -> None:
    """Try everything."""
    results = {}
    for name, attempt in TRIES.items():
        try:
            attempt()
        except (OSError, subprocess.SubprocessError) as error:
            results[name] = type(error).__name__
        else:
            results[name] = "done"
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
