"""Cassettes: what agents said and did, kept so that a team can be run again without a model.

``Recording`` wraps any runtime and keeps its turns; ``Replaying`` is a runtime that plays them back
and fails where a turn is no longer the one that was recorded. ``tape`` is what is on disk: one file
a turn, readable in a diff, with known secrets taken out.
"""

from agentcanvas.agents.cassette.recording import Recording
from agentcanvas.agents.cassette.replaying import Replaying
from agentcanvas.agents.cassette.tape import Tape, tape_folder, turn_key

__all__ = ["Recording", "Replaying", "Tape", "tape_folder", "turn_key"]
