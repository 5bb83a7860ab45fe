"""``agentcanvas send``: a task for an agent, or a message of any dialect, from the command line."""

from __future__ import annotations

import sys
from typing import Annotated

import anyio
import msgspec
import typer
from msgspec import UNSET, Raw

from agentcanvas.cli.hubs import AsJson, Data, Hub, at_hub
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode, closing
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.said_in_hub import entry_json, gist
from agentcanvas.cli.offices import complain, misused
from agentcanvas.cli.reading import read
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentNotFound, DeadlineExceeded, ResourceError
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.events import EventKind, read_posted
from agentcanvas.hub.office import Choice, Entry, Sent, TaskOrder
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Kind, TaskResult
from agentcanvas.protocol.values import as_text, is_text

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_BAD = frozenset({Kind.TASK_FAIL, Kind.TASK_REJECT, Kind.ERROR})
_FINAL = _BAD | {Kind.TASK_COMPLETE, Kind.REVIEW_RESULT, Kind.STATUS_RESPONSE}
_DEFAULT_S = 300.0


@app.command()
def send(
    to: Annotated[
        str | None,
        typer.Argument(metavar="AGENT", help="Who is to do it.", show_default=False),
    ] = None,
    task_type: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK-TYPE", help="What it is, such as code_review.", show_default=False
        ),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="What it is about: words, or a JSON object or list; - is standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Send this message instead: MAC, SPEC-022 or ACP, as it stands, as its own "
            "sender; - is standard input.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait for the answer and print it.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", help="How long it may take.", min=0.001),
    ] = _DEFAULT_S,
    priority: Annotated[
        int | None,
        typer.Option(min=1, max=10, help="1 to 10; 5 is usual, 9 is urgent.", show_default=False),
    ] = None,
    session: Annotated[str, typer.Option("--session", "-s", help="In which session.")] = "default",
    person: Annotated[str, typer.Option("--as", metavar="NAME", help="Which person asks.")] = "you",
    callback_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Called when it is done, where that is allowed.", show_default=False
        ),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Give an agent a task, or send a message as it is.

    Without `--wait` it ends as soon as the message is safe. With it, the exit code is 0 when the
    task was done, 1 when it was not, and what came out is printed on standard output.
    """
    message = _message(to, task_type, input_, file)
    order = TaskOrder(
        to=to or "",
        task_type=task_type or "",
        input=_as_input(input_),
        person=person,
        session=session,
        priority=UNSET if priority is None else priority,
        timeout_s=timeout,
        callback_url=callback_url or UNSET,
    )

    async def work(hub: Hub) -> int:
        if wait and not hub.is_live:
            raise ResourceError(f"The hub does not run, so nobody answers. Start it: {hub.start}")
        try:
            sent = await (hub.office.send(message) if message else hub.office.assign(order))
        except AgentNotFound as reason:
            complain(f"{reason}")
            print(f"See who is known: {hub.command('agents')}", file=sys.stderr)
            return ExitCode.ERROR
        if not wait:
            _tell(hub, sent, as_json=as_json)
            return ExitCode.DONE
        return await _await_answer(hub, sent, timeout, as_json=as_json)

    at_hub(work, data)


def _message(
    to: str | None, task_type: str | None, input_: str | None, file: str | None
) -> bytes | None:
    if file is not None:
        if to is not None:
            raise misused("Name an agent and a task, or a message with --file, not both.")
        return read(file) or b" "
    if to is None or task_type is None:
        raise misused(
            "Say who is to do what: agentcanvas send AGENT TASK-TYPE [INPUT], or hand in a message "
            "with --file."
        )
    del input_
    return None


def _as_input(given: str | None) -> Raw:
    """Words as a text; an object or a list as that."""
    if given is None:
        return Raw(b"null")
    text = read("-").decode("utf-8", "replace") if given == "-" else given
    if text.lstrip()[:1] in ("{", "["):
        try:
            return Raw(msgspec.json.encode(msgspec.json.decode(text)))
        except msgspec.DecodeError as wrong:
            raise misused(
                f"The input begins like JSON and is none ({wrong}). Quote it for the shell, or "
                "begin with a word."
            ) from None
    return Raw(msgspec.json.encode(text))


def _tell(hub: Hub, sent: Sent, *, as_json: bool) -> None:
    if as_json:
        print(one_json(sent))
        return
    if sent.repeated:
        print(f"{one_line(sent.id)} was there already; it is delivered once.")
    elif sent.held:
        print(f"{one_line(sent.id)} waits for a person to agree: agentcanvas review")
    else:
        kept = "" if hub.is_live else f", and waits until the hub runs ({hub.start})"
        print(f"{one_line(sent.id)} is safe{kept}.")
    print(f"What comes of it: {hub.command('trace', sent.thread)}")


async def _await_answer(hub: Hub, sent: Sent, timeout_s: float, *, as_json: bool) -> int:
    """Follow the conversation to its end; a little longer than the task itself may take."""
    clock = SystemClock()
    with anyio.CancelScope() as scope:
        limit = ring_at(clock, clock.monotonic() + timeout_s + 5, scope.cancel)
        try:
            choice = Choice(correlation=sent.thread)
            async with closing(hub.office.entries(choice, after=sent.number)) as entries:
                async for entry in entries:
                    code = _heard(entry, sent, as_json=as_json)
                    if code is not None:
                        return code
        finally:
            limit.cancel()
    raise DeadlineExceeded(
        f"No answer within {timeout_s:g} s. It may still come: {hub.command('trace', sent.thread)}"
    )


def _heard(entry: Entry, sent: Sent, *, as_json: bool) -> int | None:
    """Print what a line has to say about it; the exit code if that was the end."""
    if entry.event is EventKind.UNDELIVERABLE:
        complain("It could not be delivered. See: agentcanvas deadletters")
        return ExitCode.ERROR
    if entry.event is not EventKind.MESSAGE:
        return None
    envelope, _ = read_posted(bytes(entry.body))
    if envelope.id == sent.id:
        return None
    if envelope.kind not in _FINAL:
        print(f"{one_line(envelope.sender.id, 40)}: {gist(envelope)}", file=sys.stderr, flush=True)
        return None
    is_bad = envelope.kind in _BAD
    if as_json:
        print(one_json(entry_json(entry)))
    elif is_bad:
        complain(f"{one_line(envelope.sender.id, 40)}: {gist(envelope)}")
    else:
        print(_output(envelope))
    return ExitCode.ERROR if is_bad else ExitCode.DONE


def _output(envelope: Envelope) -> str:
    """What came out of a task, whole: a text as it is, anything else as JSON."""
    body = envelope.body
    if not isinstance(body, TaskResult) or body.output is UNSET:
        return gist(envelope)
    return as_text(body.output) if is_text(body.output) else one_json(body.output)
