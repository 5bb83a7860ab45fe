"""Settings: defaults < user file < ``agentcanvas.yaml`` < environment < flags (D41).

The value is ``protocol.limits.Limits``; here it is found, checked and given its provenance.
Acting on a setting is left to whoever it concerns.
"""

from agentcanvas.app.settings.keys import KEYS, Key
from agentcanvas.app.settings.load import (
    WORKSPACE_FILE,
    Layer,
    Origin,
    Settings,
    load_settings,
    user_file,
)

__all__ = [
    "KEYS",
    "WORKSPACE_FILE",
    "Key",
    "Layer",
    "Origin",
    "Settings",
    "load_settings",
    "user_file",
]
