"""``agentcanvas agents test``: ask one coding CLI for one word, as a run would ask it."""

from __future__ import annotations

import os
from typing import Annotated

import anyio
import typer

from agentcanvas.app.cli_standing import Standing, Tried, ask_once, standing_of
from agentcanvas.app.clis import CLIS
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.flows.team import Runtime

_LONGEST = 2_000

Cli = Annotated[str, typer.Argument(metavar="CLI", help=f"One of {', '.join(CLIS)}.")]
Model = Annotated[str | None, typer.Option("--model", help="The model to ask.", show_default=False)]
Url = Annotated[
    str | None,
    typer.Option("--url", help="The address of a model service of yours.", show_default=False),
]
KeyEnv = Annotated[
    str | None,
    typer.Option(
        "--key-env", metavar="NAME", help="The variable that holds its key.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def try_cli(
    cli: Cli,
    *,
    model: Model = None,
    url: Url = None,
    key_env: KeyEnv = None,
    as_json: AsJson = False,
) -> None:
    """Send a coding CLI a test question, confined as in a run.

    This costs a little money. Exit code 1 when it cannot be used; what would mend it is said.
    """
    said = Runtime(kind="cli", backend_id=cli, model=model, url=url, key_env=key_env)
    standing, tried = anyio.run(_try, cli, said)
    fix = standing.fix or (tried.fix if tried else "")
    if as_json:
        answer = tried.sentence if tried else ""
        told = {"cli": cli, "ok": not fix, "standing": standing.sentence}
        print(one_json({**told, "answer": answer, "fix": fix}))
    else:
        print(f"{cli}: {one_line(standing.sentence, _LONGEST)}")
        if tried:
            print(f"{cli}: {one_line(tried.sentence, _LONGEST)}")
        print(f"To do: {one_line(fix, _LONGEST)}" if fix else "It can be a member of a team.")
    raise typer.Exit(1 if fix else 0)


async def _try(cli: str, said: Runtime) -> tuple[Standing, Tried | None]:
    standing = await standing_of(cli, os.environ, said)
    return standing, await ask_once(standing, os.environ, said) if standing.is_usable else None
