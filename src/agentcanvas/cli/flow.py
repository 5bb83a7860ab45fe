"""``agentcanvas flow``: make flows, look at them, check them, see what they can need at most.

Nothing here runs a flow, so none of it asks for trust.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from agentcanvas.app.patterns import infos_here
from agentcanvas.cli.granted import print_grants
from agentcanvas.cli.here import folder_here, root_here
from agentcanvas.cli.init import From, Starter, make_flow, say_next, shown
from agentcanvas.cli.live.clean import clean, one_line
from agentcanvas.errors import FlowError
from agentcanvas.flows.axes import MaxRounds, QualityGate, Termination, TimeoutMs
from agentcanvas.flows.bounds import Bound, bounds
from agentcanvas.flows.check import Checked, check
from agentcanvas.flows.document import Document
from agentcanvas.flows.grants import grants
from agentcanvas.flows.guards import PERSON, Budgets
from agentcanvas.flows.load import FLOWS, SUFFIXES, find_flow, flow_files, read_flow
from agentcanvas.flows.model import Flow
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.problem import Problem
from agentcanvas.flows.settle import Settled, SettledReview, settle
from agentcanvas.flows.starters import STARTERS
from agentcanvas.flows.team import Agent, CwdMode

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Make, show and check flows: who works together, how.",
)

_MINUTE_MS: Final = 60_000
_LONGEST: Final = 2_000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A flow's name, or its file.")]


@app.command()
def new(
    name: Annotated[
        str | None, typer.Argument(help="Its name; that of the starter when not given.")
    ] = None,
    from_: From = Starter.SOLO,
    force: Annotated[bool, typer.Option("--force", help="Write over a flow of that name.")] = False,
) -> None:
    """Create a flow from a starter: a commented file to change as you like."""
    root = root_here()
    made = make_flow(root, name or from_.value, from_.value, force=force)
    print(f"Made {made.shown}: {STARTERS[from_.value]}. Change in it what you like.")
    print(made.about_trust)
    say_next(root, made.path, ("flow bounds {name}", "what can it need at most?"))


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the flows of this workspace, including those that cannot run."""
    root = root_here()
    found = [(path, _examined(path)[1]) for path in flow_files(root).values()]
    if as_json:
        print(_json([_told(path, checked) for path, checked in found]))
    elif not found:
        _say_none(root)
    else:
        rows = [
            (path.stem, *_gist(checked.flow), _verdict(checked).plain) for path, checked in found
        ]
        _print_rows([("flow", "agents", "what they do", ""), *rows])


@app.command()
def show(
    name: Name,
    as_json: AsJson = False,
    as_yaml: Annotated[
        bool, typer.Option("--yaml", help="Print the file as it is, sound or not.")
    ] = False,
) -> None:
    """Show who is in a flow and what they do, with all defaults filled in."""
    path = _find(name)
    document, checked = _examined(path)
    if as_yaml:
        _print_text(document)
        return
    flow = _sound(checked)
    settled = settle(flow, _patterns())
    if as_json:
        told = {
            "name": path.stem,
            "file": shown(path),
            "flow": msgspec.to_builtins(flow, order="deterministic"),
            "interactions": msgspec.to_builtins(settled, order="deterministic"),
            "warnings": [_problem(each) for each in checked.warnings],
        }
        print(_json(told))
        return
    print(f"{_plain(path.stem)}  {_plain(shown(path))}\n")
    _print_rows([("agent", "role", "runtime", "works in"), *map(_row, flow.agents)])
    for each in settled:
        _print_interaction(each)
    _console().print(Text("\ngiven", style="bold"))
    print_grants(_console(), grants(flow, _patterns()))
    for problem in checked.warnings:
        _console().print(_as_text(problem))


