"""Confinement: what a process may see and touch, and the one seam to what enforces it.

A ``View`` is said in the workspace's terms; a ``Confinement`` turns it into a command line. Each
back-end is a file in ``confinements/``; which one is used is decided in ``pick``, and the process
itself lives in ``process``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

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
    "USER",
    "LOGNAME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
}


class Network(StrEnum):
    """What a process may reach."""

    NONE = "none"
    OPEN = "open"


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
    ``workspace``, so that absolute paths in it stay true (D9).
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


@dataclass(frozen=True)
class Places:
    """Where the confined process finds the parts of its view."""

    tree: Path
    home: Path
    tmp: Path
    input: Path | None
    objects: tuple[Path, ...]


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
class Launch:
    """A command line that confines, ready to be started.

    The started program, if it ``reports``, writes ``{"child-pid": N}`` to the descriptor it was
    given: the process from which all others descend. ``end_with`` is the signal that makes it take
    them all along.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    reports: bool
    end_with: signal.Signals


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

    def launch(self, view: View, command: Command, report_to: int) -> Launch:
        """Make the command line; ``report_to`` is an open descriptor."""


def in_place(view: View) -> Places:
    """Give the places of a back-end that cannot mount: everything is where it is."""
    return Places(view.tree, view.home, view.tmp, view.input, view.objects)


def environment(places: Places, command: Command) -> dict[str, str]:
    """Make the whole environment of a confined process; secrets come by name in ``command.env``."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        **passed,
        "HOME": str(places.home),
        "TMPDIR": str(places.tmp),
        "SHELL": "/bin/sh",
        # Git must not find the user's repository above a tree without one.
        "GIT_CEILING_DIRECTORIES": str(places.tree.parent),
        **command.env,
        TAG: command.tag,
    }
