"""A run in the foreground, from the screen that fits to the last words."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec import Struct

from agentcanvas.cli.here import folder_here
from agentcanvas.cli.live.answering import Answering
from agentcanvas.cli.live.clean import clean
from agentcanvas.cli.live.ending import asks_only, last_words
from agentcanvas.cli.live.following import ExitCode, Following
from agentcanvas.cli.live.jsonl import JsonScreen
from agentcanvas.cli.live.plain import PlainScreen
from agentcanvas.cli.live.rich_view import RichScreen
from agentcanvas.cli.live.screen import Screen
from agentcanvas.cli.live.terminal import Terminal, console_here, is_interactive
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.runs.office import Office
from agentcanvas.runs.state import RunStatus


class Manner(Struct, frozen=True, kw_only=True):
    """How a person wants to watch."""

    json: bool = False
    no_input: bool = False

    @property
    def asks(self) -> bool:
        """Whether questions are put in this terminal."""
        return not self.json and not self.no_input and is_interactive()


class Watching:
    """One run that this command stays with."""

    def __init__(
        self, office: Office, run_id: str, root: Path, manner: Manner, clock: Clock | None = None
    ) -> None:
        self._office = office
        self._root = root
        self._manner = manner
        self._clock = clock or SystemClock()
        self._screen, self._drawing = _screen(manner, self._clock)
        self.following = Following(
            office,
            run_id,
            self._screen,
            self._clock,
            Answering(office, Terminal(console_here())) if manner.asks else None,
        )

    async def until_it_rests(self, first: PersonAsk | None = None) -> int:
        """Watch, then say what came of it; gives the exit code."""
        self._screen.show(self.following.view)
        with self._drawing:
            code = await self.following.until_it_rests(first)
        view = self.following.view
        waits = view.status is RunStatus.PARKED or asks_only(view)
        asks = await self._office.asks(view.run_id) if waits else ()
        left = code is ExitCode.INTERRUPTED
        now_ms, here = self._clock.now_ms(), folder_here()
        self._say(last_words(view, asks, self._root, now_ms, here=here, left=left))
        return code

    def _say(self, lines: list[str]) -> None:
        out = sys.stderr if self._manner.json else sys.stdout
        for line in lines:
            print(clean(line), file=out)


def _screen(manner: Manner, clock: Clock) -> tuple[Screen, AbstractContextManager[None]]:
    if manner.json:
        return JsonScreen(), nullcontext()
    console = console_here()
    if not console.is_terminal or console.is_dumb_terminal:
        return PlainScreen(), nullcontext()
    rich = RichScreen(console, clock)
    return rich, rich.drawing()
