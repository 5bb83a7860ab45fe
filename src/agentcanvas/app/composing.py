"""The flow of a run: one of the workspace, or one made from a request alone (D20, D44).

What was said beside it is written into the flow's text, so that the run keeps it and can
be repeated with it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from agentcanvas.app.clis import AUTO, choose
from agentcanvas.app.patterns import KNOWN, infos_here
from agentcanvas.app.trust import standing
from agentcanvas.errors import FlowError, PermissionDenied, ValidationError
from agentcanvas.flows import emit
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.check import check
from agentcanvas.flows.document import Document, read_document
from agentcanvas.flows.edit import updated
from agentcanvas.flows.guards import PERSON
from agentcanvas.flows.load import SUFFIXES, find_flow, flow_files, read_flow
from agentcanvas.flows.model import Flow
from agentcanvas.flows.named_files import path_within
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.reach import in_one_line, reach_of
from agentcanvas.flows.team import NetworkMode, Runtime
from agentcanvas.sandbox.egress.rules import host_rule

COMMAND_SETTING: Final = "AGENTCANVAS_COMMAND"
ONE_OFF: Final = "one-off"
"""The name of a flow that was made from a request."""

_WORKER: Final = "coder"
# In small letters it is a name; a variable that is set for the command alone is in capitals.
_NAMED_CHECK: Final = re.compile(r"([a-z][a-z0-9_-]{0,39})=(.*)", re.DOTALL)
_LIKENESS: Final = 0.7
"""How alike one word and the name of a flow must be to call it a slip, and no request."""
_HOUR_MS: Final = 3_600_000
_MODES: Final = (NetworkMode.NONE, NetworkMode.MODEL, NetworkMode.OPEN)
_OTHER_WAYS: Final = f"""You can also
- use any command that reads the task on its standard input, or at {{prompt}} or {{prompt_file}}:
  agentcanvas run "…" --command "my-agent --flag"
- set such a command once: export {COMMAND_SETTING}="my-agent --flag"
- run a flow: agentcanvas run FLOW "…\""""


class Wishes(Struct, frozen=True, kw_only=True):
    """What the command line says about any flow."""

    checks: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    bring: tuple[str, ...] = ()
    setup: str = ""
    auto_approve: bool = False
    turns: int | None = None
    minutes: float | None = None
    network: str | None = None
    """What the worker of a request without a flow may reach: a mode, or hosts with commas."""
    env: tuple[str, ...] = ()
    """Names of variables that this worker may see."""


class Composed(Struct, frozen=True):
    """A flow that may start: its name, its text and its meaning."""

    name: str
    text: str
    flow: Flow
    made_here: bool = False
    patterns: Patterns = KNOWN
    """What it may name."""

    @property
    def template(self) -> str:
        """The request that the flow itself brings along; empty when it brings none."""
        for interaction in self.flow.interactions:
            said = interaction.data.params if interaction.data else {}
            template = said.get("task_template")
            if isinstance(template, str) and template.strip():
                return template.strip()
        return ""

    @property
    def given(self) -> str:
        """The network and variables that its agents have beyond the usual; empty for none."""
        return in_one_line({agent.id: reach_of(agent.runtime) for agent in self.flow.agents})

    @property
    def limits(self) -> str:
        """The worst case in one sentence (D19)."""
        most = bounds(self.flow, self.patterns).total
        named = {"turns": most.turns, "messages": most.messages, "minutes": most.minutes}
        parts = [f"{value:g} {name}" for name, value in named.items() if value is not None]
        tokens = "no limit on tokens" if most.tokens is None else f"{most.tokens:,} tokens"
        return f"At most {', '.join([*parts, tokens])}."


def names_a_flow(root: Path, word: str) -> bool:
    """Whether a word on the command line is a flow, and not a request."""
    return word in flow_files(root) or (word.endswith(SUFFIXES) and " " not in word.strip())


def nearly_a_flow(root: Path, word: str) -> str:
    """The flow that a word on the command line nearly names; empty for a request."""
    if len(word.split()) != 1:
        return ""
    close = difflib.get_close_matches(word, flow_files(root), n=1, cutoff=_LIKENESS)
    return close[0] if close else ""


def flow_named(root: Path, here: Path, name: str, environ: Mapping[str, str]) -> Composed:
    """A flow of the workspace by its name, or any by its path; strangers' flows are refused."""
    path = flow_path(root, here, name)
    document = read_flow(path)
    _refuse_strangers(root, path, name, document, environ)
    return _composed(path.stem, document, infos_here(root, environ))


def flow_path(root: Path, here: Path, name: str) -> Path:
    """The file of a flow by its name, or by its path as seen from where one is."""
    path = here / name
    return path if name.endswith(SUFFIXES) and path.is_file() else find_flow(root, name)


def _refuse_strangers(
    root: Path, path: Path, name: str, document: Document, environ: Mapping[str, str]
) -> None:
    """Raise if a flow lies in the workspace and this text of it is not what was trusted."""
    flow = path_within(root, path)
    if not flow:  # it lies elsewhere: whoever names it brought it along
        return
    found = standing(root, environ, [flow])
    if not found.decision.may_run:
        named = () if path in flow_files(root).values() else (name,)
        raise PermissionDenied(
            f"{path.stem} does not run yet. {found.decision.sentence_on(*named)}"
        )
    if document.root is not None and not found.now.covers(flow, document.content):
        raise PermissionDenied(f"{path.stem} was changed in this very moment; say it again.")


