"""``agentcanvas trust``: look at what a repository can run here, and say whether it may (D43)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from agentcanvas.app.composing import flow_path
from agentcanvas.app.trust import Standing, flows_to_look_at, revoke, standing, trust_now
from agentcanvas.app.what_runs import KINDS, WhatRuns
from agentcanvas.cli.granted import print_grants
from agentcanvas.cli.here import folder_here, root_here
from agentcanvas.cli.live.clean import one_line
from agentcanvas.clock import SystemClock, rfc3339
from agentcanvas.errors import FlowError
from agentcanvas.flows.named_files import path_within
from agentcanvas.flows.trust import TrustState

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_LONGEST: Final = 500
_MOST_SHOWN: Final = 50


@app.command()
def trust(
    flows: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FLOW",
            help="Flows that lie elsewhere in this workspace, by their paths.",
            show_default=False,
        ),
    ] = None,
    *,
    show: Annotated[bool, typer.Option("--show", help="Only show; ask nothing.")] = False,
    take_back: Annotated[bool, typer.Option("--revoke", help="Take the trust back.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Trust without being asked.")] = False,
) -> None:
    """Show what in this repository may run, what changed, and ask whether you allow it.

    The answer is kept outside the repository and holds until one of the files changes. A flow that
    does not lie in .agentcanvas/flows is looked at when you name it, and so are its scripts.
    """
    if sum((show, take_back, yes)) > 1:
        raise typer.BadParameter("say one of --show, --revoke and --yes")
    root = root_here()
    if take_back and flows:
        raise typer.BadParameter("--revoke takes all trust back, and no flow is named with it")
    if take_back:
        had = revoke(root, os.environ)
        print("The trust is taken back." if had else "There was no trust to take back.")
        return
    named = [_in_workspace(root, name) for name in flows or ()]
    looked_at = flows_to_look_at(root, os.environ, named)
    found = standing(root, os.environ, looked_at)
    _print(found, WhatRuns(root, found, looked_at))
    if show or found.decision.may_run:
        return
    if found.decision.state is TrustState.UNFIT:
        raise typer.Exit(1)
    if not (yes or _agreed()):
        print("Nothing was trusted, and nothing of it runs.")
        raise typer.Exit(1)
    # What was shown is what is trusted: a file that changed since will be asked about.
    now = trust_now(root, os.environ, SystemClock(), flows=looked_at, seen=found.now)
    print("Trusted, until one of these files changes." if now.may_run else now.sentence)


def _in_workspace(root: Path, name: str) -> str:
    if path := path_within(root, flow_path(root, folder_here(), name)):
        return path
    raise FlowError(f"{name} does not lie in {root}; what you name from elsewhere needs no trust.")


def _agreed() -> bool:
    try:
        answer = input("\nMay these run? Say yes only if you have looked at them. [y/N] ")
    except EOFError:
        print("\nThere is nobody to ask; say it with: agentcanvas trust --yes", file=sys.stderr)
        raise typer.Exit(1) from None
    return answer.strip().casefold() in {"y", "yes"}


# Showing ----------------------------------------------------------------------------------------


def _print(found: Standing, runs: WhatRuns) -> None:
    console = Console(highlight=False, soft_wrap=True)
    marks = _marks(found)
    for title in KINDS.values():
        paths = [path for path in marks if runs.kind(path) == title]
        if paths:
            console.print(Text(title, style="bold"))
        for path in paths[:_MOST_SHOWN]:
            mark, style = marks[path]
            console.print(Text(f"  {mark:<8}  {one_line(path, _LONGEST)}", style=style))
            print_grants(console, runs.lines(path), indent=14)
        if len(paths) > _MOST_SHOWN:
            console.print(Text(f"  … and {len(paths) - _MOST_SHOWN} more", style="dim"))
    console.print(Text(f"{one_line(_summary(found), 2_000)}", style="bold"))


def _marks(found: Standing) -> Mapping[str, tuple[str, str]]:
    """What is to be said of each file; what differs comes first."""
    decision = found.decision
    told: dict[str, tuple[str, str]] = {}
    told |= dict.fromkeys(decision.changed, ("changed", "yellow"))
    # Where nothing was trusted before, everything is new and the word would say nothing.
    new = "new" if found.before else ""
    told |= dict.fromkeys(decision.added, (new, "green" if new else "default"))
    told |= dict.fromkeys(decision.removed, ("gone", "red"))
    return told | {path: ("", "default") for path in sorted(found.now.files) if path not in told}


def _summary(found: Standing) -> str:
    decision = found.decision
    match decision.state:
        case TrustState.NOTHING_TO_TRUST:
            return "Nothing here needs trust: there are no flows, patterns, skills or hooks."
        case TrustState.TRUSTED:
            at = found.before.at if found.before else 0
            return f"All of this is trusted since {rfc3339(at)}, and nothing changed."
        case TrustState.CHANGED:
            number = len(decision.added) + len(decision.changed) + len(decision.removed)
            what = "file differs" if number == 1 else "files differ"
            return f"{number} {what} from what you trusted; nothing runs until you agree."
        case TrustState.NEVER_TRUSTED:
            return "You have not trusted these yet; nothing of it runs until you agree."
        case _:
            return decision.sentence
