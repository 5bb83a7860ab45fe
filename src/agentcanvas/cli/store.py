"""``agentcanvas store``: look after the file that holds what must survive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentcanvas import store as files
from agentcanvas.app.workspace import ensure_folder, store_path
from agentcanvas.cli.here import root_here

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Check, back up and restore the database of a workspace or a hub.",
)

At = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="The store; this workspace's .agentcanvas/agentcanvas.db when not given.",
        show_default=False,
    ),
]


@app.command()
def check(at: At = None) -> None:
    """Check every page and every row of the database, even while it is in use.

    Exit code 0 when all is well, 1 when something is damaged or missing.
    """
    path = _path(at)
    problems = files.check(path)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(
            f"{path} is damaged. Bring a back-up back: agentcanvas store restore BACKUP",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    print(f"{path} is intact")


@app.command()
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    at: At = None,
) -> None:
    """Copy the database, even while it is in use."""
    path = _path(at)
    files.backup(path, to)
    print(f"{path} copied to {to}")


@app.command()
def restore(
    backup_file: Annotated[Path, typer.Argument(metavar="BACKUP", help="A copy made by backup.")],
    at: At = None,
) -> None:
    """Replace the database with a back-up; the old one is kept beside it."""
    path = _path(at)
    if backup_file.exists():  # else it is said, and nothing is made
        if at is None:
            ensure_folder(path.parent.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
    kept = files.restore(backup_file, path)
    print(f"{path} is now the back-up {backup_file}")
    if kept is not None:
        print(f"What was there before is kept as {kept}")


def _path(at: Path | None) -> Path:
    return at if at is not None else store_path(root_here())
