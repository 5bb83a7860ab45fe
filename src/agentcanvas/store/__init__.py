"""One SQLite file for everything that must survive: events, and the tables of the packages above.

Writes are committed in groups and acknowledged when they are on disk; JSONL files follow (D2).
What events and tables mean is left to those who own them.
"""

from __future__ import annotations

from agentcanvas.store.backups import backup, check, read_file, restore
from agentcanvas.store.events import Event
from agentcanvas.store.limits import StoreLimits
from agentcanvas.store.lock import OwnerLock
from agentcanvas.store.projections import Projection
from agentcanvas.store.retention import Retention
from agentcanvas.store.store import Store, StoreStatistics
from agentcanvas.store.transaction import Snapshot, Transaction

__all__ = [
    "Event",
    "OwnerLock",
    "Projection",
    "Retention",
    "Snapshot",
    "Store",
    "StoreLimits",
    "StoreStatistics",
    "Transaction",
    "backup",
    "check",
    "read_file",
    "restore",
]