@app.command("check")
def check_(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Flows, by name or file; all when none is named."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All flows of this workspace.")] = False,
    as_json: AsJson = False,
) -> None:
    """List all problems of flows: where, which rule, and how to fix it.

    Exit code 0 when all are sound, 1 when one has an error. Warnings do not count as errors.
    """
    if names and all_:
        raise typer.BadParameter("name flows, or say --all")
    root = root_here()
    paths = [_find(name) for name in names] if names else list(flow_files(root).values())
    found = [(path, _examined(path)[1]) for path in dict.fromkeys(paths)]
    sound = not any(checked.errors for _, checked in found)
    if as_json:
        told = [
            _told(path, checked) | {"problems": [_problem(each) for each in checked.problems]}
            for path, checked in found
        ]
        print(_json({"sound": sound, "flows": told}))
    elif not found:
        _say_none(root)
    else:
        _print_findings(found)
    raise typer.Exit(0 if sound else 1)


@app.command("bounds")
def bounds_(name: Name, as_json: AsJson = False) -> None:
    """Show the most a flow can use before it ends, and what has no limit."""
    path = _find(name)
    found = bounds(_sound(_examined(path)[1]), _patterns())
    if as_json:
        print(_json({"name": path.stem, **msgspec.to_builtins(found)}))
        return
    total = msgspec.structs.replace(found.total, name="in all")
    rows = [_figures(each) for each in (*found.interactions, total)]
    _print_rows([("at most", "turns", "messages", "minutes", "tokens"), *rows], figures=True)
    print("\nA run that reaches a bound ends, says why and keeps what is there. Waiting for you")
    print("costs nothing.")
    if total.tokens is not None:
        print(f"Tokens are counted when a turn ends: at most {total.tokens_in_words}.")
    if total.on_top:
        print("\nOn top of that, in turns:")
        for sentence in total.on_top:
            _console().print(Text(f"  {_plain(sentence)}"))
    if total.unbounded:
        print("\nWithout a bound:")
        for sentence in total.unbounded:
            _console().print(Text(f"  {_plain(sentence)}", style="yellow"))


# Reading ----------------------------------------------------------------------------------------


def _find(name: str) -> Path:
    """A flow by its name, or a file as seen from here."""
    here = folder_here() / name
    if name.endswith(SUFFIXES) and here.is_file():
        return here
    return find_flow(root_here(), name)


def _examined(path: Path) -> tuple[Document, Checked]:
    document = read_flow(Path(shown(path)))
    return document, check(document, _patterns())


def _sound(checked: Checked) -> Flow:
    if checked.flow is None:
        for problem in checked.errors:
            print(f"agentcanvas: {_plain(str(problem))}", file=sys.stderr)
        raise typer.Exit(1)
    return checked.flow


# As JSON ----------------------------------------------------------------------------------------


def _json(value: object) -> str:
    # ASCII, so that what is in a file cannot command the terminal it is shown in.
    return json.dumps(value, indent=2)


def _told(path: Path, checked: Checked) -> dict[str, object]:
    return {
        "name": path.stem,
        "file": shown(path),
        "sound": not checked.errors,
        "errors": len(checked.errors),
        "warnings": len(checked.warnings),
    }


def _problem(problem: Problem) -> dict[str, Any]:
    """Every field, so that a reader need not know which have defaults."""
    told = msgspec.structs.asdict(problem)
    del told["at_key"]
    return told


# As text ----------------------------------------------------------------------------------------


def _patterns() -> Patterns:
    return infos_here(root_here(), os.environ)


def _plain(text: str) -> str:
    return one_line(text, _LONGEST)


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)


def _say_none(root: Path) -> None:
    print(f"There are no flows in {_plain(shown(root / FLOWS))}. Make one: agentcanvas flow new")


