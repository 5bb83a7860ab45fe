"""``agentcanvas doctor``: say what is there for a run, what is missing, and what to do about it."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Annotated, Final

import anyio
import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentcanvas.app.doctor import Finding, Grade, examine
from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.clean import one_line

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_STYLES: Final = {Grade.OK: "green", Grade.WARN: "yellow", Grade.FAIL: "red"}
_LONGEST: Final = 2_000


@app.command()
def doctor(
    *,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask each coding CLI for one word; costs a little money.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check what a run needs on this machine and in this workspace, and say what to do.

    Exit code 1 only when something is in the way of running.
    """
    root = root_here()
    findings = anyio.run(partial(examine, root, os.environ, ask=ask))
    fine = all(finding.grade is not Grade.FAIL for finding in findings)
    if as_json:
        told = {"ok": fine, "workspace": str(root), "findings": msgspec.to_builtins(findings)}
        print(json.dumps(told, indent=2))
    else:
        _print(findings, fine=fine)
    raise typer.Exit(0 if fine else 1)


def _print(findings: tuple[Finding, ...], *, fine: bool) -> None:
    console = Console(highlight=False)
    rows = [_row(finding) for finding in findings]
    if console.is_terminal:
        table = Table.grid(padding=(0, 2), pad_edge=False)
        for _ in range(2):
            table.add_column(no_wrap=True)
        table.add_column(overflow="fold")  # and go on below where it began
        for row in rows:
            table.add_row(*row)
        console.print(table)
    else:  # whoever reads this is a program, or has a wider place for it: a line each
        width = max(len(finding.subject) for finding in findings)
        for grade, subject, said in rows:
            print(f"{grade.plain:<4}  {subject.plain:<{width}}  {said.plain}")
    print(
        "\nEverything a run needs is in place."
        if fine
        else "\nFix what says fail, then run doctor again."
    )


def _row(finding: Finding) -> tuple[Text, Text, Text]:
    said = Text(one_line(finding.sentence, _LONGEST))
    if finding.next_step:
        said.append(f"  → {one_line(finding.next_step, _LONGEST)}", style="cyan")
    return Text(finding.grade, _STYLES[finding.grade]), Text(finding.subject, "bold"), said
