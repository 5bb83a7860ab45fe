"""Trust (D43): what comes with a repository does not run until somebody has said that it may.

A fingerprint covers the files that can make AgentCanvas run something: flows, patterns, skills,
hooks and the settings with their MCP entries. The decision is a pure function of the fingerprint
and of what was trusted before; the record lies outside the repository, where no clone brings it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from agentcanvas.errors import FlowError

FOLDERS: Final = tuple(
    f".agentcanvas/{name}" for name in ("flows", "patterns", "prompts", "skills", "hooks")
)
FILES: Final = ("agentcanvas.yaml", ".agentcanvas/mcp.json", ".agentcanvas/mcp.yaml", ".mcp.json")
_MOST_FILES: Final = 10_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_NAMED: Final = 5
_SKIPPED: Final = frozenset({"__pycache__"})


class Fingerprint(Struct, frozen=True):
    """A digest for each file by its path in the workspace, and what could not be covered."""

    files: dict[str, str] = field(default_factory=dict)
    unfit: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """One hash over all files; paths are measured, so that no two sets of files share one."""
        whole = hashlib.sha256()
        for path, digest in sorted(self.files.items()):
            whole.update(f"{len(path.encode())}:{path}:{digest};".encode())
        return whole.hexdigest()

    def covers(self, path: str, content: bytes) -> bool:
        """Whether these bytes, already read, are those that were looked at."""
        return self.files.get(path) in [_digest(content, executable=may) for may in (False, True)]


class Trusted(Struct, frozen=True):
    """What was trusted in one workspace; ``at`` is in ms since the epoch."""

    files: dict[str, str]
    at: int = 0


class TrustState(StrEnum):
    """What may be done with a workspace."""

    TRUSTED = "trusted"
    NOTHING_TO_TRUST = "nothing_to_trust"
    NEVER_TRUSTED = "never_trusted"
    CHANGED = "changed"
    UNFIT = "unfit"


class TrustDecision(Struct, frozen=True):
    """The state, and for a person who is asked again, what is different."""

    state: TrustState
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()

    @property
    def may_run(self) -> bool:
        return self.state in (TrustState.TRUSTED, TrustState.NOTHING_TO_TRUST)

    @property
    def sentence(self) -> str:
        """For the person who has to decide."""
        if self.state is TrustState.UNFIT:
            return f"This workspace cannot be trusted: {'; '.join(self.unfit)}."
        if self.state is TrustState.NEVER_TRUSTED:
            files = "1 file" if len(self.added) == 1 else f"{len(self.added)} files"
            return f"{files} of this repository can run things; look, then: agentcanvas trust"
        if self.state is TrustState.CHANGED:
            differing = (*self.added, *self.changed, *self.removed)
            names = ", ".join(differing[:_MOST_NAMED])
            more = f" and {rest} more" if (rest := len(differing) - _MOST_NAMED) > 0 else ""
            return f"Changed since you trusted them: {names}{more}; look, then: agentcanvas trust"
        return "This workspace is trusted."


def decide(now: Fingerprint, before: Trusted | None) -> TrustDecision:
    """Whether what is there now may run, given what was trusted before."""
    old = before.files if before else {}
    added = tuple(sorted(now.files.keys() - old.keys()))
    removed = tuple(sorted(old.keys() - now.files.keys()))
    changed = tuple(sorted(p for p in now.files.keys() & old.keys() if now.files[p] != old[p]))
    if now.unfit:
        state = TrustState.UNFIT
    elif not now.files:
        state, removed = TrustState.NOTHING_TO_TRUST, ()
    elif before is None:
        state = TrustState.NEVER_TRUSTED
    else:
        # Files that are gone run nothing, but a flow may now mean something else without them.
        state = TrustState.CHANGED if added or changed or removed else TrustState.TRUSTED
    return TrustDecision(state, added, changed, removed, now.unfit)


def fingerprint(workspace: Path) -> Fingerprint:
    """What the workspace holds now; nothing is opened but plain files inside it."""
    files: dict[str, str] = {}
    unfit: list[str] = []
    size = 0
    for path in _candidates(workspace, unfit):
        content, executable = _read(workspace / path, path, unfit)
        size += len(content)
        if len(files) >= _MOST_FILES or size > _MOST_BYTES:
            unfit.append(f"there are more than {_MOST_FILES:,} files or {_MOST_BYTES:,} bytes")
            break
        files[path] = _digest(content, executable=executable)
    return Fingerprint(files, tuple(unfit))


def _candidates(workspace: Path, unfit: list[str]) -> Iterator[str]:
    for name in FILES:
        if os.path.lexists(workspace / name):
            yield name
    for folder in (".agentcanvas", *FOLDERS):
        # A linked folder brings files whose changes nobody here would see.
        if (workspace / folder).is_symlink():
            unfit.append(f"{folder} is a link; put the files there themselves")
            if folder == ".agentcanvas":
                return
    for folder in FOLDERS:
        if not (workspace / folder).is_symlink():
            yield from _walk(workspace, folder, unfit)


def _walk(workspace: Path, folder: str, unfit: list[str]) -> Iterator[str]:
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = sorted(os.scandir(workspace / here), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as wrong:
            unfit.append(f"{here} cannot be read ({wrong.strerror})")
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield f"{here}/{entry.name}"
            elif entry.name not in _SKIPPED:
                waiting.append(f"{here}/{entry.name}")


def _read(file: Path, path: str, unfit: list[str]) -> tuple[bytes, bool]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  # a descriptor has no Path
            status = os.fstat(opened.fileno())
            if stat.S_ISREG(status.st_mode):
                return opened.read(_MOST_BYTES + 1), bool(status.st_mode & stat.S_IXUSR)
    except OSError:
        pass
    unfit.append(f"{path} is not a plain file that can be read; a link does not count as one")
    return b"", False


def _digest(content: bytes, *, executable: bool) -> str:
    return ("x" if executable else "-") + hashlib.sha256(content).hexdigest()


def read_trust(record: Path) -> Mapping[str, Trusted]:
    """What was trusted, by the absolute path of the workspace; a broken record trusts nothing."""
    try:
        return msgspec.json.decode(record.read_bytes(), type=dict[str, Trusted])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def write_trust(record: Path, workspace: Path, now: Fingerprint, *, at: int) -> None:
    """Trust a workspace as it is now, or take the trust back with an empty fingerprint."""
    if now.unfit:
        raise FlowError(decide(now, None).sentence)
    trusted = dict(read_trust(record))
    trusted.pop(str(workspace.resolve()), None)
    if now.files:
        trusted[str(workspace.resolve())] = Trusted(now.files, at)
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=record.parent, prefix=f".{record.name}.")
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no Path
        file.write(msgspec.json.format(msgspec.json.encode(trusted)))
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(record)
