"""Playing a script: the steps of the turn that was asked for, one after the other.

Edits are made in the turn's own place and nowhere else, commands run confined, waiting is on the
clock. The last thing said is the answer; where a six-part response is asked for and was not said,
it is written from what was done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import msgspec

from agentcanvas.agents.answers import Read, read_answer
from agentcanvas.agents.confined import end_of, place_of, run_heard
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Outcome, Turn, TurnResult, answered, failed
from agentcanvas.agents.runtimes.script.model import (
    Address,
    Edit,
    Question,
    Run,
    Script,
    ScriptedTurn,
    Step,
    addresses_of,
)
from agentcanvas.clock import Clock
from agentcanvas.errors import ExecutionError, PathRefused, SandboxError
from agentcanvas.protocol.forms import StandardResponse, tidy, tidy_line, write
from agentcanvas.protocol.records import (
    ChangeStatus,
    FailureClass,
    FileChangeEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from agentcanvas.sandbox.confine import Command, Confinement
from agentcanvas.sandbox.paths import workspace_relative
from agentcanvas.sandbox.process import Limits, Line
from agentcanvas.sandbox.trees import make_parents

AskMember = Callable[[Turn, str, str], Awaitable[str]]
"""Asks another member on behalf of a turn: the turn, whom, and what; gives the answer."""


class ScriptRuntime:
    """Plays one script; ``confinement`` is needed for ``run``, ``ask_member`` for ``ask``."""

    def __init__(
        self,
        script: Script,
        clock: Clock,
        confinement: Confinement | None = None,
        *,
        ask_member: AskMember | None = None,
    ) -> None:
        self._turns = {turn.address: turn for turn in script.turns}
        self._clock = clock
        self._confinement = confinement
        self._ask_member = ask_member
        self.taken: set[Address] = set()
        """The addresses that were asked for so far."""

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Do the steps of this turn."""
        scripted = self._find(turn)
        if scripted is None:
            return failed(self._missing(turn))
        self.taken.add(scripted.address)
        playing = _Playing(turn, emit, self._clock, self._confinement, self._ask_member)
        try:
            for step in scripted.steps:
                ended = await playing.do(step)
                if ended is not None:
                    return ended
        except (ExecutionError, SandboxError, PathRefused) as error:
            return failed(f"The script stopped at {scripted.address}: {error}.")
        return playing.answer()

    def left_over(self, taken_before: Collection[Address] = ()) -> tuple[str, ...]:
        """A sentence for each turn that nobody asked for; empty when the script was played whole.

        ``taken_before`` are addresses of turns from before a resume.
        """
        left = [each for each in self._turns if each not in self.taken | set(taken_before)]
        return tuple(
            f"The script has steps for {each}, which was never asked for; remove them, or check "
            "why the run did not get there."
            for each in left
        )

    def _find(self, turn: Turn) -> ScriptedTurn | None:
        found = (self._turns.get(address) for address in addresses_of(turn))
        return next(filter(None, found), None)

    def _missing(self, turn: Turn) -> str:
        _, wanted, *_ = addresses_of(turn)  # the most particular one, for any attempt
        known = "; ".join(map(str, self._turns)) or "nothing"
        return (
            f"The script of {turn.agent_id} has no steps for {wanted}; add a turn to it. "
            f"It has: {known}."
        )


