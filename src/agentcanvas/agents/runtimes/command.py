"""Any command line as an agent: the prompt goes in, what it prints is the answer.

The prompt is put where the command says ``{prompt}`` or ``{prompt_file}``, else on its stdin;
``{workdir}`` is the folder it works in and ``{images}`` the images it was handed, one a word. It
runs confined; stderr is kept in the transcript. A command line written as one text is the shell's.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentcanvas.agents.command_line import PLACEHOLDER, unfit
from agentcanvas.agents.confined import (
    NOT_FOUND,
    End,
    Environment,
    Telling,
    end_of,
    hand_in,
    place_of,
    program_problem,
    run_heard,
    survived,
    turn_environment,
)
from agentcanvas.agents.private import clear_private, write_private
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Outcome, Turn, TurnResult, answered, failed
from agentcanvas.clock import Clock
from agentcanvas.errors import ExecutionError, SandboxError, ValidationError
from agentcanvas.protocol.records import FailureClass, RawEvent, TextEvent
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.process import Cause, Ending, Limits, Line, Source

OUTPUT_BYTES = 4 * 1024 * 1024
GRACE_S = 5.0

# Linux takes 128 KiB a word; the rest is room for the words around the prompt.
_LONGEST_WORD = 120_000
_LONGEST_LAST_WORDS = 300
_SEVERAL = re.compile(r"[;|&\n]")


class CommandRuntime:
    """Runs one command line a turn."""

    def __init__(
        self,
        command: str | Sequence[str],
        confinement: Confinement,
        clock: Clock,
        *,
        environ: Mapping[str, str] | None = None,
        output_bytes: int = OUTPUT_BYTES,
        grace_s: float = GRACE_S,
    ) -> None:
        self._words = (command,) if isinstance(command, str) else tuple(command)
        self._by_shell = isinstance(command, str)
        self._confinement = confinement
        self._clock = clock
        self._environ = os.environ if environ is None else environ
        self._output_bytes = output_bytes
        self._grace_s = grace_s
        if problem := unfit(self._words):
            raise ValidationError(f"The command of an agent {problem}")

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run the command with the turn's prompt."""
        try:
            async with place_of(turn) as view:
                return await self._run_in(view, turn, emit)
        except (SandboxError, ExecutionError) as error:
            return failed(f"{error}.", FailureClass.CRASH)
        except OSError as error:  # a full disk, a folder that went away meanwhile
            return failed(f"The turn could not be prepared: {error}.", FailureClass.CRASH)

    async def _run_in(self, view: View, turn: Turn, emit: Emit) -> TurnResult:
        prepared = _Prepared(self._words, self._confinement, view, turn, by_shell=self._by_shell)
        if prepared.problem:
            return failed(f"{prepared.problem}.", FailureClass.CRASH)
        environment = turn_environment(turn, self._environ, self._confinement, view)
        hearing = _Hearing(emit, environment)
        limits = Limits(
            deadline_s=turn.timeout_s,
            silence_s=turn.silent_s,
            output_bytes=self._output_bytes,
            grace_s=self._grace_s,
        )
        command = Command(prepared.argv, stdin=prepared.stdin, env=environment.values)
        try:
            ending = await run_heard(
                self._confinement,
                self._clock,
                view,
                command,
                limits=limits,
                hear=hearing,
                emit=emit,
            )
        finally:
            prepared.tidy_up()
            hearing.close()
        end = end_of(ending, self._title(ending), limits, hearing.last_words)
        return self._result(turn, ending, end, hearing)

    @property
    def _program(self) -> str:
        return self._words[0].split()[0] if self._by_shell else self._words[0]

    @property
    def _name(self) -> str:
        return self._program.rpartition("/")[2]

    def _title(self, ending: Ending) -> str:
        """What ended so; of several programs in a line nobody knows which one it was."""
        is_any = self._by_shell and _SEVERAL.search(self._words[0].strip())
        return "The command" if is_any and ending.cause is Cause.EXITED else f"'{self._name}'"

    @property
    def _advice(self) -> str:
        """What to do about a program that was not found; it may well be on the host."""
        if Path(self._program).is_absolute() and Path(self._program).exists():
            return (
                f"; {self._program} is outside the sandbox: put it into the repository, or into a "
                "folder on your PATH"
            )
        return "; install the program, or correct the agent's command"

    def _result(self, turn: Turn, ending: Ending, end: End, hearing: _Hearing) -> TurnResult:
        notes = tuple(self._notes(ending, hearing))
        if end.outcome is Outcome.OK:
            return answered(
                turn,
                hearing.answer,
                exit_code=0,
                left_over=ending.survivors,
                notes=notes,
            )
        is_missing = ending.exit_code == NOT_FOUND
        # What is not there now is not there a moment later: no retry mends a denial.
        failure = FailureClass.DENIED if is_missing else end.error_class
        return failed(
            f"{end.error}{self._advice if is_missing else ''}.",
            failure or FailureClass.UNKNOWN,
            outcome=end.outcome,
            text=hearing.answer,
            exit_code=ending.exit_code,
            left_over=ending.survivors,
            notes=notes,
        )

    def _notes(self, ending: Ending, hearing: _Hearing) -> list[str]:
        notes = list(hearing.environment.notes)
        if ending.dropped_bytes:
            notes.append(
                f"'{self._name}' said more than {self._output_bytes:,} bytes; "
                f"{ending.dropped_bytes:,} in the middle were dropped."
            )
        if ending.survivors:
            notes.append(survived(ending.survivors))
        return notes


