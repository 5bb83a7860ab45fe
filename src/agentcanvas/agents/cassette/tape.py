"""What is on disk: a folder a cassette, in it a folder an agent, in it a file a turn.

A file is whole or not there. It is JSON for people to read in a diff, and comes with a repository
like any other file, so nothing in it is taken on trust.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentcanvas.agents.runtime import Outcome
from agentcanvas.errors import ExecutionError, ValidationError
from agentcanvas.protocol.records import FailureClass, TranscriptEvent, Usage
from agentcanvas.sandbox.paths import HOME_FOLDER, sanitised

FOLDER = "cassettes"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LARGEST = 64 * 1024 * 1024
_LONGEST_STEM = 80


class Content(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A changed file: its text, its bytes in base64, or where a link leads; one of them."""

    text: str | None = None
    base64: str | None = None
    link: str | None = None
    executable: bool = False


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a turn ended."""

    outcome: Outcome
    text: str = ""
    value: Any = msgspec.UNSET
    error_class: FailureClass | None = None
    error: str = ""
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


class Take(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded turn. ``changed`` and ``deleted`` say how its work/ differs from its base."""

    turn_id: str
    agent: str
    prompt: str
    form: str = ""
    answer: Answer
    changed: dict[str, Content] = {}
    deleted: tuple[str, ...] = ()
    events: tuple[TranscriptEvent, ...] = ()


class Tape:
    """One cassette."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, take: Take) -> None:
        """Keep a turn, in place of an earlier attempt of it."""
        path = self._path(take.agent, take.turn_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(take), indent=2) + b"\n")
        fresh.replace(path)

    def read(self, agent: str, turn_id: str) -> Take | None:
        """A recorded turn; None if there is none, an error if it cannot be read."""
        path = self._path(agent, turn_id)
        return _read(path) if path.is_file() else None

    def takes(self) -> Iterator[tuple[str, str]]:
        """The agent and the id of each recorded turn."""
        for path in sorted(self.folder.glob("*/*.json")):
            take = _read(path)
            yield take.agent, take.turn_id

    def _path(self, agent: str, turn_id: str) -> Path:
        return self.folder / sanitised(agent) / f"{turn_key(turn_id)}.json"


def turn_key(turn_id: str) -> str:
    """A file name for a turn: what can be read of its id, and what makes it certain."""
    stem = sanitised(turn_id)[:_LONGEST_STEM]
    return f"{stem}-{hashlib.sha256(turn_id.encode('utf-8', 'replace')).hexdigest()[:8]}"


def tape_folder(workspace: Path, name: str) -> Path:
    """Where a cassette is: in the workspace's own folder, where nothing counts as an edit."""
    if not _NAME.fullmatch(name):
        raise ValidationError(
            f"'{name}' is no name for a cassette; use letters, digits, '.', '_' and '-'. Cassettes "
            f"are kept in {HOME_FOLDER}/{FOLDER}/"
        )
    return workspace / HOME_FOLDER / FOLDER / name


def _read(path: Path) -> Take:
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            raise ExecutionError(f"The recording {path.name} is a link or too large; record anew")
        return msgspec.json.decode(path.read_bytes(), type=Take)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
        raise ExecutionError(
            f"The recording {path.name} cannot be read: {wrong}; record it anew"
        ) from None
