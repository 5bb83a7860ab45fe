"""``agentcanvas pattern``: look at ways of working together, try them for nothing, use one."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from agentcanvas.app.patterns import PROMPTS, repertoire_here
from agentcanvas.app.workspace import FOLDER
from agentcanvas.cli.casting import Casting, casting_of, kinds_of
from agentcanvas.cli.here import root_here
from agentcanvas.cli.init import say_next, write_flow
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.words import count
from agentcanvas.errors import FlowError
from agentcanvas.flows.axes import Sync
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.ends import own_ends
from agentcanvas.flows.model import Flow
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.flows.subgraph import subgraph, template
from agentcanvas.pattern import Pattern
from agentcanvas.runs.manners import RIGHT, WRONG
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.runs.scene import ends_of
from agentcanvas.runs.simulation import NONE, OTHER, Simulation, simulate

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="List, show and simulate patterns of teamwork; make a flow of one, or run it.",
)

_BAR: Final = 30
_RESULTS: Final = {NONE: "none (it ended without one)", OTHER: "other (one without an answer)"}
PROMPTS_FOLDER: Final = f"{FOLDER}/{PROMPTS}"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="ID", help="The pattern, such as debate_judge.")]
Players = Annotated[
    list[str] | None,
    typer.Option(
        "--players",
        metavar="ROLE=N",
        help="How many agents play a role; 0 has a system node built in. Repeatable.",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="KEY=VALUE", help="An option of the pattern. Repeatable."),
]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the patterns, your own included."""
    here = _here()
    told = [_told(here, name) for name in here.patterns]
    if as_json:
        told += [{"id": name, "refused": reason} for name, reason in here.refused.items()]
        print(_json(told))
        return
    width = max(len(each["id"]) for each in told)
    for each in told:
        line = Text(f"{each['id']:<{width}}  ", style="cyan")
        line.append(f"{each['gist']}", "default")
        _console().print(line)
    if here.refused:
        print()
    for name, reason in here.refused.items():
        _console().print(Text(f"{name} is refused: ", style="red").append(reason, "default"))
    _warn(here)
    print("\nMore about one: agentcanvas pattern show ID")


@app.command()
def show(
    name: Name,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print what its agents are asked, word for word.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a pattern: its roles, options, end conditions and worst case."""
    here = _here()
    pattern, info = _find(here, name)
    found = subgraph(info)
    asked = _prompts(here, name)
    if as_json:
        print(_json(_told(here, name) | {"template": template(info), "prompts": asked}))
        return
    console = _console()
    _warn(here)
    if prompts:
        for file, text in asked.items():
            console.print(Text(f"# {PROMPTS_FOLDER}/{file}.md", style="cyan"))
            console.print(Text(f"{text.strip()}\n"))
        return
    console.print(Text(found.label, style="bold"))
    console.print(one_line(_plain(_doc(pattern)), 2_000))
    duties = {role.name: role.duty for role in pattern.roles}
    console.print(Text("\nroles", style="dim"))
    for role in info.roles:
        marks = [
            m for m, on in (("system node", role.system), ("changes files", role.writes)) if on
        ]
        words = f"{role.count}; {duties.get(role.name, '')}" + "".join(f" ({m})" for m in marks)
        console.print(Text(f"  {role.name:<16} ", style="cyan").append(words, "default"))
    console.print(Text("\noptions (data.params)", style="dim"))
    for key, value in msgspec.to_builtins(pattern.options()).items():
        console.print(Text(f"  {key:<16} ", style="cyan").append(json.dumps(value), "default"))
    if pattern.options.__doc__:
        console.print(Text("  " + one_line(_plain(pattern.options.__doc__), 600), style="dim"))
    console.print(Text("\nsync (data.sync)", style="dim"))
    console.print(Text(f"  {', '.join(_syncs(info))}; the first if you do not say"))
    console.print(Text("\nends", style="dim"))
    for end in msgspec.to_builtins(info.termination):
        console.print(Text(f"  {_end(end)}"))
    most = bounds(
        Flow(version="0.2", agents=found.agents, interactions=(found.interaction,)), here.infos
    )
    console.print(
        f"\nAt most {count(most.total.turns, 'turn')} with {Casting(info).team}."
        if most.total.turns is not None
        else "\nIts turns have no bound of their own; give it budgets."
    )
    if asked:
        print(f"\nPrompts:    agentcanvas pattern show {name} --prompts")
        print(f"            Yours go before them, by the same name, in {PROMPTS_FOLDER}/.")
    print(f"\nTry it:     agentcanvas pattern simulate {name} --agents noisy:0.7")
    print(f"Use it:     agentcanvas pattern new-flow {name}")


@app.command("new-flow")
def new_flow(
    name: Name,
    flow: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The flow's name; the pattern's if none.")
    ] = None,
    *,
    players: Players = None,
    param: Params = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a flow of that name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a flow that runs a pattern, to change as you like."""
    here = _here()
    _, info = _find(here, name)
    casting = casting_of(here, info, players, param)
    root = root_here()
    text = casting.flow_text()
    made = write_flow(root, flow or name, text, force=force, patterns=here.infos)
    if as_json:
        print(_json({"flow": made.path.stem, "file": made.shown}))
        return
    print(f"Made {made.shown}: {casting.subgraph.label} with {casting.team}.")
    print(made.about_trust)
    say_next(root, made.path, ("flow bounds {name}", "what can it need at most?"))


@app.command("simulate")
def simulate_(
    name: Name,
    *,
    agents: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Who plays: noisy:0.7 (right with that probability), noisy:0.7:3 (three different "
            "wrong answers), perfect, failing:0.2; or by role: judge=perfect,debater=noisy:0.6.",
        ),
    ] = "noisy:0.7",
    runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="How often.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed says the same.")] = 0,
    players: Players = None,
    param: Params = None,
    as_json: AsJson = False,
) -> None:
    """Run a pattern many times with simulated agents, and show results and cost.

    No model is called, nothing is written. It is a model of independent errors, not of
    language: use it to choose between patterns and sizes of a team before you pay for one.
    """
    here = _here()
    pattern, info = _find(here, name)
    casting = casting_of(here, info, players, param, engine_too=False)
    cast, kinds = casting.cast, kinds_of(agents, casting.cast)
    given = dict(casting.params)
    if "choices" in {each.name for each in msgspec.structs.fields(pattern.options)}:
        given.setdefault("choices", [RIGHT, WRONG])
    found = simulate(
        pattern,
        cast,
        kinds,
        here.options(name, given),
        ends=ends_of(own_ends(info, given)),
        runs=runs,
        seed=seed,
        patterns=tuple(here.patterns.values()),
        first_come=info.sync is Sync.ASYNC,
    )
    if as_json:
        told = {"pattern": name, "players": cast, "agents": agents, "seed": seed}
        print(_json(told | msgspec.to_builtins(found)))
        return
    who = ", ".join(count(len(agents), role) for role, agents in cast.items() if agents)
    print(f"{name}: {count(runs, 'run')} with {who}; {agents}, seed {seed}\n")
    _print_simulation(found)


