"""How long the interaction log of a flow is kept: ``observability.retain_days`` (I2).

The record in the store stays; only the files for people and other tools go, and are not written
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio.to_thread

from agentcanvas.flows.settle import Settled as Interaction
from agentcanvas.store import Store

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def days_kept(interactions: Iterable[Interaction]) -> int | None:
    """How many days the flow's log is kept: as long as any interaction wants it; None: for ever."""
    said = [each.observability.retain_days for each in interactions]
    found = [days for days in said if days is not None]
    return max(found) if found and len(found) == len(said) else None


async def forget_old_logs(
    store: Store, folder: Path, flow: str, days: int | None, now_ms: int
) -> list[str]:
    """Remove the files of days that are over; gives their paths below ``folder``."""
    if days is None:
        return []
    oldest = datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=days)
    old = await anyio.to_thread.run_sync(_before, folder / "logs" / flow, oldest.isoformat())
    paths = [f"logs/{flow}/{path.name}" for path in old]
    if paths:
        # First the record that they were written: a file that is merely missing is mended.
        await store.transact(
            lambda transaction: [
                transaction.execute("DELETE FROM projection_files WHERE path = ?", (path,))
                for path in paths
            ]
        )
        await anyio.to_thread.run_sync(_remove, old)
    return paths


def _before(folder: Path, oldest: str) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path for path in folder.glob("*.jsonl") if _DAY.fullmatch(path.stem) and path.stem < oldest
    )


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
