"""``agentcanvas trace``: a conversation as a tree, rooted at its first message (M4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from agentcanvas.cli.hubs import Data, Hub, at_hub
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.said_in_hub import (
    entry_json,
    message_text,
    standing_text,
    time_of_day,
)
from agentcanvas.cli.live.terminal import console_here
from agentcanvas.cli.live.words import count
from agentcanvas.errors import NotFound
from agentcanvas.hub import chronicle
from agentcanvas.hub.office import Entry
from agentcanvas.protocol.envelope import Envelope, from_json
from agentcanvas.protocol.log import Thread, threads

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_SECOND_MS = 1000
_MOST_GUIDES = 16


@app.command()
def trace(
    conversation: Annotated[
        str,
        typer.Argument(
            metavar="CORRELATION-ID",
            help="The correlation id, or the id of any message of the conversation.",
        ),
    ],
    data: Data = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each root, replies in it.")
    ] = False,
) -> None:
    """Show a conversation as a tree: each message below the one it answers.

    Behind each stands how long after the first it came, and what became of it where it has not
    arrived.
    """

    async def work(hub: Hub) -> int:
        found = await hub.office.thread(conversation)
        if not found:
            raise NotFound(
                f"No message belongs to {one_line(conversation)}. See what is said: "
                f"{hub.command('tail', '--json')}"
            )
        read = [_read(entry) for entry in found]
        by_envelope = {id(envelope): entry for envelope, entry in zip(read, found, strict=True)}
        trees = threads(read)
        if as_json:
            for tree in trees:
                print(one_json(_as_json(tree, by_envelope)))
            return ExitCode.DONE
        console = console_here()
        for tree in trees:
            for line in _as_lines(tree, by_envelope):
                console.print(line, soft_wrap=True)
        took = found[-1].at_ms - found[0].at_ms
        console.print(
            Text(f"{count(len(found), 'message')} in {_seconds(took)}", style="dim"), soft_wrap=True
        )
        return ExitCode.DONE

    at_hub(work, data)


def _read(entry: Entry) -> Envelope:
    return from_json(bytes(chronicle.read(entry).envelope))


def _as_json(tree: Thread, entries: Mapping[int, Entry]) -> dict[str, Any]:
    line = entry_json(entries[id(tree.envelope)])
    return {**line, "replies": [_as_json(each, entries) for each in tree.replies]}


def _as_lines(thread: Thread, entries: Mapping[int, Entry]) -> Iterator[Text]:
    """The tree, a message a line, each of them whole: its end says what became of it."""
    first = entries[id(thread.envelope)]
    yield _line(first, first)
    below = _last_first(thread)
    open_: list[bool] = []
    while below:  # not by calling itself: a conversation may be as deep as it likes
        depth, reply, is_last = below.pop()
        del open_[depth:]
        text = Text(_guides(open_) + ("└── " if is_last else "├── "), style="dim")
        yield text.append(_line(entries[id(reply.envelope)], first))
        open_.append(not is_last)
        below += _last_first(reply, depth + 1)


def _last_first(thread: Thread, depth: int = 0) -> list[tuple[int, Thread, bool]]:
    """Its replies, to be taken from the end, each with whether it is the last of them."""
    last = len(thread.replies) - 1
    return [(depth, each, n == last) for n, each in enumerate(thread.replies)][::-1]


def _guides(open_: Sequence[bool]) -> str:
    """The lines that lead past a reply to later ones; of very many only the nearest."""
    left_out = len(open_) - _MOST_GUIDES
    start = f"… {left_out} more  " if left_out > 0 else ""
    return start + "".join("│   " if each else "    " for each in open_[-_MOST_GUIDES:])


def _line(entry: Entry, first: Entry) -> Text:
    posted = chronicle.read(entry)
    text = message_text(from_json(bytes(posted.envelope)), posted.on_behalf_of)
    text.append(standing_text(entry))
    if entry is first:
        text.append(f"  {time_of_day(entry.at_ms)}", style="dim")
    else:
        text.append(f"  +{_seconds(entry.at_ms - first.at_ms)}", style="dim")
    return text


def _seconds(ms: int) -> str:
    return f"{ms / _SECOND_MS:.3f} s" if ms < _SECOND_MS else f"{ms / _SECOND_MS:.1f} s"
