"""How ``--help`` and wrong usage read: words instead of Python's types, and commands by their use.

Typer writes these pages, and says of a flag that it is a ``<bool>``. What the commands are and do
is theirs.
"""

from __future__ import annotations

from typing import Any, Final

GROUPS: Final = {
    "Begin": {
        "doctor": (
            "Look at this machine and this workspace: what is there, what is missing, what to do."
        ),
        "demo": "Watch a planner, two coders and a reviewer mend a small repository.",
        "init": "Make this project a workspace: a folder for flows and records, and a first flow.",
        "run": "Run a team of agents on a request, in this workspace.",
        "serve": (
            "Serve this workspace until Ctrl-C: its runs, its API and its page, on this "
            "machine only."
        ),
    },
    "Decide": {
        "review": "Look at what waits for you and decide; the run then goes on here.",
        "proposals": (
            "List what was proposed and waits; with a run or a task, show the changes themselves."
        ),
        "undo": "Take back what a run landed in your files, the latest change first.",
    },
    "Look at runs": {
        "runs": "List the runs of this workspace, the newest first, and what they wait for.",
        "show": (
            "Show how a run stands: its tasks, what the checks and reviewers say, whom it "
            "waits for."
        ),
        "transcript": "Print what an agent said and did in a run, in full.",
        "attach": "Follow what an agent says and does, live, until its turn ends.",
        "report": "Say what happened in a run: who did what, what was decided and what landed.",
    },
    "Step in": {
        "tell": "Say something to an agent of a run that goes on; it hears it with its next turn.",
        "stop": "End a run and keep what is there: landed changes stay, proposals stay readable.",
        "resume": "Go on with a run where it was cut off, and watch it as run does.",
        "retry": (
            "Begin the same again as a new run: same flow, same request, the workspace as it "
            "is now."
        ),
    },
    "Teams": {
        "flow": "Make, show and check flows: who works together, how.",
        "pattern": "Ways of working together: look, simulate, make a flow, run one.",
        "trust": (
            "Show what this repository brings along that can run, what changed in it, and ask "
            "about it."
        ),
        "login": "Log a coding CLI in, in a home that belongs to AgentCanvas.",
    },
    "Agents in other processes": {
        "hub": (
            "Run a hub until Ctrl-C: agents connect over WebSocket or HTTP, each with a token "
            "of its own."
        ),
        "token": "Make, list and revoke the tokens by which agents are let into the hub.",
        "agents": (
            "List the agents that the hub knows: who is there, what they can do, what waits "
            "for them."
        ),
        "send": "Give an agent a task, or hand in a message as it stands.",
        "tail": "Show the newest messages in the hub, then every one as it comes, until Ctrl-C.",
        "trace": "Show a conversation as a tree: each message below the one it answers.",
        "approvals": (
            "See what agents want to do that needs your consent; grant or refuse it. Alone: "
            "list it."
        ),
        "deadletters": (
            "Look at messages that could not be delivered; resend or delete them. Alone: list them."
        ),
        "audit": (
            "Check and export the audit trail: each message sent, each token made or revoked, "
            "each consent, chained by hashes."
        ),
    },
    "Care and tools": {
        "sandbox": "Make a sandbox by hand, see what was changed in it, and clean up.",
        "store": "Check, copy and bring back the store.",
        "message": "Check and translate messages of the dialects MAC, SPEC-022 and ACP.",
        "schema": (
            "Export JSON Schemas and the AsyncAPI document, made from the code that reads the "
            "messages."
        ),
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


def in_words(command: Any, context: Any) -> None:
    """Let the help of a command, and of those below it, say what a person would type."""
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument":
            _name_argument(parameter)
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _word_of(parameter, context)
    for below in getattr(command, "commands", {}).values():
        in_words(below, context)


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
