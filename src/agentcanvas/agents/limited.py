"""A runtime that keeps to the limits of its turns, and says how long turns get on (D32, H8).

Time is the clock's. A limit cancels the runtime, which leaves nothing behind; what it had said by
then is in the result. A runtime that watches its own processes knows more about their end: give it
a ``grace_s``, so that this one is only the net below it.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
from msgspec import UNSET, Struct, structs

from agentcanvas.agents.runtime import Emit, Outcome, Runtime, Turn, TurnResult, failed
from agentcanvas.clock import Clock
from agentcanvas.hub.alarm import Timer, ring_at
from agentcanvas.protocol.limits import TaskLimits
from agentcanvas.protocol.records import (
    FailureClass,
    FileChangeEvent,
    SessionEvent,
    TextEvent,
    ToolCallEvent,
    TranscriptEvent,
    Usage,
    UsageEvent,
)

_LONGEST_STEP = 200


class Progress(Struct, frozen=True, kw_only=True):
    """How a long turn gets on; all of it is what the agent itself let be seen."""

    turn_id: str
    elapsed_s: float
    silent_s: float
    current_step: str = ""
    files: tuple[str, ...] = ()


Report = Callable[[Progress], object]
"""Is told how a turn gets on; it must not wait, and what it does about it is its own matter."""


class Limited:
    """Wraps a runtime; ``progress`` is told every 30 s once a turn is over 2 minutes (H8)."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        progress: Report | None = None,
        *,
        limits: TaskLimits = TaskLimits(),  # noqa: B008  # frozen, so that one is as good as another
        grace_s: float = 0.0,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._progress = progress
        self._limits = limits
        self._grace_s = grace_s

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run a turn until it ends or a limit ends it."""
        seen = _Seen(self._clock, turn, emit)
        result: TurnResult | None = None
        with anyio.CancelScope() as scope:
            watch = _Watch(self._clock, seen, scope, self._grace_s)
            if turn.timeout_s is not None:
                watch.for_the_end(turn.timeout_s)
            if turn.silent_s is not None:
                watch.for_silence(turn.silent_s)
            if self._progress is not None:
                watch.for_long_turns(self._limits, self._progress)
            try:
                result = await self._runtime.run(turn, seen)
            finally:
                watch.end()
        # A turn that made it while the limit was ending it has made it.
        return result or seen.stopped()


class _Watch:
    """The limits of one turn as timers: most turns end long before any of them."""

    def __init__(self, clock: Clock, seen: _Seen, scope: anyio.CancelScope, grace_s: float) -> None:
        self._clock = clock
        self._seen = seen
        self._scope = scope
        self._grace_s = grace_s
        self._timers: dict[str, Timer] = {}

    def for_the_end(self, limit_s: float) -> None:
        moment = self._seen.started + limit_s + self._grace_s
        self._set("end", moment, lambda: self._reach(Outcome.TIMEOUT))

    def for_silence(self, limit_s: float) -> None:
        heard = self._seen.last_sign

        def look() -> None:
            if self._seen.last_sign == heard:
                self._reach(Outcome.STALLED)
            else:
                self.for_silence(limit_s)

        self._set("silence", heard + limit_s + self._grace_s, look)

    def for_long_turns(self, limits: TaskLimits, report: Report) -> None:
        moment = self._seen.started + limits.progress_after_s

        def tell() -> None:
            nonlocal moment
            moment += limits.progress_every_s
            self._set("progress", moment, tell)
            report(self._seen.progress())

        self._set("progress", moment, tell)

    def end(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _set(self, name: str, moment: float, ring: Callable[[], None]) -> None:
        self._timers[name] = ring_at(self._clock, moment, ring)

    def _reach(self, limit: Outcome) -> None:
        self._seen.reached = limit
        self._scope.cancel()


class _Seen:
    """What went past while a turn ran; takes the place of ``emit``."""

    def __init__(self, clock: Clock, turn: Turn, emit: Emit) -> None:
        self._clock = clock
        self._turn = turn
        self._emit = emit
        self._texts: list[str] = []
        self._files: dict[str, None] = {}
        self._step = ""
        self._usage = Usage()
        self._session: str | None = None
        self.started = self.last_sign = clock.monotonic()
        self.reached = Outcome.TIMEOUT

    def __call__(self, event: TranscriptEvent) -> None:
        self.last_sign = self._clock.monotonic()
        if isinstance(event, TextEvent):
            self._texts.append(event.text)
            self._step = event.text
        elif isinstance(event, ToolCallEvent):
            self._step = event.name
        elif isinstance(event, FileChangeEvent):
            self._files[event.path] = None
        elif isinstance(event, SessionEvent):
            self._session = event.session_id
        elif isinstance(event, UsageEvent):
            self._usage = _merged(self._usage, event.usage)
        self._emit(event)

    def progress(self) -> Progress:
        now = self._clock.monotonic()
        return Progress(
            turn_id=self._turn.turn_id,
            elapsed_s=now - self.started,
            silent_s=now - self.last_sign,
            current_step=" ".join(self._step.split())[:_LONGEST_STEP],
            files=tuple(self._files),
        )

    def stopped(self) -> TurnResult:
        who = self._turn.agent_id
        failure = FailureClass.TIMEOUT
        if self.reached is Outcome.STALLED:
            failure = FailureClass.STALLED
            error = f"{who} gave no sign for {self._turn.silent_s:g} s and was stopped."
        else:
            error = f"{who} was not done after {self._turn.timeout_s:g} s and was stopped."
        return failed(
            error,
            failure,
            outcome=self.reached,
            text="\n".join(self._texts),
            usage=self._usage,
            session_id=self._session,
        )


def _merged(known: Usage, newer: Usage) -> Usage:
    """The latest count of each kind: agents report totals, not always all of them."""
    said = {name: value for name, value in structs.asdict(newer).items() if value is not UNSET}
    return structs.replace(known, **said)
