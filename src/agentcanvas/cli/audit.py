"""``agentcanvas audit``: who sent what to whom, and that the record was not changed (H6)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from agentcanvas.cli.hubs import Data, command, store_of
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.words import count
from agentcanvas.cli.offices import complain
from agentcanvas.errors import ResourceError, ValidationError
from agentcanvas.hub import audit as trail
from agentcanvas.hub.audit import Break, Head
from agentcanvas.store import Snapshot, read_file

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Check and export the audit trail: each message sent, each token made or revoked, each "
    "consent, chained by hashes.",
)

_BROKEN = 1


@app.command()
def verify(
    export_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="EXPORT",
            help="Check this export instead, without the hub.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="EXPORT",
            help="Check also that the trail goes on from this earlier export: only this shows that "
            "the whole chain was not written anew.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Verify the trail: find the first entry that was changed, moved or dropped.

    Works while the hub runs. Exit code 0 when the trail is whole, 1 when it is not.
    """
    if export_file is not None:
        _judge(*_verified_lines(export_file), what=str(export_file))
        return
    path = store_of(data)
    known = None if against is None else _known(against)

    def look(snapshot: Snapshot) -> tuple[Break | None, Head]:
        found = trail.verify(snapshot)
        if (
            found is None
            and known is not None
            and trail.hash_at(snapshot, known.number) != (known.hash)
        ):
            found = Break(known.number, f"it is not the one that {against} has")
        return found, trail.head(snapshot)

    _judge(*read_file(path, look), what="the trail")
    if against is None:
        print(f"Keep a copy elsewhere: {command(data, 'audit', 'export', '--output', 'FILE')}")


@app.command()
def export(
    data: Data = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write it to a new file that only you can read, instead of printing it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print every entry as a line of JSON, with the hashes to verify it without the hub.

    Names and words of the protocol are in it, never the text of a message.
    """
    path = store_of(data)
    if output is None:
        read_file(path, lambda snapshot: _write(snapshot, sys.stdout.buffer))
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as wrong:
        raise ResourceError(f"{output} cannot be made: {wrong.strerror}.") from None
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no Path
        try:
            number = read_file(path, lambda snapshot: _write(snapshot, file))
        except BaseException:
            output.unlink(missing_ok=True)
            raise
    print(f"{count(number, 'entry').replace('entrys', 'entries')} written to {output}")


def _write(snapshot: Snapshot, to: BinaryIO) -> int:
    number = 0
    try:
        for line in trail.export(snapshot):
            to.write(line + b"\n")
            number += 1
        to.flush()
    except BrokenPipeError:
        raise
    except OSError as wrong:
        raise ResourceError(f"The export could not be written: {wrong.strerror}.") from None
    return number


def _judge(found: Break | None, head: Head, *, what: str) -> None:
    """Say how it is; end with the exit code that says the same."""
    if found is not None:
        complain(
            f"{one_line(what)} cannot be trusted from entry {found.number} on: {found.reason}."
        )
        raise typer.Exit(_BROKEN)
    if not head.number:
        print("The trail is empty: nothing was sent yet.")
        return
    entries = count(head.number, "entry").replace("entrys", "entries")
    print(f"{entries}, all of them whole. The last one has the hash {head.hash.hex()}")


def _known(path: Path) -> Head:
    found, head = _verified_lines(path)
    if found is not None:
        raise ValidationError(
            f"{path} is broken itself, at entry {found.number}: {found.reason}. Compare with "
            "another export."
        )
    return head


def _verified_lines(path: Path) -> tuple[Break | None, Head]:
    try:
        with path.open("rb") as file:
            lines = _Lines(file)
            found = trail.verify_lines(lines)
    except OSError as wrong:
        raise ResourceError(f"{path} cannot be read: {wrong.strerror}.") from None
    return found, trail.head_of(lines.last) if found is None else Head()


class _Lines:
    """The lines of a file, without their ends; remembers the last."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.last = b""

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self.last = line.rstrip(b"\n")
            yield self.last
