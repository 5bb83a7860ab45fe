"""``agentcanvas init``: make a folder a workspace, with a first flow.

Making a flow from a starter is here too, since ``flow new`` does the same in a workspace that is
there already.
"""

from __future__ import annotations

import os
import re
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from agentcanvas.app.crew import check_crew
from agentcanvas.app.patterns import infos_here
from agentcanvas.app.trust import OwnFile
from agentcanvas.app.workspace import FOLDER, ensure_folder
from agentcanvas.cli.here import folder_here, root_here
from agentcanvas.cli.live.clean import one_line
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentCanvasError, FlowError, ResourceError
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.document import Document, read_document
from agentcanvas.flows.load import SUFFIXES, flow_files, load_flow, save_flow
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.starters import STARTERS, starter
from agentcanvas.flows.trust import TrustDecision
from agentcanvas.runs.evidence import checks_here

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_NAME: Final = re.compile(r"[^\W_][\w.-]{0,63}")


class Starter(StrEnum):
    """The starters as words of the command line."""

    SOLO = "solo"
    TEAM = "team"


From = Annotated[
    Starter,
    typer.Option("--from", help="; ".join(f"{name}: {what}" for name, what in STARTERS.items())),
]


@app.command()
def init(
    from_: From = Starter.SOLO,
    *,
    here: Annotated[
        bool, typer.Option("--here", help="Make it this folder, whatever is above it.")
    ] = False,
) -> None:
    """Set up a workspace: a folder for flows and records, and a first flow.

    The workspace is the nearest folder above that is one already, else the top of the git
    repository, else this folder. Running it again changes nothing. A part of a large repository
    becomes a workspace of its own with --here.
    """
    root = folder_here().resolve() if here else root_here()
    was_there = (root / FOLDER / ".gitignore").exists()
    # To stand in a home folder that is a repository, and say it there, is to choose it.
    chosen = (root / ".git").exists() and root == folder_here().resolve()
    folder = ensure_folder(root, is_named=here or chosen)
    flows = flow_files(root)
    done = []
    if not was_there:
        done.append(f"Made {shown(folder)}/; git keeps flows, skills, patterns and memory of it.")
    if not flows:
        made = make_flow(root, from_.value, from_.value)
        done += [f"Made {made.shown}: {STARTERS[from_.value]}.", made.about_trust]
        flows = flow_files(root)
    state = "." if done else " already; nothing was changed."
    print(f"{one_line(str(root), 1_000)} is a workspace{state}")
    for sentence in (*done, _about_checks(root)):
        print(sentence)
    first = flows.get(from_.value) or next(iter(flows.values()))
    say_next(root, first, ("doctor", "is everything there that a run needs?"))


def _about_checks(root: Path) -> str:
    found = ", ".join(check.command for check in checks_here(root))
    if found:
        return f"Every change will be judged by what was found here: {found}."
    return (
        "No tests were found here, so no change can be verified; name commands under checks: in "
        "the flow."
    )


# Making a flow ----------------------------------------------------------------------------------


class Made(msgspec.Struct, frozen=True):
    """A flow that was just written, and what is to be said about running it."""

    path: Path
    about_trust: str

    @property
    def shown(self) -> str:
        return shown(self.path)


def make_flow(root: Path, name: str, starter_name: str, *, force: bool = False) -> Made:
    """Write a starter into a workspace."""
    return write_flow(root, name, starter(starter_name), force=force)


def write_flow(
    root: Path, name: str, text: str, *, force: bool = False, patterns: Patterns = CATALOGUE
) -> Made:
    """Write a flow into a workspace; what the user makes here is trusted by that (D43)."""
    path = _free_place(root, _fit_name(name), force=force)
    document = read_document(text, str(path))
    try:
        decision = _save_own(root, path, document, patterns)
    except ResourceError as wrong:
        # Without a place for the record of what is trusted, the flow is still worth having.
        save_flow(path, document, patterns)
        return Made(path, f"It may not run yet: {one_line(str(wrong), 1_000)}")
    if decision.may_run:
        return Made(path, "You made it, so it is trusted; after a change: agentcanvas trust")
    return Made(path, f"It may not run yet. {one_line(decision.sentence, 1_000)}")


def _fit_name(name: str) -> str:
    """A name that files, logs and addresses can hold; a suffix is none of it."""
    bare = name.removesuffix(SUFFIXES[0]).removesuffix(SUFFIXES[1])
    if not _NAME.fullmatch(bare):
        raise FlowError(
            f'"{one_line(name, 80)}" cannot be the name of a flow; use up to 64 letters, digits, '
            "dots, - and _, beginning with a letter or a digit."
        )
    return bare


def _free_place(root: Path, name: str, *, force: bool) -> Path:
    folder = ensure_folder(root) / "flows"
    alike = {known.casefold(): path for known, path in flow_files(root).items()}
    path = alike.get(name.casefold(), folder / f"{name}{SUFFIXES[0]}")
    for place in (folder, path):
        if place.is_symlink():
            raise FlowError(f"{shown(place)} is a link and is not written through; move it away.")
    if folder.exists() and not folder.is_dir():
        raise FlowError(f"{shown(folder)} is not a folder, and flows belong there; move it away.")
    if path.exists() and not force:
        raise FlowError(
            f"There is a flow {path.stem} already, {shown(path)}, and it was left as it is; take "
            "another name, or write over it with --force."
        )
    return path


def _save_own(root: Path, path: Path, document: Document, patterns: Patterns) -> TrustDecision:
    own = OwnFile(root, path.relative_to(root).as_posix(), os.environ)
    save_flow(path, document, patterns)
    return own.trust(document.content, SystemClock())


def shown(path: Path) -> str:
    """A path as it can be typed here."""
    return os.path.relpath(path)


def say_next(root: Path, path: Path, *looks: tuple[str, str]) -> None:
    """How to go on with a flow: ``looks`` are commands of ours, then what it takes to run it."""
    # A name may come from a repository, and these lines are made to be copied.
    name = shlex.quote(one_line(path.stem))
    steps = [(f"agentcanvas {words.format(name=name)}", what) for words, what in looks]
    steps.append((f"agentcanvas flow show {name}", "who is in the team, and what it does"))
    if why := _cannot_start(root, path):
        print(f"\nIt cannot run yet. {why}")
        steps += [
            (f"edit {shlex.quote(one_line(shown(path)))}", "say what answers for each agent"),
            (f"agentcanvas flow check {name}", "is it sound after the change?"),
            ("agentcanvas trust", "it changed, so say that it may run"),
        ]
    steps.append((f'agentcanvas run {name} "what you want done"', "let it work; you decide"))
    print("\nNext:")
    width = max(len(command) for command, _ in steps)
    for command, what in steps:
        print(f"  {command:<{width}}  # {what}")


def _cannot_start(root: Path, path: Path) -> str:
    """Why a run of this flow would end before it began; empty if it would not."""
    try:
        check_crew(load_flow(path, infos_here(root, os.environ)).agents, root)
    except AgentCanvasError as wrong:
        return one_line(str(wrong), 1_000)
    return ""
