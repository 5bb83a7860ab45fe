"""A server that tells the page what a test wants: canned runs, streams that can be cut.

It speaks the part of the API that the page reads, byte for byte as the product's server does, and
does on purpose what that one does only in bad times.
"""

from __future__ import annotations

import json
import mimetypes
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from agentcanvas.protocol.records import TranscriptEvent
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunSummary
from agentcanvas.runs.state import RunStatus, fold
from agentcanvas.web import guard

STARTED_MS = 1_794_838_920_000
POLICY = guard.HEADERS["content-security-policy"]


class CannedServer(ThreadingHTTPServer):
    """Serves the built page, and runs that exist only as long as it does."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, page: Path, *, workspace: str = "/home/you/ledger-api") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.page = page
        self.workspace = workspace
        self.epoch = "5f0c"
        self.refuses = False
        self.asked_from: list[str] = []
        self.snapshots = 0
        self.report = "# Run Report"
        self.transcript: tuple[TranscriptEvent, ...] = ()
        self.changed = threading.Condition()
        self._cut = 0
        self._runs: dict[str, list[e.Recorded]] = {}
        self._seq = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    @property
    def head(self) -> str:
        return f"{self.epoch}-{self._seq}"

    def happen(self, *events: e.RunEvent, run: str = "run_1") -> None:
        """Let something happen in a run; whoever listens hears it."""
        with self.changed:
            for event in events:
                self._seq += 1
                entry = e.Recorded(self._seq, STARTED_MS + 1000 * self._seq, run, event)
                self._runs.setdefault(run, []).append(entry)
            self.changed.notify_all()

    def cut_streams(self) -> None:
        """End every open stream, as a network or a restart does."""
        with self.changed:
            self._cut += 1
            self.changed.notify_all()

    def begin_anew(self, epoch: str, *events: e.RunEvent) -> None:
        """Become a server with another history, as after a back-up was brought back."""
        with self.changed:
            self.epoch, self._runs, self._seq = epoch, {}, 0
            self.happen(*events)
            self.cut_streams()

    def handle_error(self, request: object, client_address: object) -> None:
        """A page that leaves in the middle of an answer is no error."""

    def summaries(self) -> list[RunSummary]:
        with self.changed:
            return [_summary(run, entries) for run, entries in reversed(self._runs.items())]

    def window(self, run: str, last: int, before: int | None) -> dict[str, Any]:
        with self.changed:
            self.snapshots += 1
            entries = self._runs[run]
            begun = entries[0].event
            shown = [each for each in entries if before is None or each.seq < before]
            return {
                "head": f"{self.epoch}-{entries[-1].seq}",
                "state": msgspec.to_builtins(fold(entries)),
                "summary": msgspec.to_builtins(_summary(run, entries)),
                "team": msgspec.to_builtins(
                    begun.payload.team if isinstance(begun, e.RunStarted) else ()
                ),
                "events": [line(entry) for entry in shown[-last:]],
                "earlier": len(shown) > last,
            }

    def talk(self, agent: str) -> dict[str, Any]:
        """What an agent said and did, whichever agent is asked for."""
        said = msgspec.json.decode(msgspec.json.encode(self.transcript))
        entries = [
            {"seq": seq, "agent": agent, "event": event} for seq, event in enumerate(said, 1)
        ]
        return {"head": self.head, "entries": entries}

    def asks(self) -> list[dict[str, Any]]:
        """What waits for a person, as the events tell it."""
        with self.changed:
            found: dict[str, dict[str, Any]] = {}
            for entry in (each for entries in self._runs.values() for each in entries):
                match entry.event:
                    case e.AskedPerson(payload=ask):
                        found[ask.ask_id] = {
                            "ask_id": ask.ask_id,
                            "person": ask.person,
                            "run_id": entry.run_id,
                            "agent_id": entry.event.actor,
                            "scope": ask.scope,
                            "text": ask.question,
                        }
                    case e.AnsweredByPerson(payload=answer):
                        found.pop(answer.ask_id, None)
                    case _:
                        pass
            return list(found.values())

    def follow(self, place: str, handler: Handler) -> None:
        """Send what comes after a place, in any run, until the stream is cut."""
        epoch, _, seq = place.rpartition("-")
        after = int(seq) if epoch == self.epoch else self._seq
        with self.changed:
            self.asked_from.append(place)
            cut = self._cut
            if epoch != self.epoch:
                handler.send_frame(
                    "event: reset", f"id: {self.head}", f'data: {{"head":"{self.head}"}}'
                )
            while cut == self._cut:
                everything = (each for entries in self._runs.values() for each in entries)
                for entry in sorted(everything, key=lambda each: each.seq):
                    if entry.seq > after:
                        after = entry.seq
                        told = json.dumps(line(entry))
                        handler.send_frame(f"id: {self.epoch}-{after}", f"data: {told}")
                self.changed.wait()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: CannedServer

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        parts = [unquote(part) for part in asked.path.strip("/").split("/")]
        if self.server.refuses and parts[0] == "api":
            self.send_error(503)
            return
        match parts:
            case ["api", "v1", "server"]:
                self._send_json(
                    {
                        "version": "0",
                        "pid": 1,
                        "root": self.server.workspace,
                        "epoch": self.server.epoch,
                        "head": self.server.head,
                    }
                )
            case ["api", "v1", "runs"]:
                runs = msgspec.to_builtins(self.server.summaries())
                self._send_json({"head": self.server.head, "runs": runs})
            case ["api", "v1", "runs", run, "window"]:
                query = {name: int(values[0]) for name, values in parse_qs(asked.query).items()}
                self._send_json(self.server.window(run, query["last"], query.get("before")))
            case ["api", "v1", "runs", _, "budget"]:
                self._send_json({"turns": 60, "minutes": 45, "tokens": 1_200_000, "cost": 5})
            case ["api", "v1", "runs", _, "transcript"]:
                self._send_json(self.server.talk(parse_qs(asked.query)["agent"][0]))
            case ["api", "v1", "runs", _, "report"]:
                self._send(self.server.report.encode(), "text/markdown")
            case ["api", "v1", "asks"]:
                self._send_json({"head": self.server.head, "asks": self.server.asks()})
            case ["api", "v1", "events"]:
                self._send_stream(
                    {name: values[0] for name, values in parse_qs(asked.query).items()}
                )
            case _:
                self._send_file("/".join(parts) or "index.html")

    def _send_stream(self, query: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.end_headers()
        self.wfile.write(b"retry: 1000\n\n")
        with suppress(OSError):  # the page may go at any time
            self.server.follow(query["last_event_id"], self)

    def send_frame(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\n" for line in (*lines, "")).encode())

    def _send_json(self, value: object) -> None:
        self._send(json.dumps(value).encode(), "application/json")

    def _send_file(self, name: str) -> None:
        file = self.server.page / name
        if file.is_file():
            self._send(file.read_bytes(), mimetypes.guess_type(name)[0] or "text/plain")
        else:
            self.send_error(404)

    def _send(self, body: bytes, media: str) -> None:
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Keep quiet."""


def line(entry: e.Recorded) -> dict[str, Any]:
    """An event as the feed tells it."""
    told: dict[str, Any] = json.loads(e.to_json(entry.event))
    return {"seq": entry.seq, "ts": entry.ts, "runId": entry.run_id, **told}


def _summary(run: str, entries: list[e.Recorded]) -> RunSummary:
    state = fold(entries)
    status = state.status if state.status is not RunStatus.NEW else RunStatus.RUNNING
    return RunSummary(
        run_id=run,
        flow=state.flow,
        request=state.request,
        team=tuple(state.names.values()),
        status=status,
        started_ms=entries[0].ts,
        tasks=len(state.tasks),
    )
