"""``agentcanvas schema``: export the schemas of everything on the wire."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentcanvas.app.schemas import documents
from agentcanvas.protocol.schema import BASE

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(help="Print this one, e.g. mac.schema.json; none lists them.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="DIR", help="Write all of them to a folder.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="DIR", help="Check that a folder has exactly these."),
    ] = None,
) -> None:
    """Export the JSON Schemas of all messages, and the AsyncAPI document."""
    files = {name: _text(document) for name, document in documents().items()}
    if write is not None:
        _write(write, files)
    elif check is not None:
        _check(check, files)
    elif name is None:
        print("\n".join(files))
    elif name in files:
        sys.stdout.write(files[name])
    else:
        print(f"agentcanvas: no schema {name}; there are: {', '.join(files)}", file=sys.stderr)
        raise typer.Exit(2)


def _text(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        for stale in _strangers(folder, files):
            (folder / stale).unlink()
    except OSError as error:
        print(f"agentcanvas: cannot write to {folder}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(2) from None
    print(f"{len(files)} schemas written to {folder}")


def _check(folder: Path, files: dict[str, str]) -> None:
    found = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    problems = [f"{name} is missing" for name in files if name not in found]
    problems += [
        f"{name} is out of date"
        for name, text in files.items()
        if name in found and found[name] != text.encode()
    ]
    problems += [f"{name} is not exported any more" for name in _strangers(folder, files)]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        print(f"Write them anew: agentcanvas schema --write {folder}", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{len(files)} schemas are up to date")


def _strangers(folder: Path, files: dict[str, str]) -> list[str]:
    """Schemas that an older version exported; the folder may hold other people's files too."""
    return sorted(
        path.name
        for path in folder.glob("*.schema.json")
        if path.name not in files and BASE.encode() in path.read_bytes()
    )
