"""``agentcanvas run``: start a run, watch it, and answer what it asks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agentcanvas.agents.cassette import Tape, tape_folder
from agentcanvas.app.composing import (
    COMMAND_SETTING,
    Composed,
    Wishes,
    composed_of,
    flow_for,
    flow_named,
    names_a_flow,
    nearly_a_flow,
    with_wishes,
)
from agentcanvas.app.options import refuse_slips, told_before
from agentcanvas.app.workspace import ensure_folder
from agentcanvas.cli import offices
from agentcanvas.cli.here import folder_here, root_here
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import Terminal, console_here
from agentcanvas.cli.live.watching import Manner, Watching
from agentcanvas.cli.live.words import quoted
from agentcanvas.cli.offices import finish, misused
from agentcanvas.errors import ValidationError
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.hub.images import keep_image, read_image
from agentcanvas.runs.events import TurnStarted
from agentcanvas.runs.office import Office, RunOrder

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FLOW] [REQUEST]",
            help="A flow of this workspace or a path to one, and what is to be done. A request "
            "alone is given to one worker, and you review what it proposes.",
            show_default=False,
        ),
    ] = None,
    *,
    flow: Annotated[
        str | None,
        typer.Option(
            "--flow",
            metavar="FLOW",
            help="The flow, where the words are the request alone.",
            show_default=False,
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="CMD",
            help="The agent for a request without a flow: a command that reads the task on its "
            "standard input, or where it says {prompt} or {prompt_file}. "
            "AGENTCANVAS_COMMAND if not given, else the first coding CLI that works here.",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="MODE",
            help="What that agent reaches: none, model (the services whose keys --env names, and "
            "it never sees the keys), hosts with commas between (pypi.org,*.example.org), or open. "
            "None if not given.",
            show_default=False,
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME",
            help="A variable of yours that this agent may see, such as its key; repeatable.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            metavar="[NAME=]CMD",
            help="A command that judges each change, such as 'tests=npm test'; repeatable.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope", metavar="GLOB", help="Files that may change; repeatable.", show_default=False
        ),
    ] = None,
    setup: Annotated[
        str,
        typer.Option(
            "--setup",
            metavar="CMD",
            help="A command that makes what git ignores and the agents need; once, before they "
            "begin.",
            show_default=False,
        ),
    ] = "",
    image: Annotated[
        list[Path] | None,
        typer.Option(
            "--image",
            metavar="FILE",
            help="An image to look at, such as a screenshot: PNG, JPEG, GIF or WebP; repeatable.",
            show_default=False,
        ),
    ] = None,
    bring: Annotated[
        list[str] | None,
        typer.Option(
            "--bring",
            metavar="GLOB",
            help="Files that git ignores and the agents need all the same; repeatable.",
            show_default=False,
        ),
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Make the plan, and do nothing else.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept the plan without looking at it.")
    ] = False,
    auto_approve: Annotated[
        bool,
        typer.Option("--auto-approve", help="Land what passes the checks without asking you."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON event per line, and nothing else.")
    ] = False,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="Never ask in this terminal.")
    ] = False,
    unsafe: Annotated[
        bool,
        typer.Option("--unsafe", help="Let agents run without confinement. This is recorded."),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Start it in the background and return at once.")
    ] = False,
    record: Annotated[
        str,
        typer.Option(
            "--record",
            metavar="NAME",
            help="Keep what the agents say and do in .agentcanvas/cassettes/NAME.",
            show_default=False,
        ),
    ] = "",
    replay: Annotated[
        str,
        typer.Option(
            "--replay",
            metavar="NAME",
            help="Take what the agents say and do from there, without calling them; a turn that is "
            "no longer the one that was recorded fails, and says what differs.",
            show_default=False,
        ),
    ] = "",
    budget_turns: Annotated[
        int | None, typer.Option("--budget-turns", min=1, metavar="N", help="At most N turns.")
    ] = None,
    budget_minutes: Annotated[
        float | None,
        typer.Option("--budget-minutes", min=0.1, metavar="N", help="At most N minutes of work."),
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(
            "--parallel",
            min=1,
            max=100,
            metavar="N",
            help="How many agents may work at the same time.",
        ),
    ] = 5,
) -> None:
    """Run a team of agents on a request, in this workspace.

    Nothing lands without a verdict: each proposed change is shown to you with the results of the
    checks, and you apply it, send it back or reject it, here or later with agentcanvas review.

    Ctrl-C once stops the run and keeps what is there, twice ends at once; a run that only waits for
    you is left waiting.

    Exit codes: 0 done, 1 an error, 2 wrong usage, 3 it waits for you (the commands are printed),
    4 it ended without reaching its goal, 130 stopped by Ctrl-C.
    """
    wishes = Wishes(
        checks=tuple(check or ()),
        scope=tuple(scope or ()),
        bring=tuple(bring or ()),
        setup=setup,
        auto_approve=auto_approve,
        turns=budget_turns,
        minutes=budget_minutes,
        network=network,
        env=tuple(env or ()),
    )
    order = RunOrder(
        flow="",
        flow_text="",
        request="",
        approve_plan=not (yes or plan_only),
        plan_only=plan_only,
        unsafe=unsafe,
        max_parallel=parallel,
        record=record,
        replay=replay,
    )
    manner = Manner(json=as_json, no_input=no_input)
    said = [*([flow] if flow else []), *(words or [])]
    start = _Start(said, command, wishes, manner, named=flow is not None)
    start.images = tuple(image or ())
    finish(lambda: start(order, detach=detach))


def run_text(
    name: str,
    text: str,
    request: str,
    *,
    patterns: Patterns,
    as_json: bool,
    no_input: bool,
    auto_approve: bool,
) -> None:
    """Run a flow that is a text and no file, and watch it."""
    order = RunOrder(flow="", flow_text="", request="", approve_plan=True)
    wishes = Wishes(auto_approve=auto_approve)
    start = _Start([request], None, wishes, Manner(json=as_json, no_input=no_input), named=True)
    start.composed = composed_of(name, text, patterns)
    finish(lambda: start(order, detach=False))


class _Start:
    """From the words of a command line to a run."""

    def __init__(
        self,
        words: list[str],
        command: str | None,
        wishes: Wishes,
        manner: Manner,
        *,
        named: bool,
    ) -> None:
        self._words = words
        self._command = command
        self._wishes = wishes
        self._manner = manner
        self._named = named
        self._root = root_here()
        self.composed: Composed | None = None
        """What to run, where that is known already."""
        self.images: tuple[Path, ...] = ()

    async def __call__(self, order: RunOrder, *, detach: bool) -> int:
        composed, request = await self._meant()
        composed = with_wishes(composed, self._wishes)
        images = [read_image(path) for path in self.images]
        state = ensure_folder(self._root) if images else self._root
        order = msgspec.structs.replace(
            order,
            flow=composed.name,
            flow_text=composed.text,
            request=request,
            images=tuple([await keep_image(state, content) for content in images]),
            # A request of its own is its plan: there is nothing to look at before.
            approve_plan=order.approve_plan and not composed.made_here,
        )
        if detach:
            await offices.serve_apart(self._root)
        offices.tell_of_settings(self._root)
        async with offices.open_office(self._root, serve=not detach) as office:
            run_id = await office.start(order)
            if detach:
                self._say_where(run_id)
                return ExitCode.DONE
            if self._root != folder_here().resolve():
                place = one_line(str(self._root), 1_000)
                self._say(f"In {place}; a workspace of this folder alone: agentcanvas init --here")
            self._say(composed.limits)
            if given := composed.given:
                self._say(f"{one_line(given, 400)}.")
            for sentence in told_before(composed.flow, self._wishes, self._root, os.environ):
                self._say(one_line(sentence, 400))
            watching = Watching(office, run_id, self._root, self._manner)
            code = await watching.until_it_rests()
            if order.replay:
                for sentence in await self._unplayed(office, run_id, order.replay):
                    self._say(sentence)
            return code

    async def _unplayed(self, office: Office, run_id: str, cassette: str) -> list[str]:
        """What is on the cassette and was not asked for in this run."""
        asked = {
            (entry.event.payload.to, entry.event.payload.turn_id)
            async for entry in office.events(run_id, follow=False)
            if isinstance(entry.event, TurnStarted)
        }
        tape = Tape(tape_folder(self._root, cassette))
        return [
            f"Recorded, but not asked for in this run: {turn_id} by {agent}."
            for agent, turn_id in tape.takes()
            if (agent, turn_id) not in asked
        ]

    async def _meant(self) -> tuple[Composed, str]:
        """The flow and the request; a flow without a request brings its own, or it is asked for."""
        if self.composed is not None:
            return self.composed, self._words[0]
        match self._words:
            case [] | [""]:
                raise misused(
                    'Say what is to be done: agentcanvas run "…", or name a flow: run FLOW'
                )
            case [request] if not self._named and not names_a_flow(self._root, request):
                self._refuse_a_slip(request)
                if self._command is None:
                    self._command = os.environ.get(COMMAND_SETTING) or None
                self._refuse_options(self._command)
                return flow_for(request, self._command, os.environ, self._wishes), request
            case [name]:
                composed = self._flow(name)
                return composed, composed.template or await self._ask_for_request(composed.name)
            case [name, request] if request.strip():
                return self._flow(name), request
            case _:
                raise misused(
                    'Put the request in quotes: agentcanvas run "…", or agentcanvas run FLOW "…"'
                )

    def _refuse_a_slip(self, request: str) -> None:
        """Refuse one word that nearly names a flow: as a request it would cost a whole run."""
        if not self._command and (meant := nearly_a_flow(self._root, request)):
            raise misused(
                f"There is no flow {one_line(request)}; did you mean {meant}? "
                "If that is the request itself, use more than one word."
            )

    def _refuse_options(self, command: str | None) -> None:
        try:
            refuse_slips(command, self._wishes, self._root)
        except ValidationError as wrong:
            raise misused(str(wrong)) from None

    def _flow(self, name: str) -> Composed:
        for option, given in (
            ("--command", self._command),
            ("--network", self._wishes.network),
            ("--env", self._wishes.env or None),
        ):
            if given is not None:
                raise misused(
                    f"{option} is for a request without a flow; {name} has its own agents"
                )
        self._refuse_options(None)
        return flow_named(self._root, folder_here(), name, os.environ)

    async def _ask_for_request(self, name: str) -> str:
        if self._manner.asks:
            request = await Terminal(console_here()).line(f"What is {one_line(name)} to do?")
            if request:
                return request
        raise misused(
            f'{name} has no request of its own; give one: agentcanvas run {quoted(name)} "…"'
        )

    def _say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr if self._manner.json else sys.stdout)

    def _say_where(self, run_id: str) -> None:
        if self._manner.json:
            print(one_json({"runId": run_id}))
            return
        run = quoted(run_id)
        print(f"{run} runs in the background.")
        print(f"Watch it:    agentcanvas show {run}")
        print(f"Review:      agentcanvas review {run}")
        print(f"Stop it:     agentcanvas stop {run}")
