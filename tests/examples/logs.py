"""The log of a real run, as the rules of the patterns read it: from what is on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agentcanvas.flows.check import check
from agentcanvas.flows.load import read_flow
from agentcanvas.pattern import Fate, Outcome
from agentcanvas.patterns.scripted import Said
from agentcanvas.runs import events as e
from agentcanvas.runs.board import Posted
from agentcanvas.runs.journal import STEP, Step
from agentcanvas.runs.speech import Listening
from agentcanvas.store import Event, Store
from tests.patterns.team import BY_ID, Log

_ROUND = re.compile(r"/round:(\d+)")
_VERB = re.compile(r"/(post|publish|subscribe|unsubscribe):\d+(?:/post)?$")
_NOTICE = re.compile(r"\[\S+ \d+( by \S+)?\]\n")
_WITHIN = re.compile(r"/play:\d+/([^/]+)")


async def log_of(store: Store, stream: str, flow: Path) -> Log:
    """What happened in the one interaction of a run."""
    rows: list[Event] = []
    while page := await store.events(after=rows[-1].seq if rows else 0, stream=stream):
        rows += page
    (interaction,) = check(read_flow(flow)).sound().interactions
    pattern = BY_ID[interaction.pattern_id]
    params = interaction.data.params if interaction.data else {}
    names = {field.name for field in msgspec.structs.fields(pattern.options)}
    given = {name: value for name, value in params.items() if name in names}
    events = [e.from_row(row).event for row in rows if row.kind in e.KINDS]
    outcome = next(_outcomes(events))
    said = tuple(_said(rows))
    return Log(interaction.roles, said, outcome, msgspec.convert(given, pattern.options))


def _outcomes(events: list[e.RunEvent]) -> Iterator[Outcome]:
    """How the interaction ended; the run, if that ended it in the middle."""
    for each in events:
        match each:
            case e.InteractionEnded(payload=end):
                yield Outcome(end.reason, end.done, end.result)
            case e.RunEnded(payload=end):
                yield Outcome(end.reason, done=False, result=end.result)


def _said(rows: list[Event]) -> Iterator[Said]:
    events = [e.from_row(row).event for row in rows if row.kind in e.KINDS]
    ends = {each.payload.turn_id: each.payload for each in events if isinstance(each, e.TurnEnded)}
    for row in rows:
        if row.kind == STEP:
            step = msgspec.json.decode(row.body, type=Step)
            yield from _step(step)
        elif row.kind in e.KINDS:
            yield from _event(e.from_row(row).event, ends)


def _step(step: Step) -> Iterator[Said]:
    found = _VERB.search(step.step)
    match found and found[1]:
        case "post" | "publish" as verb:
            entry = msgspec.json.decode(step.result, type=Posted).entry
            yield Said(verb, _round(step.step), entry.topic, entry.text, by=entry.by)
        case "subscribe" | "unsubscribe" as verb:
            listening = msgspec.json.decode(step.result, type=Listening)
            yield Said(verb, _round(step.step), listening.who, listening.topic)


def _event(event: e.RunEvent, ends: dict[str, e.TurnDone]) -> Iterator[Said]:
    match event:
        case e.TurnStarted(payload=turn) if turn.turn_id in ends:
            end = ends[turn.turn_id]
            yield Said(
                "task" if turn.task_id else "ask",
                _round(turn.turn_id),
                turn.to,
                turn.text,
                _heard(end.text),
                Fate.DONE if end.ok else Fate.FAILED,
                within="/".join(_WITHIN.findall(turn.turn_id)),
            )
        case e.MessagePassed(payload=told) if _NOTICE.match(told.text):
            yield Said("notify", 0, told.to, told.text.partition("\n")[2])
        case e.MessagePassed(payload=told):
            yield Said("route", 0, told.to, told.text)
        case e.Noted(payload=note):
            yield Said("note", 0, text=note.entry, reply=", ".join(note.sources))


def _round(step: str) -> int:
    found = _ROUND.findall(step)
    return int(found[-1]) if found else 0


def _heard(text: str) -> str:
    """What others hear of an answer: of a report in six parts its intent."""
    lines = text.strip().splitlines()
    return lines[1] if lines[:1] == ["1. Intent"] else text.strip()