class _Prepared:
    """The command line of one turn, with everything put in its place."""

    def __init__(
        self,
        words: tuple[str, ...],
        confinement: Confinement,
        view: View,
        turn: Turn,
        *,
        by_shell: bool,
    ) -> None:
        self._view = view
        self._by_shell = by_shell
        places = confinement.places(view)
        used = {name for word in words for name in PLACEHOLDER.findall(word)}
        prompt = turn.prompt.replace("\0", "\ufffd")
        images = hand_in(turn.images, confinement, view)
        if images and "images" not in used:
            prompt += "\nImages to look at:\n" + "".join(f"- {path}\n" for path in images)
        name = hashlib.sha256(turn.turn_id.encode("utf-8", "replace")).hexdigest()[:12]
        self._file = f"prompt-{name}.md"
        if "prompt_file" in used:
            write_private(view.tmp, {self._file: prompt})
        self._values = {
            "prompt": [prompt],
            "prompt_file": [str(places.tmp / self._file)],
            "workdir": [str(places.tree)],
            "images": [str(path) for path in images],
        }
        self.stdin = "" if used & {"prompt", "prompt_file"} else prompt
        self.argv = self._command_line(words)
        self.problem = self._look_at(places.tree)

    def _command_line(self, words: tuple[str, ...]) -> tuple[str, ...]:
        if self._by_shell:
            script = PLACEHOLDER.sub(lambda m: shlex.join(self._values[m[1]]), words[0])
            return ("/bin/sh", "-c", script)
        found: list[str] = []
        for word in words:
            if word == "{images}":
                found += self._values["images"]
            else:
                found.append(PLACEHOLDER.sub(lambda m: " ".join(self._values[m[1]]), word))
        return tuple(found)

    def _look_at(self, inside: Path) -> str:
        if max(len(word.encode("utf-8", "replace")) for word in self.argv) > _LONGEST_WORD:
            return (
                "The prompt is too long for a command line; write {prompt_file} instead of "
                "{prompt}, or neither to get it on stdin"
            )
        if self._by_shell:
            return ""  # the shell says it itself, with exit code 127
        problem = program_problem(self.argv[0], self._view, inside)
        return f"{problem}, or correct the agent's command" if problem else ""

    def tidy_up(self) -> None:
        """Take the prompt file away again."""
        clear_private(self._view.tmp, self._file)


class _Hearing:
    """Hears the lines of a command: stdout is the answer, stderr goes on record."""

    def __init__(self, emit: Emit, environment: Environment) -> None:
        self._answer: list[str] = []
        self._goes_on = False
        self._out = Telling(lambda text: emit(TextEvent(text=text, **UNSTAMPED)))
        self._err = Telling(lambda text: emit(RawEvent(line=text, **UNSTAMPED)))
        self.environment = environment
        self.last_words = ""

    def __call__(self, line: Line) -> None:
        text = self.environment.redacted(line.text)
        if line.source is Source.STDOUT:
            if self._goes_on:
                self._answer[-1] += text
            else:
                self._answer.append(text)
            self._goes_on = line.goes_on
            self._out.line(text)
            return
        self._err.line(text)
        if text.strip():
            self.last_words = " ".join(text.split())[:_LONGEST_LAST_WORDS]

    def close(self) -> None:
        """Put on record what was held back."""
        self._out.close()
        self._err.close()

    @property
    def answer(self) -> str:
        return "\n".join(self._answer)
