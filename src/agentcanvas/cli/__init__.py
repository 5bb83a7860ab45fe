"""The command line: one file a command, each imported only when it is used.

Commands read arguments and print; what they do is done by the layers below.
"""

from __future__ import annotations

import codecs
import difflib
import importlib
import io
import os
import sys
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from agentcanvas._version import __version__
from agentcanvas.cli.manual import GROUPS, complaint_in_words, in_words
from agentcanvas.errors import AgentCanvasError

COMMANDS: Final = {
    name: (heading, sentence)
    for heading, members in GROUPS.items()
    for name, sentence in members.items()
}
_LISTING: Final = "agentcanvas.listing"


class _Lazy(TyperGroup):
    """Looks a command up in its own module, so that one command does not pay for the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            close = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            if close:
                ctx.fail(f"There is no command '{cmd_name}'; did you mean {close[0]}?")
            return None
        heading, sentence = COMMANDS[cmd_name]
        if ctx.meta.get(_LISTING):
            return TyperCommand(cmd_name, help=sentence, rich_help_panel=heading)
        module = importlib.import_module(f"agentcanvas.cli.{cmd_name}")
        command: Any = typer.main.get_command(module.app)
        command.name = cmd_name
        command.rich_help_panel = heading
        in_words(command, ctx, cmd_name)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.meta[_LISTING] = True
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        ctx.meta[_LISTING] = True
        return super().shell_complete(ctx, incomplete)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            wrong.message = complaint_in_words(wrong.message)
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        for parameter in own:
            parameter.metavar = parameter.metavar or ""
        return own


app = typer.Typer(
    name="agentcanvas",
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"agentcanvas {__version__}")
        raise typer.Exit


@app.callback()
def agentcanvas(
    context: typer.Context,
    version: bool = typer.Option(
        False,  # noqa: FBT003 - the default of a flag
        "--version",
        help="Print the version and exit.",
        callback=_print_version,
        is_eager=True,
    ),
) -> None:
    """Run a team of coding agents on your repository, and let nothing land without a verdict.

    Without a command, in a terminal: serve this workspace, and say what can be done here.
    """
    del version  # its callback has done everything
    if context.invoked_subcommand is not None:
        return
    if not sys.stdout.isatty():
        context.get_help()  # which prints it
        return
    importlib.import_module("agentcanvas.cli.bare").begin()


def _let_anything_be_said(stream: Any) -> None:
    """Say arrows and names of any language also where the locale has no letters for them.

    A terminal shows a question mark for what it does not have; a program reads UTF-8, as from git.
    """
    if not isinstance(stream, io.TextIOWrapper):  # closed, or a test's
        return
    if stream.isatty() and codecs.lookup(stream.encoding).name != "utf-8":
        stream.reconfigure(errors="replace")
    else:
        # What is not text at all, such as a byte of a file's name, is shown as its number.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def main() -> None:
    """Run the command line; an error of ours is one sentence, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        _let_anything_be_said(stream)
    try:
        try:
            app()
        finally:
            # Here and not when Python ends: what fails there is printed as a traceback.
            sys.stdout.flush()
    except AgentCanvasError as error:
        importlib.import_module("agentcanvas.cli.offices").complain(str(error))
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nobody is left to tell, and what is still
        # in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
