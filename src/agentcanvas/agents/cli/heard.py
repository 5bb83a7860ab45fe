"""What was heard from one run of a CLI: events as they come, and what the stream says of its end.

The words a reader has for the worlds of twelve CLIs; it keeps totals and bounds, so that readers
need none of their own.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, structs

from agentcanvas.agents.cli import json_lines as js
from agentcanvas.agents.cli.failures import reset_ms, why
from agentcanvas.agents.confined import Telling
from agentcanvas.agents.runtime import UNSTAMPED, Emit
from agentcanvas.protocol.records import (
    ChangeStatus,
    FailureClass,
    FileChangeEvent,
    RawEvent,
    RetryEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultEvent,
    Usage,
    UsageEvent,
)

_LONGEST_OUTPUT = 60_000
_LONGEST_ANSWER = 2_000_000
_LONGEST_LAST_WORDS = 300
_LIVE = 400
_MOST_OPEN_CALLS = 1_000


class Heard:
    """Takes what a reader understood; ``root`` is where its files are, as the CLI sees them."""

    def __init__(self, emit: Emit, root: str, now_ms: int = 0) -> None:
        self._emit = emit
        self._root = root.rstrip("/") + "/"
        self._now_ms = now_ms
        self._raw = Telling(lambda text: emit(RawEvent(line=text, **UNSTAMPED)))
        self._message = ""
        self._parts: list[str] = []
        self._live = ""
        self._is_live = False
        self._writes: dict[str, tuple[str, ChangeStatus]] = {}
        self.answer = ""
        self.session = ""
        self.usage = Usage()
        self.ended = False
        """Whether the stream itself said that the turn is over."""
        self.failure: FailureClass | None = None
        self.error = ""
        self.retry_at_ms: int | None = None
        self.unread = 0
        """How many lines nobody understood."""
        self.denied: list[str] = []
        self.last_words = ""
        """The last line on stderr."""

    # -- words -----------------------------------------------------------------------------------

    def say(self, text: str, message: str = "") -> None:
        """A whole text of the agent; those of one message belong together."""
        self._settle()
        if not text.strip():
            return
        if not (message and message == self._message):
            self._parts, self._message = [], message
        self._parts.append(text)
        self._set_answer("\n".join(self._parts))
        self._emit(TextEvent(text=text, **UNSTAMPED))

    def add(self, piece: str, message: str = "live") -> None:
        """A piece of a text that is being written."""
        if message != self._message:
            self._settle()
            self._parts, self._message = [], message
        self._parts.append(piece)
        if len(self._parts) > _LIVE:
            self._parts = ["".join(self._parts)[:_LONGEST_ANSWER]]
        self._is_live = True
        self._live += piece
        if len(self._live) >= _LIVE:
            self._show_live()

    def _show_live(self) -> None:
        if self._live.strip():
            self._emit(TextEvent(text=self._live, **UNSTAMPED))
        self._live = ""

    def _settle(self) -> None:
        """End a text that came in pieces: something else follows."""
        if self._is_live:
            self._is_live = False
            self._set_answer("".join(self._parts))
            self._show_live()

    def _set_answer(self, text: str) -> None:
        self.answer = text[:_LONGEST_ANSWER]

    def think(self, text: str) -> None:
        """Words of the agent to itself."""
        self._settle()
        if text.strip():
            self._emit(ThinkingEvent(text=text[:_LONGEST_OUTPUT], **UNSTAMPED))

    # -- tools -----------------------------------------------------------------------------------

    def call(
        self,
        name: str,
        call_id: str = "",
        given: Any = None,
        *,
        writes: str = "",
        adds: bool = False,
    ) -> None:
        """A tool is used; ``writes`` is the file that it changes when it succeeds."""
        self._settle()
        self._message = ""
        if writes and len(self._writes) < _MOST_OPEN_CALLS:
            status = ChangeStatus.ADDED if adds else ChangeStatus.MODIFIED
            self._writes[call_id] = (writes, status)
        self._emit(
            ToolCallEvent(
                name=name or "tool", call_id=call_id or UNSET, input=js.raw(given), **UNSTAMPED
            )
        )

    def result(
        self,
        output: str,
        call_id: str = "",
        *,
        exit_code: int | None = None,
        failed: bool = False,
        adds: bool | None = None,
    ) -> None:
        """What a tool gave back; a file that it was to change is changed now."""
        self._settle()
        self._message = ""
        self._emit(
            ToolResultEvent(
                output=_shortened(output),
                call_id=call_id or UNSET,
                exit_code=UNSET if exit_code is None else exit_code,
                failed=failed,
                **UNSTAMPED,
            )
        )
        path, status = self._writes.pop(call_id, ("", ChangeStatus.MODIFIED))
        if path and not failed:
            if adds is not None:
                status = ChangeStatus.ADDED if adds else ChangeStatus.MODIFIED
            self.change(path, status)

    def change(self, path: str, status: ChangeStatus = ChangeStatus.MODIFIED) -> None:
        """A file was changed, as the agent says; the diff of the sandbox is what counts."""
        self._settle()
        shown = path.removeprefix(self._root)
        if shown:
            self._emit(FileChangeEvent(path=shown, status=status, **UNSTAMPED))

    def deny(self, what: str) -> None:
        """Something was refused by the CLI itself."""
        if len(self.denied) < _MOST_OPEN_CALLS:
            self.denied.append(what)

    # -- bookkeeping -----------------------------------------------------------------------------

    def begin(self, session: str, model: str = "") -> None:
        """The CLI's own session has a name."""
        if session and session != self.session:
            self.session = session
            self._emit(SessionEvent(session_id=session, model=model or UNSET, **UNSTAMPED))
        if model:
            self.usage = structs.replace(self.usage, model=model)

    def count(self, usage: Usage, *, more: bool = False) -> None:
        """Tokens and money so far; with ``more`` they come on top of what was counted."""
        said = {name: value for name, value in structs.asdict(usage).items() if value is not UNSET}
        if not said:
            return
        if more:
            for name in ("input_tokens", "output_tokens", "cache_read", "cache_write", "cost"):
                known = getattr(self.usage, name)
                if name in said and not isinstance(known, UnsetType):
                    said[name] += known
        before, self.usage = self.usage, structs.replace(self.usage, **said)
        if self.usage != before:
            self._emit(UsageEvent(usage=self.usage, **UNSTAMPED))

    def retry(self, attempt: int | None, reason: str, wait_ms: float | UnsetType = UNSET) -> None:
        """The CLI tries a model call again by itself."""
        self._settle()
        wait = UNSET if isinstance(wait_ms, UnsetType) else round(wait_ms)
        self._emit(
            RetryEvent(attempt=max(1, attempt or 1), reason=reason, wait_ms=wait, **UNSTAMPED)
        )
        self._note_reset(reason, why(reason))

    def fail(
        self, message: str, status: int | None = None, failure: FailureClass | None = None
    ) -> None:
        """The turn failed, says the stream; the last word on it counts."""
        self._settle()
        found = failure or why(message, status)
        if found is FailureClass.UNKNOWN and self.failure not in (None, FailureClass.UNKNOWN):
            return  # a general word after a precise one
        self.failure, self.error = found, " ".join(message.split())[: _LONGEST_LAST_WORDS * 2]
        self._note_reset(message, found)

    def _note_reset(self, message: str, failure: FailureClass) -> None:
        if failure in (FailureClass.RATE_LIMIT, FailureClass.QUOTA):
            self.retry_at_ms = reset_ms(message, self._now_ms) or self.retry_at_ms

    def recover(self) -> None:
        """What looked like a failure was none: the turn went on."""
        self.failure, self.error, self.retry_at_ms = None, "", None

    def end(self, answer: str = "") -> None:
        """The stream says that the turn is over; ``answer`` where it repeats it."""
        self._settle()
        self.ended = True
        if answer:
            self._set_answer(answer)

    # -- what nobody understood ------------------------------------------------------------------

    def raw(self, line: str) -> None:
        """A line that is not of the stream, or that means nothing to us."""
        if line.strip():
            self.unread += 1
            self._raw.line(line)

    def aside(self, line: str) -> None:
        """A line of stderr."""
        self._raw.line(line)
        if line.strip():
            self.last_words = " ".join(line.split())[:_LONGEST_LAST_WORDS]

    def close(self) -> None:
        """Put on record what was held back."""
        self._settle()
        self._raw.close()


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_OUTPUT:
        return text
    half = _LONGEST_OUTPUT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"
