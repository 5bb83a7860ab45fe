"""What a run of a coding CLI came to.

Its stream decides; the exit code counts only where the stream says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, structs

from agentcanvas.agents.cli.adapter import Facts
from agentcanvas.agents.cli.failures import why
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.kit import UNCONFINED, Kit
from agentcanvas.agents.confined import NOT_FOUND, end_of, survived
from agentcanvas.agents.runtime import Outcome, Turn, TurnResult, answered, failed
from agentcanvas.protocol.records import FailureClass, Usage
from agentcanvas.sandbox.process import Cause, Ending, Limits

_MOST_DENIED = 3


@dataclass(frozen=True)
class Judgement:
    """Judges one run by what was heard of it; ``remarks`` were made before it began."""

    kit: Kit
    turn: Turn
    heard: Heard
    bounds: Limits
    remarks: tuple[str, ...] = ()

    @property
    def _facts(self) -> Facts:
        return self.kit.adapter.facts

    def result(self, ending: Ending) -> TurnResult:
        """What the turn came to, now that its program has ended."""
        heard = self.heard
        notes = tuple(self._notes(ending))
        usage = self._priced(self._of_this_turn(heard.usage))
        common: dict[str, Any] = {
            "usage": usage,
            "session_id": heard.session or None,
            "exit_code": ending.exit_code,
            "left_over": ending.survivors,
            "notes": notes,
        }
        stopped = self._stopped(ending)
        if stopped is not None:
            outcome, error, failure = stopped
        elif heard.failure is not None:
            outcome, failure = Outcome.FAILED, heard.failure
            error = f"{self._facts.title}: {heard.error}"
        elif heard.ended:
            return answered(self.turn, heard.answer, **common)
        else:
            outcome, (error, failure) = Outcome.FAILED, self._ended_without_a_word(ending)
        result = failed(
            error if error.endswith(".") else f"{error}.",
            failure,
            outcome=outcome,
            text=heard.answer,
            **common,
        )
        return structs.replace(result, retry_at_ms=heard.retry_at_ms)

    def _stopped(self, ending: Ending) -> tuple[Outcome, str, FailureClass] | None:
        """What ended it, when it was not itself."""
        if ending.cause is Cause.EXITED:
            return None
        end = end_of(ending, self._facts.title, self.bounds, self.heard.last_words)
        return end.outcome, end.error, end.error_class or FailureClass.CRASH

    def _ended_without_a_word(self, ending: Ending) -> tuple[str, FailureClass]:
        """The stream broke off: exit code and last words are all there is."""
        heard, code, title = self.heard, ending.exit_code, self._facts.title
        if heard.denied:
            return f"{title} was refused {_some(heard.denied)} and gave up", FailureClass.DENIED
        said = f": {heard.last_words}" if heard.last_words else ""
        if known := self._facts.exit_codes.get(code):
            return f"{title} ended with exit code {code}{said}", known
        if code == NOT_FOUND:
            return f"{title} could not be started{said}", FailureClass.CRASH
        if code == 0:
            return f"{title} ended without an answer{said}", _crash(why(heard.last_words))
        end = end_of(ending, title, self.bounds, heard.last_words)
        failure = why(heard.last_words) if code > 0 else FailureClass.CRASH
        return end.error, _crash(failure)

    def _notes(self, ending: Ending) -> list[str]:
        heard, title = self.heard, self._facts.title
        notes = list(self.remarks)
        if heard.denied and heard.ended:
            notes.append(f"{title} refused itself {_some(heard.denied)}.")
        well = heard.ended and heard.failure is None and ending.cause is Cause.EXITED
        if well and ending.exit_code:
            notes.append(f"{title} ended with exit code {ending.exit_code} after its answer.")
        if heard.unread:
            said = "line was" if heard.unread == 1 else "lines were"
            notes.append(
                f"{heard.unread} {said} not understood of {title}; the transcript has all of it."
            )
        if self.kit.wishes.bypass and self.kit.confinement.name == UNCONFINED:
            notes.append(f"{title} ran without confinement and with its own checks turned off.")
        if ending.survivors:
            notes.append(survived(ending.survivors))
        return notes

    def _of_this_turn(self, usage: Usage) -> Usage:
        """What was used since the session was last heard of."""
        session, names = self.heard.session, self._facts.totals
        before = self.kit.counted.get(session)
        if session and names:
            self.kit.counted[session] = usage
        if before is None:
            return usage
        known = {
            name: (getattr(usage, name), getattr(before, name))
            for name in names
            if UNSET not in (getattr(usage, name), getattr(before, name))
        }
        return structs.replace(
            usage, **{name: max(0, now - then) for name, (now, then) in known.items()}
        )

    def _priced(self, usage: Usage) -> Usage:
        """The usage with a cost by estimate where the CLI tells tokens only."""
        if usage.cost is not UNSET or usage == Usage():
            return usage
        named = usage
        if usage.model is UNSET and self.kit.wishes.model:
            named = structs.replace(usage, model=self.kit.wishes.model)
        cost = self.kit.price(named)
        return named if cost is None else structs.replace(named, cost=cost, estimated=True)

    @property
    def has_lost_its_session(self) -> bool:
        """Whether it failed because it does not know the session it was to go on with."""
        heard = self.heard
        said = f"{heard.error} {heard.last_words}".lower()
        unknown = ("not found", "no conversation", "no session", "does not exist", "unknown", "no ")
        return (
            not heard.ended
            and "session" in said.replace("conversation", "session").replace("thread", "session")
            and any(word in said for word in unknown)
        )


def _crash(failure: FailureClass) -> FailureClass:
    return FailureClass.CRASH if failure is FailureClass.UNKNOWN else failure


def _some(denied: Sequence[str]) -> str:
    shown = ", ".join(dict.fromkeys(denied[:_MOST_DENIED]))
    more = len(denied) - _MOST_DENIED
    return f"{shown} and {more} more" if more > 0 else shown