@app.command()
def run(
    name: Name,
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="What is to be done.")],
    *,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Every agent is this command, which reads its message on standard input; your "
            "coding CLI if not given.",
        ),
    ] = None,
    players: Players = None,
    param: Params = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON event per line.")] = False,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="Never ask in this terminal.")
    ] = False,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="Land what passes the checks without asking.")
    ] = False,
) -> None:
    """Run a pattern once, without making a flow of it first."""
    from agentcanvas.cli.run import run_text  # noqa: PLC0415 - only this command needs it

    here = _here()
    _, info = _find(here, name)
    run_text(
        name,
        casting_of(here, info, players, param).flow_text(command),
        request,
        patterns=here.infos,
        as_json=as_json,
        no_input=no_input,
        auto_approve=auto_approve,
    )


# What the commands speak of -----------------------------------------------------------------------


def _here() -> Repertoire:
    return repertoire_here(root_here(), os.environ)


def _warn(here: Repertoire) -> None:
    for sentence in here.odd_prompts:
        warning = Text("warning: ", style="yellow").append(sentence, "default")
        Console(stderr=True, highlight=False, soft_wrap=True).print(warning)


def _find(here: Repertoire, name: str) -> tuple[Pattern, PatternInfo]:
    if name in here.refused:
        raise FlowError(f"The pattern {name} is refused: {here.refused[name]}")
    if name not in here.patterns:
        raise FlowError(f"There is no pattern {name}; {did_you_mean(name, list(here.patterns))}")
    return here.patterns[name], here.info(name)


def _told(here: Repertoire, name: str) -> dict[str, Any]:
    pattern, info = _find(here, name)
    return {
        "id": name,
        "gist": _gist(pattern),
        "label": subgraph(info).label,
        "topologies": [each.value for each in info.topologies],
        "sync": [each.value for each in _syncs(info)],
        "roles": [
            {"name": role.name, "count": role.count, "system": role.system, "writes": role.writes}
            for role in info.roles
        ],
        "options": msgspec.to_builtins(pattern.options()),
        "termination": msgspec.to_builtins(info.termination),
    }


def _syncs(info: PatternInfo) -> list[Sync]:
    """How it may run, its own way first."""
    known = [each for each in Sync if info.goes_on or each is not Sync.ASYNC]
    return sorted(known, key=lambda each: each is not info.sync)


def _gist(pattern: Pattern) -> str:
    """What its file says first of it."""
    _, _, about = _doc(pattern).partition(": ")
    first = (about or (type(pattern).__doc__ or "").strip()).partition(". ")[0]
    return _plain(first).removesuffix(".")


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())


def _prompts(here: Repertoire, name: str) -> dict[str, str]:
    """The words of its roles, as the user has them."""
    texts = here.words.templates
    return {file: text for file, text in texts.items() if file.startswith(f"{name}.")}


def _doc(pattern: Pattern) -> str:
    import inspect  # noqa: PLC0415 - slow to import, and only one command needs it

    module = inspect.getmodule(type(pattern))
    return " ".join((getattr(module, "__doc__", "") or "").split())


def _end(end: dict[str, Any]) -> str:
    more = " ".join(str(value) for key, value in end.items() if key != "type")
    minutes = f" ({end['ms'] / 60_000:g} minutes)" if "ms" in end else ""
    return f"{end['type']} {more}".strip() + minutes


# As text ------------------------------------------------------------------------------------------


def _print_simulation(found: Simulation) -> None:
    results = {_RESULTS.get(name, name): times for name, times in found.results.items()}
    _print_shares("result", results, found.runs)
    _print_shares("ended by", found.reasons, found.runs)
    print(f"turns     {found.turns:.1f} on average, at most {found.turns_most:,}")
    print(f"messages  {found.messages:.1f} on average, at most {found.messages_most:,}")
    print(f"minutes   {found.minutes:.1f} on average, at about half a minute a turn")


def _print_shares(title: str, counts: dict[str, int], runs: int) -> None:
    width = max(map(len, counts), default=0)
    print(title)
    for words, times in counts.items():
        bar = "█" * max(1, round(_BAR * times / runs))
        _console().print(Text(f"  {words:<{width}}  {times / runs:6.1%}  {bar}"))
    print()


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
