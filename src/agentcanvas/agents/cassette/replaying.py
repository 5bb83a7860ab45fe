"""Playing recorded turns back, and noticing that they no longer fit."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

import anyio.to_thread

from agentcanvas.agents.cassette.recording import name_of
from agentcanvas.agents.cassette.tape import Content, Take, Tape
from agentcanvas.agents.runtime import Emit, Outcome, Turn, TurnResult, answered, failed
from agentcanvas.errors import ExecutionError, PathRefused, SandboxError, Unpatchable
from agentcanvas.protocol.records import FailureClass
from agentcanvas.sandbox.changes import Status
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.paths import workspace_relative
from agentcanvas.sandbox.prepare import Sandbox, open_sandbox
from agentcanvas.sandbox.trees import make_parents, remove_path

_LONGEST_SHOWN = 120
_FINAL = FailureClass.DENIED
"""Trying again would only hide the reason."""
# What differs from run to run without a meaning: run ids, hashes, how long something took, the
# folders of a test.
_PASSING = re.compile(
    r"run_\d{8}_\d{6}(?:_[0-9a-z]{1,8})?"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b[0-9a-f]{7,64}\b"
    r"|\b\d+(?:\.\d+)? ?(?:s|ms|sec|seconds)\b"
    r"|/(?:tmp|var/folders|private/tmp)/[^\s'\"]*"
)


class Replaying:
    """A runtime that answers from a tape."""

    def __init__(self, tape: Tape, workspace: Path) -> None:
        self._tape = tape
        self._workspace = workspace

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Answer as it was answered when it was recorded."""
        try:
            take = await anyio.to_thread.run_sync(self._tape.read, turn.agent_id, turn.turn_id)
            if take is None:
                return failed(
                    f"{self._tape.folder.name} has no recording of {turn.turn_id} by "
                    f"{turn.agent_id}; record it anew.",
                    _FINAL,
                )
            if drift := drift_of(take, turn):
                return failed(
                    f"{turn.turn_id} is no longer what was recorded in {self._tape.folder.name}: "
                    f"{drift}. Record it anew.",
                    _FINAL,
                )
            if turn.place is not None and turn.place.writable:
                await self._change_files(take, turn)
        except (ExecutionError, SandboxError, Unpatchable, PathRefused, OSError, ValueError) as bad:
            return failed(f"The recording of {turn.turn_id} cannot be played: {bad}.", _FINAL)
        for event in take.events:
            emit(event)
        return _result(take, turn)

    async def _change_files(self, take: Take, turn: Turn) -> None:
        sandbox = await open_sandbox(self._workspace, turn.run_id, turn.agent_id)
        now = (await make_patch(sandbox)).changes
        recorded = {*take.changed, *take.deleted}
        stale = [(change.path, change.status) for change in now]
        left = [each for each in stale if os.fsdecode(each[0]) not in recorded]
        await anyio.to_thread.run_sync(_bring_to, sandbox, left, take)


def drift_of(take: Take, turn: Turn) -> str:
    """What is asked otherwise than it was; empty if nothing that matters is."""
    if take.form != name_of(turn.form):
        return "another form of answer is asked for"
    lines = zip_longest(_lines(take.prompt), _lines(turn.prompt), fillvalue="")
    for number, (then, now) in enumerate(lines, start=1):
        if then != now:
            return f"line {number} of the prompt was {_shown(then)} and is {_shown(now)}"
    return ""


def _lines(prompt: str) -> list[str]:
    return _PASSING.sub("…", prompt).split("\n")


def _shown(line: str) -> str:
    if len(line) > _LONGEST_SHOWN:
        line = line[:_LONGEST_SHOWN] + "…"
    return f"'{line}'"


def _result(take: Take, turn: Turn) -> TurnResult:
    answer = take.answer
    if answer.outcome is Outcome.OK:
        return answered(
            turn, answer.text, value=answer.value, usage=answer.usage, notes=answer.notes
        )
    return failed(
        answer.error,
        answer.error_class or FailureClass.UNKNOWN,
        outcome=answer.outcome,
        text=answer.text,
        usage=answer.usage,
        notes=answer.notes,
    )


def _bring_to(sandbox: Sandbox, stale: Iterable[tuple[bytes, Status]], take: Take) -> None:
    """Bring work/ to what it was at the end of the recorded turn."""
    for path, status in stale:
        name = os.fsdecode(path)
        target = _inside(sandbox.work_dir, name)
        remove_path(target)
        if status is not Status.ADDED:
            make_parents(target)
            shutil.copy2(sandbox.base.tree / name, target, follow_symlinks=False)
            if not target.is_symlink():
                target.chmod(target.stat().st_mode | 0o200)
    for name in take.deleted:
        remove_path(_inside(sandbox.work_dir, name))
    for name, content in take.changed.items():
        _put(_inside(sandbox.work_dir, name), content)


def _inside(tree: Path, name: str) -> Path:
    """A path in work/; a recording comes from who knows where, and no link may lead it out."""
    root = tree.resolve()
    path = root / os.fsdecode(workspace_relative(name))
    if not path.parent.resolve().is_relative_to(root):
        raise PathRefused(f"{name} leads out of the work folder by a link")
    return path


def _put(path: Path, content: Content) -> None:
    remove_path(path)
    make_parents(path)
    if content.link is not None:
        path.symlink_to(content.link)
        return
    if content.text is not None:
        path.write_bytes(content.text.encode())
    elif content.base64 is not None:
        path.write_bytes(base64.b64decode(content.base64, validate=True))
    else:
        raise ExecutionError(f"nothing says what was in {path.name}")
    path.chmod(0o755 if content.executable else 0o644)
