"""``agentcanvas demo --dialects``: three agents, three dialects, one task.

What the language does by itself: no hub, no sandbox, no engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import typer
from msgspec import UNSET
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.protocol.dialect import DialectName, spoken
from agentcanvas.protocol.dialects import DIALECTS, decode, encode
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import TaskAccept, TaskAssign, TaskProgress, TaskResult
from agentcanvas.protocol.log import Thread, threads
from agentcanvas.protocol.session import SessionState
from agentcanvas.protocol.values import thaw

Json = dict[str, Any]
Speak = Callable[[Json], list[Json]]
"""An agent: given a message in its own dialect, what it says in answer, in its own dialect."""


def show_dialects(*, full: bool) -> None:
    """Have a planner, a coder and a reviewer work together, each in a dialect of its own.

    None of them knows the others' dialects: every message is translated on the way, and back again
    to see that nothing was lost.
    """
    console = Console(highlight=False)
    team = Team(console, SystemClock(), full=full)
    team.say_who_is_here()
    team.start()
    team.show_conversation()


class Exchange(msgspec.Struct, frozen=True):
    """One message: as it was sent, as it arrived, and what it means."""

    sent: bytes
    arrived: bytes
    envelope: Envelope
    lost_nothing: bool


class Team:
    """Three scripted agents and the translation between them."""

    def __init__(self, console: Console, clock: Clock, *, full: bool) -> None:
        self._console = console
        self._clock = clock
        self._full = full
        self._session = SessionState(["planner", "coder", "reviewer"])
        self._exchanges: list[Exchange] = []
        self._agents: dict[str, tuple[DialectName, Speak]] = {
            "planner": (DialectName.MAC, self._planner),
            "coder": (DialectName.SPEC022, self._coder),
            "reviewer": (DialectName.ACP, self._reviewer),
        }

    def say_who_is_here(self) -> None:
        """Introduce the agents."""
        table = Table(title="A team of three, one task, three dialects", title_justify="left")
        table.add_column("agent", style="bold")
        table.add_column("speaks")
        table.add_column("does")
        duties = {
            "planner": "hands out the task, asks for a review",
            "coder": "accepts, reports progress, delivers",
            "reviewer": "looks at the change and judges",
        }
        for name, (dialect, _) in self._agents.items():
            table.add_row(name, spoken(dialect), duties[name])
        self._console.print(table)
        self._console.print()

    def start(self) -> None:
        """Let the planner begin, and deliver until nobody has anything left to say."""
        waiting = [("planner", message) for message in self._planner({})]
        while waiting:
            sender, message = waiting.pop(0)
            exchange = self._carry(sender, message)
            recipient = exchange.envelope.recipient
            assert recipient is not UNSET
            self._print(exchange)
            _, speak = self._agents[recipient.id]
            answers = speak(json.loads(exchange.arrived))
            waiting += [(recipient.id, answer) for answer in answers]

    def show_conversation(self) -> None:
        """Print the trees of messages and what was checked."""
        self._console.print()
        tree = Tree("The conversation, by what answers what", guide_style="dim")
        for thread in threads(exchange.envelope for exchange in self._exchanges):
            _grow(tree, thread)
        self._console.print(tree)
        kept = sum(exchange.lost_nothing for exchange in self._exchanges)
        self._console.print(
            f"\n{len(self._exchanges)} messages; {kept} of them were translated there and back "
            "without losing a field."
        )
        self._console.print(
            "Look closer: agentcanvas demo --dialects --full, agentcanvas message translate --help",
            style="dim",
        )
        if kept != len(self._exchanges):
            raise typer.Exit(1)

    # Carrying -----------------------------------------------------------------------------------

    def _carry(self, sender: str, message: Json) -> Exchange:
        dialect, _ = self._agents[sender]
        sent = json.dumps(message).encode()
        envelope = self._address(self._session.understand(decode(sent).envelope))
        breaches = self._session.check(envelope)
        assert not breaches, [str(breach) for breach in breaches]
        self._session.admit(envelope)
        assert envelope.recipient is not UNSET
        target, _ = self._agents[envelope.recipient.id]
        arrived = encode(envelope, target)
        back = DIALECTS[target].decode(arrived).envelope
        lost_nothing = json.loads(encode(back, dialect)) == json.loads(encode(envelope, dialect))
        exchange = Exchange(sent, arrived, envelope, lost_nothing)
        self._exchanges.append(exchange)
        return exchange

    def _address(self, envelope: Envelope) -> Envelope:
        """An ACP response names no receiver: it goes to whoever sent the command."""
        if envelope.recipient is not UNSET:
            return envelope
        asked = next(
            exchange.envelope
            for exchange in self._exchanges
            if exchange.envelope.id == envelope.reply_to
        )
        return msgspec.structs.replace(
            envelope, recipient=asked.sender, correlation_id=asked.correlation_id
        )

    # The agents, each in its own words ----------------------------------------------------------

    def _planner(self, heard: Json) -> list[Json]:
        if not heard:
            return [
                self._mac("coder", "implementation", "Add a --dry-run flag to the deploy script")
            ]
        if heard["type"] == "TASK_COMPLETE" and heard["from"] == "coder":
            change = heard["payload"]["output"]
            return [self._mac("reviewer", "code_review", change)]
        return []

    def _mac(self, to: str, task_type: str, task: object) -> Json:
        return {
            "message_id": new_id(),
            "type": "TASK_REQUEST",
            "from": "planner",
            "to": to,
            "timestamp": self._clock.now(),
            "priority": 7,
            "payload": {
                "task_id": f"task-{task_type}",
                "task_type": task_type,
                "input": task,
                "timeout": 300,
            },
            "metadata": {"correlation_id": "deploy-flag", "session_id": "demo"},
        }

    def _coder(self, heard: Json) -> list[Json]:
        task = heard["payload"]["task"]["task_id"]
        done = {
            "task_id": task,
            "status": "completed",
            "changes": {
                "files_created": [],
                "files_modified": [
                    {"path": "deploy.py", "change_type": "modified", "lines_added": 9}
                ],
                "files_deleted": [],
            },
            "summary": "--dry-run prints every step and changes nothing",
            "self_review": {"tests_run": True, "tests_passed": True, "type_check_passed": True},
        }
        progress = {
            "task_id": task,
            "progress_percent": 60,
            "current_step": "Writing the tests",
            "files_modified_so_far": ["deploy.py"],
            "estimated_remaining": "2 minutes",
        }
        said = [("acknowledgment", {}), ("task_progress", progress), ("task_completion", done)]
        return [
            {
                "message_id": new_id(),
                "timestamp": self._clock.now(),
                "sequence_number": number,
                "from_agent": {"agent_id": "coder", "agent_type": "developer"},
                "to_agent": {"agent_id": "planner", "agent_type": "architect"},
                "message_type": message_type,
                "payload": payload,
                "correlation_id": heard["correlation_id"],
                "reply_to": heard["message_id"],
            }
            for number, (message_type, payload) in enumerate(said, start=1)
        ]

    def _reviewer(self, heard: Json) -> list[Json]:
        return [
            {
                "id": new_id(),
                "commandId": heard["id"],
                "timestamp": self._clock.now(),
                "version": "2.0",
                "from": "reviewer",
                "status": "success",
                "results": {"summary": "APPLY: small, tested, does what was asked"},
                "execution": {"duration": 4980, "tokensUsed": 1234},
            }
        ]

    # Printing -----------------------------------------------------------------------------------

    def _print(self, exchange: Exchange) -> None:
        envelope = exchange.envelope
        assert envelope.recipient is not UNSET
        to, _ = self._agents[envelope.recipient.id]
        line = Text()
        line.append(f"{envelope.time[11:23]}  ", style="dim")
        line.append(f"{envelope.sender.id} → {envelope.recipient.id}", style="bold")
        line.append(f"  {_wire_name(exchange.sent)}", style="cyan")
        line.append(" → ", style="dim")
        line.append(_wire_name(exchange.arrived), style="magenta")
        line.append(f"\n{' ' * 14}{_gist(envelope)}")
        self._console.print(line)
        if self._full:
            for title, data in (("sent", exchange.sent), (f"as {spoken(to)}", exchange.arrived)):
                self._console.print(f"  {title}", style="dim")
                text = json.dumps(json.loads(data), indent=2)
                self._console.print(
                    Syntax(text, "json", background_color="default", word_wrap=True)
                )


def _wire_name(data: bytes) -> str:
    message = json.loads(data)
    for field in ("type", "message_type"):
        if field in message:
            return str(message[field])
    return f"AgentCommand {message['action']}" if "action" in message else "AgentResponse"


def _gist(envelope: Envelope) -> str:
    match envelope.body:
        case TaskAssign(input=msgspec.Raw() as task):
            asked = thaw(task)
            return asked if isinstance(asked, str) else "the change, for review"
        case TaskProgress(progress=progress, current_step=step):
            return f"{progress} %, {step}"
        case TaskResult(summary=str(summary)):
            return summary
        case TaskAccept():
            return "accepted"
        case _:
            return str(envelope.kind)


def _grow(tree: Tree, thread: Thread) -> None:
    envelope = thread.envelope
    label = Text(f"{envelope.kind}", style="cyan")
    label.append(f"  {envelope.sender.id}", style="bold")
    label.append(f"  {_gist(envelope)}", style="default")
    branch = tree.add(label)
    for reply in thread.replies:
        _grow(branch, reply)