def flow_for(
    request: str, command: str | None, environ: Mapping[str, str], wishes: Wishes | None = None
) -> Composed:
    """One worker, and you as its reviewer."""
    wishes = wishes or Wishes()
    command = command or environ.get(COMMAND_SETTING) or ""
    runtime: dict[str, Any] = {"kind": "command", "command": command}
    if not command.strip():
        runtime = {"kind": "cli", "backendId": AUTO}
        _refuse_without_cli(environ)
    if wishes.network is not None:
        runtime["network"] = network_of(wishes.network)
    if wishes.env:
        runtime["env"] = list(wishes.env)
    data: dict[str, Any] = {
        "version": "0.2",
        "agents": [
            {
                "id": _WORKER,
                "name": "Coder",
                "role": "worker",
                "runtime": runtime,
            }
        ],
        "interactions": [
            {
                "id": "work",
                "patternId": "manager_worker",
                "roles": {"worker": [_WORKER]},
                "data": {
                    "termination": [
                        {"type": "max_rounds", "rounds": 2},
                        {"type": "timeout_ms", "ms": 2 * _HOUR_MS},
                    ]
                },
                "tasks": [{"id": "task-1", "agent": _WORKER, "description": request}],
            }
        ],
        "review": {"reviewer": PERSON, "max_iterations": 3},
        "budgets": {"turns": 20, "minutes": 120},
    }
    document = read_document(emit.lines(data, 0) + "\n", f"{ONE_OFF}.yaml")
    composed = _composed(ONE_OFF, document)
    return Composed(composed.name, composed.text, composed.flow, made_here=True)


def _refuse_without_cli(environ: Mapping[str, str]) -> None:
    try:
        choose(Runtime(), environ)
    except FlowError as why:
        raise FlowError(f"{why}\n{_OTHER_WAYS}") from why


def with_wishes(composed: Composed, wishes: Wishes) -> Composed:
    """The flow with what the command line says written into it."""
    document = read_document(composed.text, f"{composed.name}.yaml")
    data = dict(document.data)
    if wishes.checks:
        data["checks"] = _checks(wishes.checks)
    if wishes.scope:
        data["scope"] = list(wishes.scope)
    if wishes.bring:
        data["bring"] = list(wishes.bring)
    if wishes.setup:
        data["setup"] = wishes.setup
    if wishes.auto_approve:
        data["review"] = {**data.get("review", {}), "autoApprove": True}
    budgets = {"turns": wishes.turns, "minutes": wishes.minutes}
    said = {name: value for name, value in budgets.items() if value is not None}
    if said:
        data["budgets"] = {**data.get("budgets", {}), **said}
    made = _composed(composed.name, updated(document, data), composed.patterns)
    return Composed(made.name, made.text, made.flow, composed.made_here, composed.patterns)


def composed_of(name: str, text: str, patterns: Patterns) -> Composed:
    """A flow that was made from a pattern."""
    return _composed(name, read_document(text, f"{name}.yaml"), patterns)


def _composed(name: str, document: Document, patterns: Patterns = KNOWN) -> Composed:
    flow = check(document, patterns).sound()
    return Composed(name, document.content.decode(), flow, patterns=patterns)


def network_of(said: str) -> str | dict[str, Any]:
    """A mode by its name; anything else is a list of hosts."""
    if not said.strip(", "):
        raise FlowError(
            "--network says nothing; write none, model, open, or hosts with commas between: "
            "pypi.org,*.example.org"
        )
    if said in _MODES:
        return said
    plain = said.casefold()
    if plain == NetworkMode.HOSTS:
        raise FlowError("Name the hosts, with commas between: --network pypi.org,*.example.org")
    if said.isalpha() and (meant := difflib.get_close_matches(plain, _MODES, n=1)):
        raise FlowError(f"There is no network mode {said}; did you mean {meant[0]}?")
    hosts = [host.strip() for host in said.split(",") if host.strip()]
    for host in hosts:
        _refuse_no_host(host)
    return {"mode": "hosts", "hosts": hosts}


def _refuse_no_host(said: str) -> None:
    if said.casefold() in _MODES:
        raise FlowError(f"{said} is a mode and no host; write it alone: --network {said}")
    try:
        host_rule(said)
    except ValidationError as wrong:
        sentence = str(wrong).removeprefix("network.hosts: ")
        raise FlowError(sentence.replace("write network: open", "write: --network open")) from None


def _checks(said: Sequence[str]) -> list[dict[str, str]]:
    """What judges a change; one without a name is called by its command's first word.

    A number tells apart what would be called the same.
    """
    checks = [_check(each) for each in said]
    names = [name for name, _ in checks]
    return [
        {"name": f"{name}-{number}" if names.count(name) > 1 else name, "command": command}
        for number, (name, command) in enumerate(checks, 1)
    ]


def _check(said: str) -> tuple[str, str]:
    """The name of a check, and its command."""
    named = _NAMED_CHECK.fullmatch(said)
    name, command = named.groups() if named else ("", said)
    if not command.strip():
        raise FlowError("A check needs a command, such as --check 'tests=npm test'.")
    return name or command.split()[0].rpartition("/")[2] or "check", command
