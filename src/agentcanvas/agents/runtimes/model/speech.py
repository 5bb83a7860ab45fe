"""What a model says while it says it: put on record line by line, keys taken out."""

from __future__ import annotations

from collections.abc import Callable

from agentcanvas.agents.confined import Environment
from agentcanvas.agents.runtime import UNSTAMPED, Emit
from agentcanvas.protocol.records import TextEvent, ThinkingEvent, TranscriptEvent

_LONGEST_LINE = 8_192


class Speech:
    """Hears words in pieces and tells whole lines; ``close`` tells what is left."""

    def __init__(self, emit: Emit, secrets: Environment) -> None:
        self._words = _Lines(emit, secrets, lambda text: TextEvent(text=text, **UNSTAMPED))
        self._thoughts = _Lines(emit, secrets, lambda text: ThinkingEvent(text=text, **UNSTAMPED))

    def text(self, words: str) -> None:
        """Hear words of the answer."""
        self._thoughts.close()
        self._words.hear(words)

    def thinking(self, words: str) -> None:
        """Hear words the model says to itself."""
        self._words.close()
        self._thoughts.hear(words)

    def close(self) -> None:
        """Tell what has not been told."""
        self._thoughts.close()
        self._words.close()


class _Lines:
    def __init__(
        self, emit: Emit, secrets: Environment, event: Callable[[str], TranscriptEvent]
    ) -> None:
        self._emit = emit
        self._secrets = secrets
        self._event = event
        self._pending = ""

    def hear(self, words: str) -> None:
        self._pending += words
        if "\n" in words or len(self._pending) > _LONGEST_LINE:
            whole, newline, rest = self._pending.rpartition("\n")
            if not newline:
                whole, rest = self._pending, ""
            self._pending = rest
            self._tell(whole)

    def close(self) -> None:
        self._tell(self._pending)
        self._pending = ""

    def _tell(self, text: str) -> None:
        if text.strip():
            self._emit(self._event(self._secrets.redacted(text)))
