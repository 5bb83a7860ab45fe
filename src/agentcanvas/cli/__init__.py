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
from typing import Any

import typer
from typer.core import TyperGroup

from agentcanvas._version import __version__
from agentcanvas.cli.manual import complaint_in_words, group_of, in_order, in_words
from agentcanvas.errors import AgentCanvasError

COMMANDS = {
    "agents": "agentcanvas.cli.agents",
    "approvals": "agentcanvas.cli.approvals",
    "attach": "agentcanvas.cli.attach",
    "audit": "agentcanvas.cli.audit",
    "deadletters": "agentcanvas.cli.deadletters",
    "demo": "agentcanvas.cli.demo",
    "doctor": "agentcanvas.cli.doctor",
    "flow": "agentcanvas.cli.flow",
    "hub": "agentcanvas.cli.hub",
    "init": "agentcanvas.cli.init",
    "login": "agentcanvas.cli.login",
    "message": "agentcanvas.cli.message",
    "pattern": "agentcanvas.cli.pattern",
    "proposals": "agentcanvas.cli.proposals",
    "report": "agentcanvas.cli.report",
    "resume": "agentcanvas.cli.resume",
    "retry": "agentcanvas.cli.retry",
    "review": "agentcanvas.cli.review",
    "run": "agentcanvas.cli.run",
    "runs": "agentcanvas.cli.runs",
    "sandbox": "agentcanvas.cli.sandbox",
    "schema": "agentcanvas.cli.schema",
    "send": "agentcanvas.cli.send",
    "serve": "agentcanvas.cli.serve",
    "show": "agentcanvas.cli.show",
    "stop": "agentcanvas.cli.stop",
    "store": "agentcanvas.cli.store",
    "tail": "agentcanvas.cli.tail",
    "tell": "agentcanvas.cli.tell",
    "token": "agentcanvas.cli.token",
    "trace": "agentcanvas.cli.trace",
    "transcript": "agentcanvas.cli.transcript",
    "trust": "agentcanvas.cli.trust",
    "undo": "agentcanvas.cli.undo",
}


class _Lazy(TyperGroup):
    """Looks a command up in its own module, so that one command does not pay for the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(in_order(COMMANDS))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            close = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            if close:
                ctx.fail(f"There is no command '{cmd_name}'; did you mean {close[0]}?")
            return None
        module = importlib.import_module(COMMANDS[cmd_name])
        command: Any = typer.main.get_command(module.app)
        command.name = cmd_name
        command.rich_help_panel = group_of(cmd_name)
        in_words(command, ctx)
        return command

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
