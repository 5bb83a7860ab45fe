"""How a command reaches whoever holds a hub, and which hub it means (D1).

A workspace has a hub of its own; ``agentcanvas hub --data DIR`` is one without a workspace. Every
command about hubs works on a ``HubOffice`` and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

import typer

from agentcanvas.app.workspace import (
    FOLDER,
    ensure_folder,
    store_path_in,
    user_data_folder,
)
from agentcanvas.cli.here import folder_here, root_here
from agentcanvas.cli.live.words import quoted
from agentcanvas.cli.offices import finish
from agentcanvas.errors import ResourceError
from agentcanvas.hub.office import HubOffice

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The hub's folder, as in `agentcanvas hub --data DIR`; this workspace's own when not "
        "given.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]


class Hub(NamedTuple):
    """The hub that a command means, and its office."""

    folder: Path
    data: Path | None
    office: HubOffice
    is_live: bool
    """Whether a server has it, so that agents can be connected and more may happen."""

    def command(self, *words: str) -> str:
        """A command about the same hub, as it is typed."""
        return command(self.data, *words)

    @property
    def start(self) -> str:
        """The command that makes it live."""
        return start(self.folder, self.data)


Work = Callable[[Hub], Awaitable[int]]


def at_hub(work: Work, data: Path | None, *, make: bool = False) -> NoReturn:
    """Do something at the office of a hub and end with its exit code."""

    async def main() -> int:
        # Imported when it is needed: the engine is most of the product, and --help needs none.
        from agentcanvas.app.hub_office import open_hub_office  # noqa: PLC0415  # see above

        folder = folder_of(data)
        if make and folder.name == FOLDER:
            ensure_folder(folder.parent)
        elif not make:
            store_of(data)
        async with open_hub_office(folder, make=make) as (office, is_live):
            return await work(Hub(folder, data, office, is_live))

    finish(main)


def folder_of(data: Path | None) -> Path:
    """The folder that is named, else this workspace's, else that of the user's own hub."""
    if data is not None:
        return (folder_here() / data).resolve()
    here = root_here() / FOLDER
    if not here.exists():
        own = user_data_folder(os.environ) / "hub"
        if own.exists():
            return own
    return here


def store_of(data: Path | None) -> Path:
    """The file that a hub keeps everything in, for those who only read it."""
    folder = folder_of(data)
    path = store_path_in(folder)
    if not path.exists():
        raise ResourceError(f"There is no hub in {folder}. Start one: {start(folder, data)}")
    return path


def command(data: Path | None, *words: str) -> str:
    """A command about the same hub, as it is typed."""
    named = ["--data", str(data)] if data is not None else []
    return " ".join(["agentcanvas", *(quoted(word) for word in (*words, *named))])


def start(folder: Path, data: Path | None) -> str:
    """The command that starts a hub."""
    if data is None and folder.name == FOLDER:
        return "agentcanvas serve"
    return command(folder, "hub")