def _print_rows(rows: Sequence[Sequence[str]], *, figures: bool = False) -> None:
    """Columns side by side under a heading; figures stand to the right."""
    cleaned = [[_plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    for number, row in enumerate(cleaned):
        cells = [
            cell.rjust(width) if figures and index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        _console().print(Text("  ".join(cells).rstrip(), style="" if number else "dim"))


def _print_text(document: Document) -> None:
    if document.root is None and document.problems:
        raise FlowError(_plain(str(document.problems[0])))
    if sys.stdout.isatty():
        print(clean(document.text), end="")
    else:
        sys.stdout.buffer.write(document.content)


def _gist(flow: Flow | None) -> tuple[str, str]:
    if flow is None:
        return "", ""
    return str(len(flow.agents)), ", ".join(each.label for each in settle(flow, _patterns()))


def _row(agent: Agent) -> tuple[str, str, str, str]:
    in_workspace = agent.cwd_mode is CwdMode.WORKSPACE
    place = "the workspace, read-only" if in_workspace else "a sandbox"
    return agent.id, agent.role, _answers_by(agent), place


def _answers_by(agent: Agent) -> str:
    runtime = agent.runtime
    if runtime is None:
        return "cli auto"
    told = (runtime.backend_id, runtime.script, runtime.call, runtime.model, runtime.url)
    command = runtime.command
    line = command if isinstance(command, str) else " ".join(command or ())
    return " ".join(filter(None, (runtime.kind, *told, line)))


def _print_interaction(each: Settled) -> None:
    title = Text(f"\n{_plain(each.id)}", style="bold")
    title.append(f"  {_plain(each.pattern_id)}", style="cyan")
    if each.after:
        title.append(f"  after {_plain(', '.join(each.after))}", style="dim")
    told = {
        "roles": "; ".join(f"{role}: {', '.join(who)}" for role, who in each.roles.items()),
        "edges": "; ".join(f"{edge.source} → {edge.target}" for edge in each.edges),
        "ends": ", or ".join(map(_end, each.termination)),
        "review": _review(each.review),
        "checks": "; ".join(f"{check.name}: {check.command}" for check in each.checks)
        or "those found in the project",
        "files": ", and of these ".join(", ".join(globs) for globs in each.scope) or "all",
        "budgets": _budgets(each.budgets) or "none",
        "lands in": each.land.value,
    }
    console = _console()
    console.print(title)
    for what, words in told.items():
        if words:
            console.print(Text(f"  {what:<8}  ", style="dim").append(_plain(words), "default"))


def _end(end: Termination) -> str:
    match end:
        case MaxRounds(rounds=rounds):
            return _count(rounds, "round")
        case TimeoutMs(ms=ms):
            return f"{_figure(ms / _MINUTE_MS)} minutes"
        case QualityGate(metric=metric, op=op, value=value):
            return f"{metric} {op} {value:g}"
        case _:
            return str(end.__struct_config__.tag)


def _review(review: SettledReview) -> str:
    who = "you" if review.reviewer == PERSON else review.reviewer
    rounds = _count(review.max_iterations, "round")
    alone = "; what passes the checks lands unasked" if review.auto_approve else ""
    unverified = ", also unverified" if alone and review.allow_unverified else ""
    return f"{who}, at most {rounds}, then {review.escalation_on_max}{alone}{unverified}"


def _budgets(budgets: Budgets) -> str:
    said = msgspec.structs.asdict(budgets).items()
    return ", ".join(f"{_figure(value)} {what}" for what, value in said if value is not None)


def _print_findings(found: Sequence[tuple[Path, Checked]]) -> None:
    console = _console()
    for path, checked in found:
        for problem in checked.problems:
            console.print(_as_text(problem))
        console.print(Text(f"{_plain(path.stem)}: ", style="bold").append_text(_verdict(checked)))


def _as_text(problem: Problem) -> Text:
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)
    text = Text(f"{_plain(place)}: ", style="cyan")
    if not problem.is_error:
        text.append("warning: ", style="yellow")
    text.append(_plain(problem.sentence), style="default")
    if problem.suggestion:
        text.append(f"; {_plain(problem.suggestion)}", style="default")
    return text.append(f" [{problem.rule}]", style="dim")


def _verdict(checked: Checked) -> Text:
    errors, warnings = len(checked.errors), len(checked.warnings)
    text = Text(_count(errors, "error"), "red") if errors else Text("sound", "green")
    return text.append(f", {_count(warnings, 'warning')}", "yellow") if warnings else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _figures(bound: Bound) -> tuple[str, ...]:
    return bound.name, *map(_figure, (bound.turns, bound.messages, bound.minutes, bound.tokens))


def _figure(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:,.10g}"
