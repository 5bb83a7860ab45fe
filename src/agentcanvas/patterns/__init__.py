"""The interaction patterns, one file each: short coroutines over ``Stage``.

They hold behaviour only. Limits, records and files are the Stage's; who plays which role is said by
a flow.
"""

from __future__ import annotations

from agentcanvas.pattern import Pattern
from agentcanvas.patterns.manager_worker import ManagerWorker

PATTERNS: tuple[Pattern, ...] = (ManagerWorker(),)
