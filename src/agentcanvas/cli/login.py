"""``agentcanvas login``: give a coding CLI a login of its own, beside the user's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer

from agentcanvas.agents.cli.adapter import Facts
from agentcanvas.agents.cli.find import on_the_path
from agentcanvas.agents.cli.own_login import Login
from agentcanvas.app.clis import CLIS, adapter_of
from agentcanvas.app.logins import login_home
from agentcanvas.cli.live.clean import one_line
from agentcanvas.errors import FlowError

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

# A terminal, a browser and the way out; nothing that leads to the user's own logins.
_PASSED_ON: Final = (
    "PATH",
    "TERM",
    "COLORTERM",
    "LANG",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "BROWSER",
    "SSH_CONNECTION",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
)


@app.command()
def login(
    cli: Annotated[str, typer.Argument(metavar="CLI", help=f"One of {', '.join(CLIS)}.")],
    *,
    out: Annotated[bool, typer.Option("--out", help="Forget the login instead.")] = False,
) -> None:
    """Give a coding CLI a login of its own, in a home that belongs to AgentCanvas.

    Your own login is neither read nor changed: its tokens are renewed now and then, and a copy
    would log you out. Members of a team that use this login work one after the other. A key in the
    environment needs no login and has no such limit.
    """
    facts = adapter_of(cli).facts
    if not facts.credentials:
        keys = ", ".join(provider.key_env for provider in facts.providers)
        raise FlowError(f"{facts.title} keeps no login that could be lent; export a key: {keys}.")
    own = login_home(facts, os.environ)
    anyio.run(_forget if out else _log_in, facts, own)


async def _forget(facts: Facts, own: Login) -> None:
    if not own.is_there:
        print(f"{facts.title} has no login here; nothing was changed.")
        return
    async with own.held():
        own.forget()
    print(f"The login of {facts.title} was removed from {one_line(str(own.home), 1_000)}.")


async def _log_in(facts: Facts, own: Login) -> None:
    found = on_the_path(facts, os.environ)
    if not found.usable:
        raise FlowError(f"{found.problem}.")
    async with own.held():
        if not facts.login:
            print(f"{facts.title} asks for a login when it starts; log in, then leave it.")
        done = subprocess.run(  # noqa: S603, ASYNC221 -- the terminal is its own meanwhile
            _command(found.program, facts),
            cwd=own.home,  # here could be a repository whose settings the CLI would obey
            env=_environment(os.environ, own),
            check=False,
        )
    if not own.is_there:
        ended = f" (exit code {done.returncode})" if done.returncode else ""
        raise FlowError(f"{facts.title} left no login{ended}; try again, or export a key instead.")
    print(f"{facts.title} is logged in. See whether it works: agentcanvas agents test {facts.id}")


def _command(program: str, facts: Facts) -> list[str]:
    """What is run; a PATH may have the program by where it is from here."""
    return [str(Path(program).absolute()), *facts.login]


def _environment(environ: Mapping[str, str], own: Login) -> dict[str, str]:
    passed = {name: environ[name] for name in _PASSED_ON if name in environ}
    return passed | {"HOME": str(own.home), "GOOSE_DISABLE_KEYRING": "1"}
