"""A Stage for tests: answers are written down before, and every verb is on record.

``stage`` has the verbs, ``asking`` what becomes of questions, ``speech`` of messages, ``board`` of
posts; ``place`` is one interaction with its limits, ``script`` what all of them are made of.
"""

from __future__ import annotations

from agentcanvas.patterns.scripted.script import Person, Reply, Said, Script, Seconds, Typed
from agentcanvas.patterns.scripted.stage import ScriptedStage

__all__ = ["Person", "Reply", "Said", "Script", "ScriptedStage", "Seconds", "Typed"]
