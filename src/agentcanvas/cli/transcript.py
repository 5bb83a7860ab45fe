"""``agentcanvas transcript``: what an agent said and did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio
import msgspec
import typer

from agentcanvas.cli.live.following import ExitCode, closing
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.said import lines_said
from agentcanvas.cli.live.view import RunView, view_of
from agentcanvas.cli.offices import at_office, misused, the_run
from agentcanvas.errors import ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.protocol.records import ResultEvent, TextEvent
from agentcanvas.runs.office import Office, TranscriptEntry

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


RunAndAgent = Annotated[
    list[str],
    typer.Argument(
        metavar="[RUN] AGENT",
        help="The agent, by id or name; of the newest run if no run is given.",
        show_default=False,
    ),
]


@app.command()
def transcript(
    words: RunAndAgent,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep following until the run ends or waits.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON event per line.")] = False,
) -> None:
    """Print what an agent said and did in a run, in full."""
    run, agent = run_and_agent(words, "transcript")

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        view = view_of([entry async for entry in office.events(found.run_id, follow=False)])
        agent_id = the_agent(view, agent)
        listening = Listening(office, found.run_id, agent_id, as_json=as_json)
        if follow:
            await listening.until(lambda: _rest_of(office, view))
        else:
            await listening.catch_up()
        if not listening.heard and not as_json:
            print(f"{view.name_of(agent_id)} has said nothing yet.")
        return ExitCode.DONE

    at_office(work)


def run_and_agent(words: list[str], command: str) -> tuple[str | None, str]:
    """The run that was named, or None for the newest, and the agent."""
    match words:
        case [agent]:
            return None, agent
        case [run, agent]:
            return run, agent
    raise misused(f"Name a run and an agent: agentcanvas {command} RUN AGENT")


def the_agent(view: RunView, given: str) -> str:
    """The id of the agent that is meant, by its id or its name."""
    if given in view.agents:
        return given
    for agent in view.agents.values():
        if agent.name.casefold() == given.casefold():
            return agent.agent_id
    raise ValidationError(
        f"There is no agent {given} in {view.run_id}; {did_you_mean(given, view.agents)}"
    )


async def _rest_of(office: Office, view: RunView) -> None:
    """Return when the run has ended, or waits."""
    async with closing(office.events(view.run_id, after=view.seq)) as events:
        async for _ in events:
            pass


class Listening:
    """Prints what one agent says, for a tool or for a person."""

    def __init__(
        self, office: Office, run_id: str, agent_id: str, *, as_json: bool = False
    ) -> None:
        self._office = office
        self._run_id = run_id
        self._agent_id = agent_id
        self._as_json = as_json
        self._said: list[str] = []
        self.heard = 0

    async def catch_up(self) -> None:
        """Print what was said up to now."""
        await self._print(follow=False)

    async def until(self, rest: Callable[[], Awaitable[None]]) -> None:
        """Print what is said until ``rest`` returns."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            await rest()
            tasks.cancel_scope.cancel()
        # What was said last may have come after the news that it was the last.
        await self.catch_up()

    async def _follow(self) -> None:
        await self._print(follow=True)

    async def _print(self, *, follow: bool) -> None:
        stream = self._office.transcript(
            self._run_id, self._agent_id, after=self.heard, follow=follow
        )
        async with closing(stream) as entries:
            async for entry in entries:
                self.heard = entry.seq
                self._print_entry(entry)

    def _print_entry(self, entry: TranscriptEntry) -> None:
        if self._as_json:
            event = msgspec.to_builtins(entry.event, builtin_types=(msgspec.Raw,))
            print(one_json({"entry": entry.seq, "agent": entry.agent, **event}), flush=True)
            return
        lines = lines_said(entry.event)
        if isinstance(entry.event, ResultEvent):
            # The answer is the last words once more, where they were heard as they came.
            words = _words(lines)
            is_heard = bool(words) and self._said[-len(words) :] == words
            self._said = []
            if is_heard:
                return
        elif isinstance(entry.event, TextEvent):
            self._said += _words(lines)
        for line in lines:
            print(line, flush=True)


def _words(lines: list[str]) -> list[str]:
    """The lines that say something: empty ones are not streamed."""
    return [line.strip() for line in lines if line.strip()]
