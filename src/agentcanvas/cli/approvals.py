"""``agentcanvas approvals``: tasks that agents may give each other only with your consent (C5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agentcanvas.cli.hubs import AsJson, Data, Hub, at_hub
from agentcanvas.cli.live.clean import lines_of, one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import console_here
from agentcanvas.errors import NotFound, ValidationError
from agentcanvas.protocol.person import PersonAnswer, PersonAsk, is_of_hub

app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    help="List tasks that need your consent, and grant or refuse them.",
)

NONE = "Nothing waits for your consent."
_ERROR = "error:"
_SHOWN_CHARS = 8
_LINES = 12

Which = Annotated[
    str,
    typer.Argument(metavar="ID", help="As it is listed; a beginning that only one has is fine."),
]


@app.callback()
def approvals(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """List what waits, when no command is given."""
    context.obj = data
    if context.invoked_subcommand is None:
        _list(data, as_json=as_json)


@app.command(name="list")
def list_(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """List the tasks that wait for your consent, and critical errors to acknowledge."""
    _list(data or context.obj, as_json=as_json)


@app.command()
def grant(context: typer.Context, which: Which, data: Data = None) -> None:
    """Let a task be delivered, or acknowledge an error."""
    _answer(data or context.obj, which, {"decision": "approve"}, "granted; it is delivered")


@app.command()
def refuse(
    context: typer.Context,
    which: Which,
    reason: Annotated[
        str, typer.Option("--reason", "-r", help="Told to the one who wanted it.")
    ] = "",
    data: Data = None,
) -> None:
    """Do not let a task be delivered; its sender is told, with the reason."""
    content = {"decision": "refuse", "reason": reason}
    _answer(data or context.obj, which, content, "refused; its sender is told")


def _list(data: Path | None, *, as_json: bool) -> None:
    async def work(hub: Hub) -> int:
        found = await _of_the_hub(hub)
        if as_json:
            for ask in found:
                print(one_json(ask))
            return ExitCode.DONE
        if not found:
            print(NONE)
        console = console_here()
        for ask in found:
            for line in _drawn(ask, hub):
                console.print(line, soft_wrap=True)
        return ExitCode.DONE

    at_hub(work, data)


def _answer(data: Path | None, which: str, content: Any, done: str) -> None:
    async def work(hub: Hub) -> int:
        ask = _pick(await _of_the_hub(hub), which)
        if ask.scope.startswith(_ERROR):
            await hub.office.answer(ask.ask_id, PersonAnswer("seen", ask.person))
            print(f"{ask.ask_id[:_SHOWN_CHARS]} is seen.")
            return ExitCode.DONE
        await hub.office.answer(ask.ask_id, PersonAnswer(content, ask.person))
        kept = "" if hub.is_live else f" once the hub runs ({hub.start})"
        print(f"{ask.ask_id[:_SHOWN_CHARS]} is {done}{kept}.")
        return ExitCode.DONE

    at_hub(work, data)


async def _of_the_hub(hub: Hub) -> list[PersonAsk]:
    """What a run has asked is for ``review``."""
    return [ask for ask in await hub.office.asks() if is_of_hub(ask)]


def _pick(asks: Sequence[PersonAsk], which: str) -> PersonAsk:
    found = [ask for ask in asks if ask.ask_id.startswith(which)] if which else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ValidationError(f"{one_line(which)} may be {len(found)} of them; write more of it.")
    raise NotFound(
        f"Nothing waits under {one_line(which)}. See what does: agentcanvas approvals list"
    )


def _drawn(ask: PersonAsk, hub: Hub) -> list[Text]:
    short = ask.ask_id[:_SHOWN_CHARS]
    first, *more = lines_of(ask.text)
    head = Text(f"{short}  ", style="bold")
    head.append(first)
    body = [Text(f"    {line}", style="dim") for line in more[:_LINES] if line]
    if ask.scope.startswith(_ERROR):
        return [head, *body, Text(f"    seen:    {hub.command('approvals', 'grant', short)}")]
    return [
        head,
        *body,
        Text(f"    grant:   {hub.command('approvals', 'grant', short)}"),
        Text(f"    refuse:  {hub.command('approvals', 'refuse', short)}"),
    ]
