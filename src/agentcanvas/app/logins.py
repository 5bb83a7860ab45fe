"""Where the logins of CLIs are kept that were made for AgentCanvas (D12)."""

from __future__ import annotations

from collections.abc import Mapping

from agentcanvas.agents.cli.adapter import Facts
from agentcanvas.agents.cli.own_login import Login
from agentcanvas.app.workspace import user_data_folder
from agentcanvas.errors import ResourceError

__all__ = ["Login", "login_home", "login_of"]


def login_home(facts: Facts, environ: Mapping[str, str]) -> Login:
    """Where the login of a CLI lies, or would."""
    return Login(user_data_folder(environ) / "logins" / facts.id, facts.credentials)


def login_of(facts: Facts, environ: Mapping[str, str]) -> Login | None:
    """The login of a CLI, if there is one."""
    if not facts.credentials:
        return None
    try:
        login = login_home(facts, environ)
    except ResourceError:  # without a home there is none
        return None
    return login if login.is_there else None
