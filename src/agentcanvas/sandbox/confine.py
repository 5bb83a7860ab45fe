"""Confinement: what a process may see and touch, and the one seam to what enforces it.

A ``View`` is said in the workspace's terms; a ``Confinement`` turns it into a command line. Each
back-end is a file in ``confinements/``; which one is used is decided in ``pick``, the process
itself lives in ``process``, and the one way out of a closed network in ``egress``.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agentcanvas.errors import SandboxError

ON_LINUX = os.uname().sysname == "Linux"
ON_A_MAC = os.uname().sysname == "Darwin"

TAG = "AGENTCANVAS_SANDBOX"
"""The variable by which leftovers of a sandbox are found, even after a restart (D18)."""

_PASSED_ON = {
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
}

# Whoever looks into TLS on the way (a company's proxy) has its own authority, and each tool its own
# variable for it.
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

USER = "agent"
"""What a process is told its user is called: the name of the real one is nobody's business."""


class Network(StrEnum):
    """What a process may reach (D11); ``model`` and ``hosts`` lead through the view's door."""

    NONE = "none"
    MODEL = "model"
    HOSTS = "hosts"
    OPEN = "open"

    @property
    def is_behind_a_door(self) -> bool:
        """Whether the egress proxy is all that can be reached."""
        return self in {Network.MODEL, Network.HOSTS}


class Door(Protocol):
    """The one way out of a closed network: the egress proxy, while it is open."""

    @property
    def token(self) -> str:
        """Give the word that opens it; whoever runs on this machine could knock."""

    def listen(self) -> int:
        """Listen on this machine's own loopback and give the port, for what cannot be mounted."""

    def admit(self, listener: socket.socket) -> None:
        """Serve a listener that was handed out of a network namespace."""


@dataclass(frozen=True)
class Bind:
    """Something of the machine that is to be seen, read-only, at ``target``."""

    source: Path
    target: Path


@dataclass(frozen=True)
class View:
    """What a confined process sees: one tree, a private home, the system's programs, no more.

    ``tree`` is work/, an evidence copy, or, with ``writable=False``, the tree of a generation for a
    process that runs "in the workspace" (D8). Where mounts are possible it is seen at
    ``workspace``, so that absolute paths in it stay true (D9). ``door`` is needed by the networks
    ``model`` and ``hosts``, and has to stay open as long as the process runs.
    """

    workspace: Path
    tree: Path
    home: Path
    tmp: Path
    writable: bool = True
    input: Path | None = None
    objects: tuple[Path, ...] = ()
    read_only: tuple[Bind, ...] = ()
    network: Network = Network.NONE
    door: Door | None = None


@dataclass(frozen=True)
class Places:
    """Where the confined process finds the parts of its view.

    ``proxy`` is the address of the egress proxy, without the token; empty when there is none.
    """

    tree: Path
    home: Path
    tmp: Path
    input: Path | None
    objects: tuple[Path, ...]
    proxy: str = ""


@dataclass(frozen=True)
class Command:
    """What to run; ``cwd`` is relative to the tree, ``env`` is all it gets beyond the allow-list.

    ``tag`` names the sandbox, so that leftovers of it can be found later.
    """

    argv: tuple[str, ...]
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "."
    tag: str = ""


@dataclass(frozen=True)
class Wires:
    """Open descriptors that a starting program may inherit; nothing of them is left to the command.

    To ``report`` it writes ``{"child-pid": N}``: the process from which all others descend. On
    ``go`` it waits for one byte before the command starts, so that limits are in force by then.
    From ``calls`` it reads the seccomp program of ``Launch.calls``. Through ``door`` it hands out
    the listener that it made in a network namespace of its own.
    """

    report: int
    go: int
    calls: int
    door: int


@dataclass(frozen=True)
class Launch:
    """A command line that confines, ready to be started.

    ``wires`` are those it uses; without any, the started process is the one from which all descend.
    ``end_with`` is the signal that makes that one take all others along. ``counted_apart`` says
    that the kernel counts its processes apart from the user's others, ``goes_at_the_end`` that the
    end of ``go`` starts the command as a byte does, so that it must not end.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    end_with: signal.Signals
    wires: tuple[int, ...] = ()
    calls: bytes = b""
    hands_out_listener: bool = False
    counted_apart: bool = False
    goes_at_the_end: bool = False


class Confinement(Protocol):
    """A way to keep a process within its view."""

    @property
    def name(self) -> str:
        """Name it for logs and ``doctor``."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what it cannot keep, in sentences for the user; empty for the full promise."""

    def places(self, view: View) -> Places:
        """Say where a process will find what is in its view."""

    def launch(self, view: View, command: Command, wires: Wires) -> Launch:
        """Make the command line."""


def door_of(view: View) -> Door | None:
    """Give the door that a view's network leads through, None when it leads through none."""
    if not view.network.is_behind_a_door:
        return None
    if view.door is None:
        raise SandboxError(
            f"The network '{view.network}' leads through the egress proxy, and none is open; open "
            "one and put it into the view"
        )
    return view.door


def in_place(view: View) -> Places:
    """Give the places of a back-end that cannot mount: everything is where it is."""
    door = door_of(view)
    proxy = f"http://127.0.0.1:{door.listen()}" if door else ""
    return Places(view.tree, view.home, view.tmp, view.input, view.objects, proxy)


def environment(view: View, places: Places, command: Command) -> dict[str, str]:
    """Make the whole environment of a confined process; secrets come by name in ``command.env``."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name in _CERTIFICATES or name.startswith("LC_")
    }
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        **passed,
        "USER": USER,
        "LOGNAME": USER,
        "HOME": str(places.home),
        "TMPDIR": str(places.tmp),
        "SHELL": "/bin/sh",
        # Git must not find the user's repository above a tree without one.
        "GIT_CEILING_DIRECTORIES": str(places.tree.parent),
        **command.env,
        **dict(_proxies(view, places)),
        TAG: command.tag,
    }


def _proxies(view: View, places: Places) -> Iterator[tuple[str, str]]:
    """Name the proxy in every spelling there is: ours, or the user's where the network is open."""
    if view.network is Network.OPEN:
        for name in _PROXIES:
            for spelled in (name, name.lower()):
                if spelled in os.environ:
                    yield spelled, os.environ[spelled]
    if door := door_of(view):
        ours = places.proxy.replace("://", f"://{USER}:{door.token}@")
        values = dict.fromkeys(_PROXIES, ours) | {"NO_PROXY": "127.0.0.1,localhost"}
        for name, value in values.items():
            yield name, value
            yield name.lower(), value


def certificate_paths(workspace: Path) -> tuple[Path, ...]:
    """List the files that the certificate variables name, so that they can be read inside."""
    named = (Path(os.environ[name]) for name in _CERTIFICATES if os.environ.get(name))
    return tuple(
        dict.fromkeys(
            path
            for path in named
            # The workspace is seen through its copy alone.
            if path.is_absolute() and not path.is_relative_to(workspace) and path.exists()
        )
    )
