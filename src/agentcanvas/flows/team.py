"""The members of a team, and what answers when one of them is asked (S2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, field

from agentcanvas.flows.part import SHORT, Id, Milliseconds, Part


class NetworkMode(StrEnum):
    """What an agent's process can reach (D11)."""

    NONE = "none"
    MODEL = "model"
    HOSTS = "hosts"
    OPEN = "open"


class Network(Part, frozen=True, kw_only=True):
    """What an agent's process can reach; a single word names the mode."""

    mode: Annotated[NetworkMode, Meta(description="hosts, if a list of them is given.")] = (
        NetworkMode.HOSTS
    )
    hosts: Annotated[
        tuple[str, ...], Meta(description="Host names that can be reached, beside the model's.")
    ] = ()


class CwdMode(StrEnum):
    """Where an agent stands (S2): in a read-only view of the workspace, or in its sandbox."""

    WORKSPACE = "workspace"
    AGENT_HOME = "agentHome"


RUNTIME_KINDS: Final = (
    "cli",
    "script",
    "python",
    "command",
    "human",
    "model",
    "remote",
    "a2a",
    "acp",
)
DEFAULT_KIND: Final = "cli"
OF_A_SERVICE: Final = frozenset({"cli", "model", "remote", "a2a", "acp"})
"""Behind these is a service that may have limits of its own."""
WITH_TOOLS: Final = frozenset({"cli", "model"})
"""These are handed tools to speak with the other members in the middle of a turn."""


class Runtime(
    Part,
    frozen=True,
    kw_only=True,
    rename={"backend_id": "backendId", "cwd_mode": "cwdMode", "key_env": "keyEnv"},
):
    """What answers when the agent is asked."""

    kind: Annotated[
        str,
        Meta(
            description="What answers: a coding CLI, a script, a Python function, a command, a "
            "person, a model, or an agent that connects by itself.",
            extra_json_schema={"examples": list(RUNTIME_KINDS)},
        ),
    ] = DEFAULT_KIND
    backend_id: Annotated[
        str | None, Meta(description="Which CLI; auto takes the first one that works.")
    ] = None
    cwd_mode: Annotated[
        CwdMode | None,
        Meta(description="workspace (read-only) for an orchestrator, agentHome for a worker."),
    ] = None
    command: Annotated[
        str | tuple[str, ...] | None,
        Meta(description="The command line (command, acp): a text for the shell, or a list."),
    ] = None
    script: Annotated[
        str | None, Meta(description="The file with a scripted agent's steps (script).")
    ] = None
    call: Annotated[str | None, Meta(description="package.module:function (python).")] = None
    model: Annotated[str | None, Meta(description="The model's name (cli, model).")] = None
    url: Annotated[str | None, Meta(description="Where it is reached (model, a2a).")] = None
    key_env: Annotated[
        str | None,
        Meta(description="The name of the environment variable with the key, never the key."),
    ] = None
    env: Annotated[
        tuple[str, ...],
        Meta(description="Names of environment variables that its process may see."),
    ] = ()
    network: Annotated[
        Network | None,
        Meta(
            description="none, model, open, or a list of hosts.",
            extra={SHORT: "mode"},
            extra_json_schema={f"x-{SHORT}": True},
        ),
    ] = None
    timeout_ms: Annotated[
        Milliseconds | None, Meta(description="How long one turn may take; 30 minutes if not said.")
    ] = None
    silent_ms: Annotated[
        Milliseconds | None, Meta(description="How long it may be silent; 5 minutes if not said.")
    ] = None
    options: Annotated[
        dict[str, Any], Meta(description="Whatever else this kind of runtime understands.")
    ] = field(default_factory=dict)


class Agent(Part, frozen=True, kw_only=True, rename="camel"):
    """One member of the team."""

    id: Annotated[Id, Meta(description="What edges, roles and tasks call it.")]
    name: Annotated[str, Meta(description="What people call it; the id if not said.")] = ""
    role: Annotated[
        str, Meta(min_length=1, description="orchestrator, worker, reviewer, or a name of yours.")
    ] = "worker"
    is_orchestrator: Annotated[
        bool | None,
        Meta(description="Whether it stands in the workspace; by its role if not said."),
    ] = None
    rules: Annotated[tuple[str, ...], Meta(description="Rules, or files that hold them.")] = ()
    skills: Annotated[tuple[str, ...], Meta(description="Names of its skills.")] = ()
    mcp: Annotated[
        tuple[str, ...], Meta(description="MCP servers it may use; best two or less.")
    ] = ()
    runtime: Annotated[Runtime | None, Meta(description="What answers; a CLI if not said.")] = None
    fallback: Annotated[
        Id | None,
        Meta(description="Who goes on with its work when its service has a limit or no quota."),
    ] = None

    @property
    def orchestrates(self) -> bool:
        """Whether it runs in the workspace, read-only (S2)."""
        return self.role == "orchestrator" if self.is_orchestrator is None else self.is_orchestrator

    @property
    def cwd_mode(self) -> CwdMode:
        """Where it stands, said or by its role (S2)."""
        said = self.runtime and self.runtime.cwd_mode
        return said or (CwdMode.WORKSPACE if self.orchestrates else CwdMode.AGENT_HOME)

    @property
    def label(self) -> str:
        return self.name or self.id
