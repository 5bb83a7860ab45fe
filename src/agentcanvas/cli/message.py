"""``agentcanvas message``: look at messages of any dialect."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import msgspec
import typer
from msgspec import UNSET
from rich.console import Console
from rich.text import Text

from agentcanvas.cli.reading import messages_in, read
from agentcanvas.protocol.dialect import DialectName, spoken
from agentcanvas.protocol.dialects import translate as translated
from agentcanvas.protocol.rules import Report, examine

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Check and translate messages of the dialects MAC, SPEC-022 and ACP.",
)


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Messages as JSON; a .jsonl file holds one a line, - is standard input.",
            show_default=False,
        ),
    ],
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Hold the letter of the documents: any breach makes it invalid."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per message.")
    ] = False,
) -> None:
    """Say which dialect a message speaks, and every rule it breaks.

    Lenient by default: what the documents' own examples do is accepted and noted.
    Exit code 0 when all are valid, 1 when one is not, 2 when a file cannot be read.
    """
    all_valid = True
    console = Console(highlight=False, soft_wrap=True)
    for file in files:
        for name, data in messages_in(file):
            report = examine(data, strict=strict)
            all_valid = all_valid and report.valid
            if as_json:
                print(json.dumps(_as_json(name, report)))
            else:
                console.print(_as_text(name, report))
    raise typer.Exit(0 if all_valid else 1)


@app.command()
def translate(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A message as JSON; - is standard input.")
    ],
    to: Annotated[DialectName, typer.Option("--to", help="The dialect to say it in.")],
    compact: Annotated[bool, typer.Option("--compact", help="Print it on one line.")] = False,
) -> None:
    """Translate a message into another dialect, as JSON on standard output.

    What the other dialect cannot say travels in its x_agentcanvas field, so that the way back
    gives the same message again.
    """
    data = translated(read(file), to)
    # Laid out as text: parsing would change how numbers are written.
    text = msgspec.json.format(data, indent=-1 if compact else 2)
    sys.stdout.buffer.write(text + b"\n")


def _as_json(name: str, report: Report) -> dict[str, object]:
    envelope = report.envelope
    return {
        "file": name,
        "valid": report.valid,
        "mode": "strict" if report.strict else "lenient",
        "dialect": report.dialect,
        "kind": envelope.kind if envelope else None,
        "id": envelope.id if envelope else None,
        "breaches": [
            {
                "rule": breach.rule,
                "pointer": breach.pointer,
                "message": breach.sentence,
                "fatal": breach.fatal or report.strict,
            }
            for breach in report.breaches
        ],
    }


def _as_text(name: str, report: Report) -> Text:
    text = Text()
    text.append("✓ " if report.valid else "✗ ", style="green" if report.valid else "red")
    text.append(_plain(name), style="bold")
    envelope = report.envelope
    if report.dialect is not None:
        text.append(f"  {spoken(report.dialect)}")
    if envelope is not None:
        to = envelope.recipient.id if envelope.recipient is not UNSET else "the command's sender"
        text.append(f" {envelope.kind}, {_plain(envelope.sender.id)} → {_plain(to)}")
    if report.valid and not report.breaches:
        text.append("  valid", style="green")
    elif report.valid:
        count = len(report.breaches)
        text.append(f"  valid, {count} {'breach' if count == 1 else 'breaches'} noted")
    else:
        text.append("  not valid", style="red")
    for breach in report.breaches:
        heavy = report.strict or breach.fatal
        text.append("\n    ")
        text.append("error " if heavy else "note  ", style="red" if heavy else "yellow")
        text.append(_plain(breach.pointer or "/"), style="cyan")
        text.append(f"  {_plain(breach.sentence)}")
        text.append(f"  [{breach.rule}]", style="dim")
    return text


def _plain(text: str) -> str:
    """Text of a message without what a terminal would obey: escape sequences, line breaks."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