class _Playing:
    """One turn while it is played."""

    def __init__(
        self,
        turn: Turn,
        emit: Emit,
        clock: Clock,
        confinement: Confinement | None,
        ask_member: AskMember | None,
    ) -> None:
        self._turn = turn
        self._emit = emit
        self._clock = clock
        self._confinement = confinement
        self._ask_member = ask_member
        self._said: Any = ""
        self._done: list[str] = []

    async def do(self, step: Step) -> TurnResult | None:
        """Do a step; gives a result when it ends the turn."""
        if step.edit is not None:
            self._edit(step.edit)
        elif step.run is not None:
            return await self._run(step.run)
        elif step.wait is not None:
            await self._clock.sleep(step.wait)
        elif step.ask is not None:
            await self._ask(step.ask)
        elif step.fail is not None:
            return failed(step.fail.message, step.fail.error_class, text=_as_text(self._said))
        else:
            self._said = step.say
            self._emit(TextEvent(text=_as_text(step.say), **UNSTAMPED))
        return None

    def answer(self) -> TurnResult:
        """The last thing said, in the form asked for where a script need not say it."""
        text = _as_text(self._said)
        if self._turn.form is StandardResponse:
            if not isinstance(read_answer(text, StandardResponse), Read):
                text = write(self._report(text))
            return answered(self._turn, text)
        value = msgspec.UNSET if isinstance(self._said, str) else self._said
        return answered(self._turn, text, value=value)

    def _report(self, said: str) -> StandardResponse:
        intent = tidy_line(said) or f"Play the script of {self._turn.agent_id}"
        plan = tuple(self._done) or ("Answer",)
        place = self._turn.place
        return StandardResponse(
            intent=intent,
            inputs=() if place is None else (f"the files in {place.workspace}",),
            plan=plan,
            actions=tuple(self._done),
        )

    def _edit(self, edit: Edit) -> None:
        path = self._target(edit.file)
        there = path.is_file()
        if edit.delete:
            if not there:
                raise ExecutionError(f"{edit.file} is not there to be deleted")
            path.unlink()
            self._changed(edit.file, ChangeStatus.DELETED)
            return
        content = edit.write if edit.write is not None else _replaced(path, edit)
        make_parents(path)
        path.write_text(content, "utf-8")
        self._changed(edit.file, ChangeStatus.MODIFIED if there else ChangeStatus.ADDED)

    def _target(self, name: str) -> Path:
        """The file to edit; no link may lead it out of the place."""
        place = self._turn.place
        if place is None or not place.writable:
            raise ExecutionError(f"{name} cannot be edited: this turn has no files of its own")
        root = place.tree.resolve()
        if not root.is_dir():
            raise ExecutionError(f"{place.tree} is gone; prepare the sandbox again")
        path = root / workspace_relative(name).decode("utf-8", "surrogateescape")
        if not path.parent.resolve().is_relative_to(root) or path.is_symlink():
            raise PathRefused(f"{name} leads out of the work folder by a link; name a real file")
        return path

    def _changed(self, name: str, status: ChangeStatus) -> None:
        self._emit(FileChangeEvent(path=name, status=status, **UNSTAMPED))
        self._done.append(tidy_line(f"{status} {name}"))

    async def _run(self, run: Run) -> TurnResult | None:
        if self._confinement is None:
            raise ExecutionError(f"'{run.command}' cannot be run: there is no confinement here")
        lines: list[str] = []

        def hear(line: Line) -> None:
            lines.append(line.text)

        self._called("run", {"command": run.command})
        limits = Limits(deadline_s=self._turn.timeout_s, silence_s=self._turn.silent_s)
        async with place_of(self._turn) as view:
            ending = await run_heard(
                self._confinement,
                self._clock,
                view,
                Command(("/bin/sh", "-c", run.command)),
                limits=limits,
                hear=hear,
                emit=self._emit,
            )
        end = end_of(ending, f"'{run.command}'", limits, lines[-1] if lines else "")
        well = end.outcome is Outcome.OK
        self._emit(
            ToolResultEvent(
                output="\n".join(lines), exit_code=ending.exit_code, failed=not well, **UNSTAMPED
            )
        )
        allowed = " (allowed to fail)" if run.may_fail and not well else ""
        self._done.append(tidy(f"ran {run.command}: exit code {ending.exit_code}{allowed}"))
        if well or (run.may_fail and end.outcome is Outcome.FAILED):
            return None
        return failed(
            f"{end.error}.",
            end.error_class or FailureClass.CRASH,
            outcome=end.outcome,
            text=_as_text(self._said),
            exit_code=ending.exit_code,
            left_over=ending.survivors,
        )

    async def _ask(self, question: Question) -> None:
        if self._ask_member is None:
            raise ExecutionError(
                f"{question.to} cannot be asked: members are not reached from here"
            )
        self._called("ask", {"to": question.to, "text": question.text})
        answer = await self._ask_member(self._turn, question.to, question.text)
        self._emit(ToolResultEvent(output=answer, **UNSTAMPED))
        self._done.append(tidy_line(f"asked {question.to}: {question.text}"))

    def _called(self, name: str, given: dict[str, str]) -> None:
        raw = msgspec.Raw(msgspec.json.encode(given))
        self._emit(ToolCallEvent(name=name, input=raw, **UNSTAMPED))


def _as_text(said: Any) -> str:
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()


def _replaced(path: Path, edit: Edit) -> str:
    assert edit.replace is not None, "a script that was read has one way to edit"
    assert edit.with_ is not None, "a script that was read has both halves"
    try:
        before = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(f"{edit.file} cannot be edited: {error}") from None
    count = before.count(edit.replace)
    if count != 1:
        raise ExecutionError(
            f"the text to replace occurs {count} times in {edit.file}; it must occur once"
        )
    return before.replace(edit.replace, edit.with_)
