"""Keeping the turns of any runtime, with known secrets taken out."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread
import msgspec
from msgspec import UNSET

from agentcanvas.agents.answers import AnswerForm, JsonForm
from agentcanvas.agents.cassette.tape import Answer, Content, Take, Tape
from agentcanvas.agents.runtime import Emit, Runtime, Turn, TurnResult
from agentcanvas.errors import SandboxError, Unpatchable
from agentcanvas.hub.redaction import Redactor
from agentcanvas.protocol.records import TranscriptEvent
from agentcanvas.sandbox.changes import Status
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.prepare import open_sandbox


class Recording:
    """Wraps a runtime; ``secrets`` are values by their names, which stand for them on tape."""

    def __init__(
        self, runtime: Runtime, tape: Tape, workspace: Path, secrets: Mapping[str, str]
    ) -> None:
        self._runtime = runtime
        self._tape = tape
        self._workspace = workspace
        self._redactor = Redactor(secrets)

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run a turn; one that is cancelled is not kept, because it has no answer."""
        events: list[TranscriptEvent] = []

        def hear(event: TranscriptEvent) -> None:
            events.append(event)
            emit(event)

        result = await self._runtime.run(turn, hear)
        changed, deleted, note = await self._files(turn)
        take = Take(
            turn_id=turn.turn_id,
            agent=turn.agent_id,
            prompt=turn.prompt.encode("utf-8", "replace").decode(),
            form=name_of(turn.form),
            answer=_answer(result),
            changed=changed,
            deleted=deleted,
            events=tuple(events),
        )
        await anyio.to_thread.run_sync(self._tape.write, self._scrubbed(take))
        notes = (*result.notes, note) if note else result.notes
        return msgspec.structs.replace(result, notes=notes)

    async def _files(self, turn: Turn) -> tuple[dict[str, Content], tuple[str, ...], str]:
        """How work/ differs from its base by now."""
        if turn.place is None or not turn.place.writable:
            return {}, (), ""
        try:
            sandbox = await open_sandbox(self._workspace, turn.run_id, turn.agent_id)
            changes = (await make_patch(sandbox)).changes
        except (SandboxError, Unpatchable) as error:
            return {}, (), f"Its files are not in the recording: {error}."
        tree = os.fsencode(sandbox.work_dir)
        kept = [change.path for change in changes if change.status is not Status.DELETED]
        gone = [change.path for change in changes if change.status is Status.DELETED]
        odd = [path for path in (*kept, *gone) if not _is_text(path)]
        changed = {path.decode(): _content(tree + b"/" + path) for path in kept if path not in odd}
        note = (
            f"{len(odd)} files are not in the recording: their names are not text." if odd else ""
        )
        return changed, tuple(path.decode() for path in gone if path not in odd), note

    def _scrubbed(self, take: Take) -> Take:
        plain = msgspec.to_builtins(take)
        return msgspec.convert(_walk(plain, self._redactor), Take)


def name_of(form: AnswerForm | None) -> str:
    """What a form of answer is known by, so that another one is noticed."""
    if isinstance(form, JsonForm):
        return msgspec.json.encode(form.schema, order="sorted").decode()
    return "" if form is None else getattr(form, "__name__", str(form))


def _answer(result: TurnResult) -> Answer:
    value = result.value
    return Answer(
        outcome=result.outcome,
        text=result.text,
        # A text form is read again from the text.
        value=UNSET if isinstance(value, msgspec.Struct) else value,
        error_class=result.error_class,
        error=result.error,
        usage=result.usage,
        notes=result.notes,
    )


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def _content(path: bytes) -> Content:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return Content(link=os.fsdecode(os.readlink(path)))  # noqa: PTH115  # bytes
    executable = bool(status.st_mode & 0o100)
    raw = Path(os.fsdecode(path)).read_bytes()
    try:
        return Content(text=raw.decode(), executable=executable)
    except UnicodeDecodeError:
        return Content(base64=base64.b64encode(raw).decode(), executable=executable)


def _walk(value: object, redactor: Redactor) -> object:
    match value:
        case str():
            return redactor.text(value)
        case dict():
            return {name: _walk(inner, redactor) for name, inner in value.items()}
        case list() | tuple():
            return [_walk(inner, redactor) for inner in value]
        case _:
            return value
