"""What a CLI leaves in the folder it works in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agentcanvas.sandbox.trees import remove_path


def sweep(tree: Path, litter: Iterable[str], were_there: frozenset[str]) -> None:
    """Remove what a CLI leaves in the folder it works in, unless it was there before."""
    for name in litter:
        path = tree / name
        if name not in were_there and os.path.lexists(path):
            with suppress(OSError):
                remove_path(path)


def there(tree: Path, litter: Iterable[str]) -> frozenset[str]:
    """Which of these names exist already."""
    return frozenset(name for name in litter if os.path.lexists(tree / name))
