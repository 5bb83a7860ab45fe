"""Any Python function as an agent, asynchronous or not.

It is called with the turn and, if it has a parameter of that name, with ``emit``. Text, data or a
whole ``TurnResult`` may come back. It runs inside this process, unconfined: it is code of whoever
put the team together. A plain function runs in a thread; cancelled, its thread goes on until it
returns, and what it returns or says by then is dropped.
"""

from __future__ import annotations

import inspect
import threading
import traceback
from collections.abc import Callable
from typing import Any

import anyio.from_thread
import anyio.to_thread
import msgspec

from agentcanvas.agents.runtime import UNSTAMPED, Emit, Turn, TurnResult, answered, failed
from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, ValidationError
from agentcanvas.protocol.forms import TextForm, write
from agentcanvas.protocol.records import FailureClass, RawEvent, TranscriptEvent


class PythonRuntime:
    """Calls a function a turn."""

    def __init__(self, function: Callable[..., Any], clock: Clock) -> None:
        self._function = function
        self._clock = clock
        self._name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self._is_async = _is_async(function)
        self._takes_emit = _takes_emit(function, self._name)

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Call the function; what it raises is a failed turn, its traceback in the transcript."""
        try:
            given = await (
                self._awaited(turn, emit) if self._is_async else self._in_thread(turn, emit)
            )
            return self._result(turn, given)
        except AgentCanvasError as error:
            return failed(f"{self._name}: {error}", FailureClass.UNKNOWN)
        except Exception as error:  # noqa: BLE001  # whatever a user's function may raise
            for line in traceback.format_exception(error):
                emit(RawEvent(line=line.rstrip("\n"), **UNSTAMPED))
            return failed(f"{self._name} raised {_spoken(error)}.", FailureClass.CRASH)

    async def _awaited(self, turn: Turn, emit: Emit) -> Any:
        return await self._called(turn, emit)

    def _called(self, turn: Turn, emit: Emit) -> Any:
        return self._function(turn, emit=emit) if self._takes_emit else self._function(turn)

    async def _in_thread(self, turn: Turn, emit: Emit) -> Any:
        line = _FromThread(emit)
        self._clock.hold()
        try:
            given = await anyio.to_thread.run_sync(self._called, turn, line, abandon_on_cancel=True)
        finally:
            self._clock.release()
            line.close()
        if inspect.isawaitable(given):  # a plain function that returns a coroutine
            return await given
        return given

    def _result(self, turn: Turn, given: Any) -> TurnResult:
        if isinstance(given, TurnResult):
            return given
        if given is None or isinstance(given, str):
            return answered(turn, given or "")
        if isinstance(given, TextForm):
            return answered(turn, write(given), value=given)
        try:
            text = msgspec.json.encode(given).decode()
        except (TypeError, ValueError) as wrong:
            raise ValidationError(
                f"its answer cannot be written as JSON ({wrong}); return text or plain data"
            ) from None
        return answered(turn, text, value=given)


class _FromThread:
    """``emit`` for a function in a thread: carried over to the event loop, dropped at the end."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._loop_thread = threading.get_ident()
        self._open = True

    def close(self) -> None:
        """Hear nothing more from the thread."""
        self._open = False

    def __call__(self, event: TranscriptEvent) -> None:
        if threading.get_ident() == self._loop_thread:
            self._emit(event)
        elif self._open:
            anyio.from_thread.run_sync(self._pass_on, event)

    def _pass_on(self, event: TranscriptEvent) -> None:
        if self._open:
            self._emit(event)


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  # an object's own method is asked too
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _takes_emit(function: Callable[..., Any], name: str) -> bool:
    """Whether it wants ``emit``; a function that cannot be called with a turn is refused."""
    try:
        signature = inspect.signature(function)
        wants = "emit" in signature.parameters
        signature.bind(None, **({"emit": None} if wants else {}))
    except ValueError:
        return False  # a builtin that does not tell
    except TypeError:
        raise ValidationError(
            f"{name} cannot be an agent: write it as def {name}(turn) or def {name}(turn, emit)"
        ) from None
    return wants


def _spoken(error: Exception) -> str:
    said = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
