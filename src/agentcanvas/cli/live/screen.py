"""What draws a run while it goes on; ``rich_view``, ``plain`` and ``jsonl`` do it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from agentcanvas.cli.live.view import RunView
from agentcanvas.runs.events import Recorded


class Screen(Protocol):
    """One way to show a run; used as a context manager while it is shown."""

    @property
    def wants_transcripts(self) -> bool:
        """Whether what agents say is to be seen too."""
        ...

    def show(self, view: RunView, recorded: Recorded | None = None) -> None:
        """Show the view as it is now; ``recorded`` is the event that brought it about."""
        ...

    def say(self, sentence: str) -> None:
        """Tell the person something that is no event."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Stand back while something else uses the terminal."""
        ...
