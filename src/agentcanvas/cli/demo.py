"""``agentcanvas demo``: a team at work on a small repository, and whether it went as it must."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer

from agentcanvas.cli.offices import finish, misused

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def demo(
    *,
    leave: Annotated[
        bool, typer.Option("--exit", help="End after the run instead of serving the page.")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link, but do not open it.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to create the sample repository.")
    ] = Path("agentcanvas-demo"),
    force: Annotated[
        bool,
        typer.Option("--force", help="Recreate the folder, and lose what you changed in it."),
    ] = False,
    dialects: Annotated[
        bool,
        typer.Option(
            "--dialects", help="Show three agents of three dialects exchange a task instead."
        ),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --dialects: every message, sent and arrived.")
    ] = False,
) -> None:
    """Watch a planner, two coders and a reviewer fix a small repository.

    The agents are scripted, all else is real: sandboxes, patches, checks, verdicts. One proposal is
    sent back, one is rejected and planned again, the tests go green. Then the report is printed,
    what must be true is checked, and the page is served until Ctrl-C.

    No account, no key, no network. Exit code 0 only if every check at the end holds.
    """
    if full and not dialects:
        raise misused("--full belongs to --dialects; say both")
    # Imported when it is needed: the engine is most of the product, and --help needs none of it.
    if dialects:
        importlib.import_module("agentcanvas.cli.dialects_demo").show_dialects(full=full)
        return
    shown = importlib.import_module("agentcanvas.cli.demo_run")
    finish(lambda: shown.show(folder, force=force, leave=leave, in_browser=not no_browser))
