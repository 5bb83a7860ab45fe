"""Trust (D43): what comes with a repository does not run until somebody has said that it may.

A fingerprint covers the files that can make AgentCanvas run something: flows, patterns, skills,
hooks and the settings with their MCP entries. A flow may lie anywhere else and be run by its path,
and may name scripts: those are covered with it, wherever that flow is what counts. The decision is
a pure function of the fingerprint and of what was trusted before; the record lies outside the
repository, where no clone brings it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from agentcanvas.errors import FlowError
from agentcanvas.flows.named_files import scripts_in

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
    """What was trusted in one workspace; ``at`` is in ms since the epoch.

    ``flows`` are those of its files that are flows and lie elsewhere than flows do.
    """

    files: dict[str, str]
    at: int = 0
    flows: tuple[str, ...] = ()


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
        return self.sentence_on()

    def sentence_on(self, *flows: str) -> str:
        """The same where flows are to be looked at that somebody has named, as they were named."""
        look = f"look, then: {shlex.join(('agentcanvas', 'trust', *flows))}"
        if self.state is TrustState.UNFIT:
            return f"This workspace cannot be trusted: {'; '.join(self.unfit)}."
        if self.state is TrustState.NEVER_TRUSTED:
            files = "1 file" if len(self.added) == 1 else f"{len(self.added)} files"
            return f"{files} of this repository can run things; {look}"
        if self.state is TrustState.CHANGED:
            known = (*self.changed, *self.removed)
            since = "Changed since you trusted them" if known else "Not trusted yet"
            return f"{since}: {_some_of((*self.added, *known))}; {look}"
        return "This workspace is trusted."


def _some_of(names: Sequence[str]) -> str:
    more = f" and {rest} more" if (rest := len(names) - _MOST_NAMED) > 0 else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def decide(now: Fingerprint, before: Trusted | None) -> TrustDecision:
    """Whether what is there now may run, given what was trusted before."""
    old = before.files if before else {}
    added = tuple(sorted(now.files.keys() - old.keys()))
    removed = tuple(sorted(filter(always_counts, old.keys() - now.files.keys())))
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


def fingerprint(workspace: Path, flows: Sequence[str] = ()) -> Fingerprint:
    """What the workspace holds now; nothing is opened but plain files inside it.

    ``flows`` are paths in the workspace: each of them counts wherever it lies, with its scripts.
    """
    look = _Look(workspace)
    try:
        for path in look.candidates():
            look.at(path)
        for flow in flows:
            for script in scripts_in(workspace, look.at(flow)):
                look.at(script)
    except _TooMuchError:
        look.unfit[f"there are more than {_MOST_FILES:,} files or {_MOST_BYTES:,} bytes"] = None
    return Fingerprint(look.files, tuple(look.unfit))


def always_counts(path: str) -> bool:
    """Whether a file is covered wherever it is, and not only where somebody names it."""
    return path in FILES or path.startswith(tuple(f"{folder}/" for folder in FOLDERS))


class _TooMuchError(Exception):
    """More than anybody would look through."""


class _Look:
    """One look around a workspace: digests by path, and sentences on what was no plain file."""

    def __init__(self, workspace: Path) -> None:
        self.files: dict[str, str] = {}
        self.unfit: dict[str, None] = {}
        self._workspace = workspace
        self._size = 0

    def at(self, path: str) -> bytes:
        """What is in a file, which counts from now on; nothing where there is none."""
        if not os.path.lexists(self._workspace / path):
            return b""
        content, executable = self._read(path)
        if path not in self.files:
            self._size += len(content)
        if len(self.files) >= _MOST_FILES or self._size > _MOST_BYTES:
            raise _TooMuchError
        self.files[path] = _digest(content, executable=executable)
        return content

    def candidates(self) -> Iterator[str]:
        """The files that count wherever they are."""
        yield from FILES
        for folder in (".agentcanvas", *FOLDERS):
            # A linked folder brings files whose changes nobody here would see.
            if (self._workspace / folder).is_symlink():
                self.unfit[f"{folder} is a link; put the files there themselves"] = None
                if folder == ".agentcanvas":
                    return
        for folder in FOLDERS:
            if not (self._workspace / folder).is_symlink():
                yield from self._walk(folder)

    def _walk(self, folder: str) -> Iterator[str]:
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                entries = sorted(os.scandir(self._workspace / here), key=lambda entry: entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as wrong:
                self.unfit[f"{here} cannot be read ({wrong.strerror})"] = None
                continue
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield f"{here}/{entry.name}"
                elif entry.name not in _SKIPPED:
                    waiting.append(f"{here}/{entry.name}")

    def _read(self, path: str) -> tuple[bytes, bool]:
        try:
            with open(_opened(self._workspace, path), "rb") as file:  # a descriptor has no Path
                status = os.fstat(file.fileno())
                if stat.S_ISREG(status.st_mode):
                    return file.read(_MOST_BYTES + 1), bool(status.st_mode & stat.S_IXUSR)
        except OSError:
            pass
        sentence = f"{path} is not a plain file that can be read; a link does not count as one"
        self.unfit[sentence] = None
        return b"", False


def _opened(workspace: Path, path: str) -> int:
    """A descriptor of a file, reached through no link in the workspace."""
    *folders, name = path.split("/")
    place = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            place, left = os.open(folder, flags, dir_fd=place), place
            os.close(left)
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    finally:
        os.close(place)


def _digest(content: bytes, *, executable: bool) -> str:
    return ("x" if executable else "-") + hashlib.sha256(content).hexdigest()


def read_trust(record: Path) -> Mapping[str, Trusted]:
    """What was trusted, by the absolute path of the workspace; a broken record trusts nothing."""
    try:
        return msgspec.json.decode(record.read_bytes(), type=dict[str, Trusted])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def write_trust(
    record: Path, workspace: Path, now: Fingerprint, *, at: int, flows: Sequence[str] = ()
) -> None:
    """Trust a workspace as it is now, or take the trust back with an empty fingerprint.

    What was trusted beyond that, since it was named, is kept: nothing new was seen of it.
    """
    if now.unfit:
        raise FlowError(decide(now, None).sentence)
    trusted = dict(read_trust(record))
    before = trusted.pop(str(workspace.resolve()), Trusted({}))
    if now.files:
        kept = {path: each for path, each in before.files.items() if not always_counts(path)}
        named = sorted({*before.flows, *flows})
        trusted[str(workspace.resolve())] = Trusted(kept | now.files, at, tuple(named))
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=record.parent, prefix=f".{record.name}.")
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no Path
        file.write(msgspec.json.format(msgspec.json.encode(trusted)))
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(record)
