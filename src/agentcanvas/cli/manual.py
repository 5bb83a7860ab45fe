"""How ``--help`` and wrong usage read: words instead of Python's types, and commands by their use.

Typer writes these pages, and says of a flag that it is a ``<bool>``. What the commands are and do
is theirs.
"""

from __future__ import annotations

from typing import Any, Final

GROUPS: Final = {
    "Get started": {
        "doctor": (
            "Check what a run needs on this machine and in this workspace, and say what to do."
        ),
        "demo": "Watch a planner, two coders and a reviewer fix a small repository.",
        "init": "Set up a workspace: a folder for flows and records, and a first flow.",
        "run": "Run a team of agents on a request, in this workspace.",
        "serve": (
            "Open this workspace in the browser and serve it until Ctrl-C, on this machine only."
        ),
    },
    "Decide": {
        "review": "Decide about what waits for you; the run then continues here.",
        "proposals": "List the proposals that wait; with a run or a task, show their changes.",
        "undo": "Take back what a run landed in your files, the latest change first.",
    },
    "Look at runs": {
        "runs": "List the runs of this workspace, the newest first, and what they wait for.",
        "show": "Show the state of a run: its tasks, checks and verdicts, and whom it waits for.",
        "transcript": "Print what an agent said and did in a run, in full.",
        "attach": "Follow live what an agent says and does, until its turn ends.",
        "report": "Report on a run: who did what, what was decided and what landed.",
    },
    "Intervene": {
        "tell": "Send a message to an agent at work; it reads it at the start of its next turn.",
        "stop": "End a run and keep what is there: landed changes stay, proposals stay readable.",
        "resume": "Continue a run that was stopped or cut off, and watch it.",
        "retry": (
            "Repeat a run as a new one: same flow, same request, the workspace as it is now."
        ),
    },
    "Teams": {
        "flow": "Make, show and check flows: who works together, how.",
        "pattern": "List, show and simulate patterns of teamwork; make a flow of one, or run it.",
        "trust": (
            "Show what in this repository may run, what changed, and ask whether you allow it."
        ),
        "login": "Give a coding CLI a login of its own, in a home that belongs to AgentCanvas.",
    },
    "Agents in other processes": {
        "hub": (
            "Run a hub until Ctrl-C: agents connect over WebSocket or HTTP, each with a token "
            "of its own."
        ),
        "token": "Create, list and revoke the tokens that let agents into the hub.",
        "agents": (
            "List the agents the hub knows: who is present, what they can do, what waits for them."
        ),
        "send": "Give an agent a task, or send a message as it is.",
        "tail": "Show the latest messages in the hub, then each new one, until Ctrl-C.",
        "trace": "Show a conversation as a tree: each message below the one it answers.",
        "approvals": "List tasks that need your consent, and grant or refuse them.",
        "deadletters": "List messages that could not be delivered, and resend or delete them.",
        "audit": (
            "Check and export the audit trail: each message sent, each token made or revoked, "
            "each consent, chained by hashes."
        ),
    },
    "Maintenance and tools": {
        "sandbox": "Make a sandbox by hand, see what changed in it, and clean up.",
        "store": "Check, back up and restore the database of a workspace or a hub.",
        "message": "Check and translate messages of the dialects MAC, SPEC-022 and ACP.",
        "schema": "Export the JSON Schemas of all messages, and the AsyncAPI document.",
    },
}
"""Every command under the heading of its use, with the first sentence of its own help.

So the list of them is shown without importing any.
"""

_WORDS: Final = {
    "str": "TEXT",
    "int": "N",
    "float": "N",
    "int range": "N",
    "float range": "N",
    "path": "PATH",
    "file": "FILE",
}


def in_words(command: Any, context: Any, words: str) -> None:
    """Let the help of a command, and of those below it, say what a person would type."""
    _end_with_examples(command, words)
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument":
            _name_argument(parameter)
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _word_of(parameter, context)
    for name, below in getattr(command, "commands", {}).items():
        in_words(below, context, f"{words} {name}")


def _end_with_examples(command: Any, words: str) -> None:
    # Typer's own place for them, the epilogue, runs lines together.
    draw = command.format_help

    def format_help(context: Any, formatter: Any) -> None:
        # Only who reads them pays for them.
        from agentcanvas.cli.examples import print_examples  # noqa: PLC0415  # for the reason above

        draw(context, formatter)
        print_examples(words)

    command.format_help = format_help


def _name_argument(argument: Any) -> None:
    name = argument.metavar = argument.metavar or argument.name.upper()
    whole = name if argument.required else f"[{name}]"
    if argument.nargs != 1 and " " not in name:
        whole += "..."
    # A name with words of its own, such as [FLOW] REQUEST, says all there is to say.
    usage = name if " " in name else whole
    argument.get_usage_pieces = lambda _context: [usage]
    argument.display_type_rich = lambda **_context: None


def _word_of(option: Any, context: Any) -> str | None:
    """What stands for the value of an option: a choice as it is, else a word for its type."""
    display = getattr(option, "display_type", None)
    if display is None:
        return None
    kind = str(display(context)).strip("<>")
    inner = kind.removeprefix("list[").removesuffix("]")
    return _WORDS.get(inner, inner)


def complaint_in_words(complaint: str) -> str:
    """What Typer's checker says of a value, without the names of its own machinery."""
    said = complaint.removeprefix("Value error, ").replace("Input should be", "it should be")
    return said.partition(", unable to parse")[0]
