"""What is given to something before it may run, for a person to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.text import Text

from agentcanvas.cli.live.clean import one_line
from agentcanvas.flows.grants import Grant

_LONGEST: Final = 500


def print_grants(console: Console, found: Iterable[Grant], *, indent: int = 2) -> None:
    """A line each; what is more than a flow has by itself stands out."""
    for grant in found:
        style = "yellow" if grant.is_wide else "dim"
        console.print(Text(" " * indent + one_line(grant.sentence, _LONGEST), style=style))
