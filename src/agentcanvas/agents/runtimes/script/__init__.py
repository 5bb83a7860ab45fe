"""Scripted agents: the same words and edits every time, for demos, tests and CI of flows.

``model`` is what a script says, ``load`` reads one with all its problems at once, ``play`` is the
runtime. A script is addressed by turn, so that parallel turns and resumes find their own steps.
"""

from agentcanvas.agents.runtimes.script.load import load_script, read_script
from agentcanvas.agents.runtimes.script.model import (
    Address,
    Edit,
    Fail,
    Question,
    Run,
    Script,
    ScriptedTurn,
    Step,
)
from agentcanvas.agents.runtimes.script.play import ScriptRuntime

__all__ = [
    "Address",
    "Edit",
    "Fail",
    "Question",
    "Run",
    "Script",
    "ScriptRuntime",
    "ScriptedTurn",
    "Step",
    "load_script",
    "read_script",
]
