"""A run as JSON lines on standard output, and nothing else there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from agentcanvas.cli.live.clean import json_line, lines_of
from agentcanvas.cli.live.view import RunView
from agentcanvas.runs.events import Recorded, to_json

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonScreen:
    """One event a line, as in the run's own log; sentences for people go to standard error."""

    wants_transcripts = False

    def show(self, view: RunView, recorded: Recorded | None = None) -> None:
        """Print the event."""
        del view
        if recorded is not None:
            print(line(recorded), flush=True)

    def say(self, sentence: str) -> None:
        """Tell whoever watches, not whoever reads."""
        for each in lines_of(sentence):
            print(each, file=sys.stderr, flush=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing to clear."""
        yield


def line(recorded: Recorded) -> str:
    """{ts, runId, seq, event, actor, …} on one line."""
    members = _members.decode(to_json(recorded.event))
    whole = {"ts": recorded.ts, "runId": recorded.run_id, "seq": recorded.seq, **members}
    return one_json(whole)


def one_json(value: object) -> str:
    """Any value on one line, fit for a terminal."""
    return json_line(msgspec.json.format(msgspec.json.encode(value), indent=-1))
