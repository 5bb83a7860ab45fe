"""The record of a hub in words: a message in one line, and what happened to one or to an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType
from rich.text import Text

from agentcanvas.cli.live.clean import one_line
from agentcanvas.clock import rfc3339
from agentcanvas.hub import chronicle
from agentcanvas.hub import events as e
from agentcanvas.hub.events import EventKind
from agentcanvas.hub.journal import Decision
from agentcanvas.hub.office import Entry, Fate
from agentcanvas.protocol import kinds as k
from agentcanvas.protocol.envelope import Envelope, from_json
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.reviews import Feedback, ReviewRequest, ReviewResult
from agentcanvas.protocol.values import as_text

STYLES = {
    Kind.TASK_ASSIGN: "cyan",
    Kind.TASK_COMPLETE: "green",
    Kind.TASK_FAIL: "red",
    Kind.TASK_REJECT: "red",
    Kind.TASK_CANCEL: "yellow",
    Kind.TASK_PROGRESS: "dim",
    Kind.TASK_ACCEPT: "dim",
    Kind.STATUS_QUERY: "dim",
    Kind.STATUS_RESPONSE: "dim",
    Kind.ACK: "dim",
    Kind.REVIEW_REQUEST: "magenta",
    Kind.REVIEW_RESULT: "magenta",
    Kind.BROADCAST: "blue",
    Kind.ERROR: "bold red",
}
_EVENT_STYLES = {
    EventKind.UNDELIVERABLE: "bold red",
    EventKind.REJECTED: "red",
    EventKind.AGENT_LOST: "bold red",
    EventKind.AGENT_PRESENT: "green",
}
_FATES = {Fate.WAITING: ("waits", "yellow"), Fate.DEAD: ("dead letter", "bold red")}
_MANNER = 60


def time_of_day(ms: int) -> str:
    """A moment of today, as the clock on the wall shows it; with its day if it was another."""
    moment = datetime.fromtimestamp(ms / 1000).astimezone()
    same_day = moment.date() == datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M")


def gist(envelope: Envelope) -> str:
    """What a message says, in a few words."""
    return one_line(_of_task(envelope.body) or _of_rest(envelope.body))


def _of_task(body: object) -> str:
    match body:
        case k.TaskAssign():
            what = body.task_type or body.action or body.task_id or ""
            return _joined(what, _free(body.input))
        case k.TaskAccept():
            return "takes it"
        case k.TaskReject():
            others = f" Ask {', '.join(body.suggested_agents)}." if body.suggested_agents else ""
            return _joined(body.reason, body.message or "") + others
        case k.TaskProgress():
            percent = "" if body.progress is UNSET else f"{body.progress:.0f} %"
            return f"{percent} {body.current_step or body.status or ''}".strip() or "is at it"
        case k.TaskResult(error_message=str(message)):
            return _joined(body.error_code or body.status or "failed", message)
        case k.TaskResult():
            return body.summary or _free(body.output) or body.status or "done"
        case k.TaskCancel():
            return _joined(f"stop {body.scope or ''} {body.target_id or ''}", body.reason or "")
        case _:
            return ""


def _of_rest(body: object) -> str:
    match body:
        case k.StatusQuery():
            return _joined(body.query_type or "how is it?", body.task_id or body.agent_id or "")
        case k.StatusResponse():
            return f"{body.status or ''} {_percent(body.progress)}".strip()
        case k.Broadcast():
            return _joined(body.event, body.message or _free(body.data))
        case k.Error():
            return _joined(body.error_code, body.error_message)
        case k.Sealed():
            return "(sealed: only its recipient can read it)"
        case _:
            return _of_review(body)


def _of_review(body: object) -> str:
    match body:
        case ReviewRequest():
            return _joined("review", body.context.task_description)
        case ReviewResult():
            return _joined(body.verdict, body.summary)
        case Feedback():
            return _joined(body.subject, body.content)
        case _:
            return ""


def entry_text(entry: Entry, *, with_session: bool = True) -> Text:
    """A line of the record."""
    text = Text(f"{time_of_day(entry.at_ms)}  ", style="dim")
    if entry.event is EventKind.MESSAGE:
        posted = chronicle.read(entry)
        envelope = from_json(bytes(posted.envelope))
        text.append(message_text(envelope, posted.on_behalf_of))
        _append_breaches(text, posted.validation_errors)
    else:
        text.append(_happening(entry), style=_EVENT_STYLES.get(entry.event, "dim"))
    if with_session and entry.session not in ("", "default"):
        text.append(f"  [{one_line(entry.session, 40)}]", style="dim")
    return text


def message_text(envelope: Envelope, on_behalf_of: e.OnBehalfOf | UnsetType = UNSET) -> Text:
    """Who says what to whom."""
    speaker = envelope.sender.id if on_behalf_of is UNSET else on_behalf_of.speaker
    to = "whoever asked" if envelope.recipient is UNSET else envelope.recipient.id
    text = Text()
    text.append(one_line(speaker, 40), style="bold")
    text.append(" → ")
    text.append(one_line(to, 40), style="bold")
    text.append(f"  {envelope.kind}", style=STYLES.get(envelope.kind, ""))
    said = gist(envelope)
    if said:
        text.append(f"  {said}")
    return text


def _append_breaches(text: Text, breaches: tuple[str, ...]) -> None:
    for breach in breaches[:1]:
        more = f" and {len(breaches) - 1} more" if len(breaches) > 1 else ""
        text.append(f"  ({one_line(breach, 80)}{more})", style="yellow")


def standing_text(entry: Entry) -> Text:
    """What became of a message, where that is worth a word."""
    if entry.standing is None or entry.standing.fate not in _FATES:
        return Text()
    word, style = _FATES[entry.standing.fate]
    times = entry.standing.tries
    tries = f" after {times} {'try' if times == 1 else 'tries'}" if times else ""
    why = f": {one_line(entry.standing.reason)}" if entry.standing.reason else ""
    return Text(f"  {word}{tries}{why}", style=style)


def _happening(entry: Entry) -> str:
    body = bytes(entry.body)
    match entry.event:
        case EventKind.UNDELIVERABLE:
            failed = msgspec.json.decode(body, type=e.Undelivered)
            who = f"{one_line(failed.sender, 40)} → {one_line(failed.recipient, 40)}"
            return f"{who}  not delivered: {one_line(failed.reason)}"
        case EventKind.REJECTED:
            refused = msgspec.json.decode(body, type=e.Rejected)
            again = f" ({refused.suppressed} more before)" if refused.suppressed else ""
            return f"{one_line(refused.sender, 40)}  refused: {one_line(refused.sentence)}{again}"
        case EventKind.RESENT | EventKind.DELETED:
            letter = msgspec.json.decode(body, type=e.Resent)
            what = "sent again" if entry.event is EventKind.RESENT else "given up"
            return f"{one_line(letter.recipient, 40)}  dead letter {letter.letter} {what}"
        case EventKind.AGENT_LOST:
            lost = msgspec.json.decode(body, type=e.AgentLostEvent)
            owed = f"; it owes {len(lost.owed)}" if lost.owed else ""
            return f"{one_line(lost.agent, 40)}  is lost: {one_line(lost.reason)}{owed}"
        case EventKind.AGENT_PRESENT:
            back = msgspec.json.decode(body, type=e.AgentPresentEvent)
            return f"{one_line(back.agent, 40)}  is back"
        case EventKind.CALLBACK:
            call = msgspec.json.decode(body, type=e.CallbackEnded)
            why = f": {one_line(call.reason)}" if call.reason else ""
            return f"callback to {one_line(call.host, 80) or 'nowhere'}  {call.outcome}{why}"
        case EventKind.RECOVERY:
            decision = msgspec.json.decode(body, type=Decision)
            to = f" → {one_line(decision.next_recipient, 40)}" if decision.next_recipient else ""
            return f"{one_line(decision.recipient, 40)}  {decision.choice}{to} {decision.code}"
        case _:
            return entry.event


def entry_json(entry: Entry) -> dict[str, Any]:
    """A line of the record for a tool: the message, and when and how it was taken in (M4)."""
    line: dict[str, Any] = {
        "seq": entry.seq,
        "event": entry.event,
        "session": entry.session,
        "logged_at": rfc3339(entry.at_ms),
    }
    if entry.standing is not None:
        line["standing"] = entry.standing
    if entry.event is not EventKind.MESSAGE:
        return {**line, "what": entry.body}
    posted = chronicle.read(entry)
    line["message"] = posted.envelope
    if posted.on_behalf_of is not UNSET:
        line["on_behalf_of"] = posted.on_behalf_of
    if posted.processing_duration_ms is not UNSET:
        line["processing_duration_ms"] = posted.processing_duration_ms
    if breaches := chronicle.breaches(posted):
        line["validation_errors"] = breaches
    return line


def _joined(what: str, more: str) -> str:
    what = what[: 4 * _MANNER].strip()
    return f"{what}: {more}" if what and more else what or more


def _percent(progress: float | UnsetType) -> str:
    return "" if progress is UNSET else f"{progress:.0f} %"


def _free(value: Raw | UnsetType) -> str:
    """Free JSON; a text as it is."""
    return "" if value is UNSET else as_text(value)
