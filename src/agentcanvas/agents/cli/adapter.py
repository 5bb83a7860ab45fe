"""The description of one coding CLI, and the two questions that only it can answer.

``invoke`` turns what is asked of it (``Ask``) into a command line with its environment and private
configuration (``Invocation``); ``reader`` understands what it prints. Everything else is data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import Api, Provider
from agentcanvas.protocol.records import FailureClass
from agentcanvas.sandbox.confine import Places

KEY = "AGENTCANVAS_MODEL_KEY"
"""The variable for a CLI that lets its key's name be chosen."""

Version = tuple[int, ...]


class Facts(Struct, frozen=True, kw_only=True):
    """What is known of a CLI without running it.

    ``programs`` are its names on the PATH, ``oldest`` the first version whose flags are these,
    ``tested`` the one that was driven and when; empty means that nobody has. ``providers`` are the
    models it can be given a key for, best first. ``login`` are the words after its program that
    log it in (without any it asks by itself when it is started), ``credentials`` the files below
    HOME that then hold the login, and ``hosts`` what it has to reach with it. ``exit_codes`` are
    those that mean more than "failed"; ``litter`` what it leaves in the folder it works in.
    """

    id: str
    title: str
    programs: tuple[str, ...]
    install: str
    oldest: Version = ()
    tested: str = ""
    tested_on: str = ""
    node: Version = ()
    providers: tuple[Provider, ...] = ()
    login: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    exit_codes: Mapping[int, FailureClass] = {}
    litter: tuple[str, ...] = ()
    resumes: bool = True
    speaks_mcp: bool = True
    totals: tuple[str, ...] = ()
    """The parts of its usage that go on counting when a session is resumed."""
    lacks: tuple[str, ...] = ()
    """What cannot be had with it, in sentences for the table of CLIs."""


class ModelAccess(Struct, frozen=True, kw_only=True):
    """How a CLI reaches its model, as it is seen from inside.

    ``url`` is the base address up to where the API's own paths begin (``…/v1`` for OpenAI's); empty
    for the CLI's own. ``key`` stands where the key would be; empty with a login of the CLI's own.
    """

    api: Api = Api.CHAT
    url: str = ""
    key: str = ""
    model: str = ""
    service: str = ""
    """The variable that the real key comes from, where kinds of keys are shown differently."""


class Server(Struct, frozen=True, kw_only=True):
    """An MCP server for the private configuration: a command, or an address."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}


class Ask(Struct, frozen=True, kw_only=True):
    """What one turn asks of a CLI. ``prompt`` names images itself where ``images`` is not used.

    ``session`` is a name for a new session of its own, ``resume`` one to go on with. ``confined``
    says that our sandbox keeps it in its place, so that its own questions may be turned off.
    """

    prompt: str
    places: Places
    model: ModelAccess = ModelAccess()
    system: str = ""
    images: tuple[Path, ...] = ()
    servers: tuple[Server, ...] = ()
    schema: Mapping[str, Any] | None = None
    max_turns: int | None = None
    session: str = ""
    resume: str = ""
    retries: int = 2
    confined: bool = True
    writable: bool = True

    @property
    def home(self) -> Path:
        """Its private HOME, as it is seen inside."""
        return self.places.home


class Invocation(Struct, frozen=True, kw_only=True):
    """How to run it: ``files`` are its private configuration, by their paths below HOME.

    ``session`` is the name of its session, where that is ours to choose and not in the stream.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    stdin: str = ""
    files: Mapping[str, str] = {}
    session: str = ""


class Reader:
    """Understands what one run of a CLI prints, line by line; it never raises.

    A line that means nothing to it is kept as it is, and counted.
    """

    def __init__(self, heard: Heard) -> None:
        self.heard = heard

    def line(self, text: str) -> None:
        """Take a line of stdout."""
        self.heard.raw(text)

    def error_line(self, text: str) -> None:
        """Take a line of stderr; most say nothing that is not in the stream."""
        self.heard.aside(text)

    def close(self) -> None:
        """Take the end of the output."""


class Adapter(Struct, frozen=True, kw_only=True):
    """One coding CLI."""

    facts: Facts
    invoke: Callable[[Ask], Invocation]
    reader: Callable[[Heard], Reader]
