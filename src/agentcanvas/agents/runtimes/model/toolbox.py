"""What a model can do in its place: read, list, search, write, edit, and run a command.

Files are reached below the place's tree and nowhere else, whatever links lie in it: nothing of the
agent's runs while a file tool looks, so what was checked stays true. Whatever takes a pattern or a
program from the model runs confined, where it can be ended.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.agents.confined import end_of, run_heard, survived
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Outcome
from agentcanvas.agents.tools import Act, Form, Tools, Used
from agentcanvas.clock import Clock
from agentcanvas.errors import ExecutionError, PathRefused
from agentcanvas.protocol.records import ChangeStatus, FileChangeEvent
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.paths import shown, workspace_relative
from agentcanvas.sandbox.process import Limits, Line
from agentcanvas.sandbox.trees import make_parents

LARGEST_FILE = 2 * 1024 * 1024
LONGEST_OUTPUT = 30_000
_MOST_LISTED = 1_000
_MOST_FOUND = 200
_NOTHING_FOUND = 1
_SEARCH_S = 30.0
_OUTPUT_BYTES = 256 * 1024

File = Annotated[str, Meta(min_length=1, description="Path relative to the working folder.")]


class Read(Form, frozen=True, kw_only=True):
    """Read a text file; lines are numbered from 1."""

    path: File
    first_line: Annotated[int, Meta(ge=1)] = 1
    lines: Annotated[int, Meta(ge=1, le=5000, description="How many lines.")] = 1000


class ListFiles(Form, frozen=True, kw_only=True):
    """List a folder; folders end with a slash."""

    path: Annotated[str, Meta(description="The folder; the working folder if not said.")] = "."


class Search(Form, frozen=True, kw_only=True):
    """Find lines that match a regular expression (POSIX extended)."""

    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="The file or folder to look in.")] = "."


class Write(Form, frozen=True, kw_only=True):
    """Write a whole file, new or in place of the old one."""

    path: File
    content: str


class Edit(Form, frozen=True, kw_only=True):
    """Replace text that occurs exactly once in a file."""

    path: File
    old: Annotated[str, Meta(min_length=1, description="The text to replace, exactly.")]
    new: str


class Run(Form, frozen=True, kw_only=True):
    """Run a shell command in the working folder; nothing it starts outlives it."""

    command: Annotated[str, Meta(min_length=1)]
    timeout_s: Annotated[float, Meta(gt=0, le=1800)] = 120


class Toolbox:
    """The tools of one turn, in its place."""

    def __init__(self, view: View, confinement: Confinement, clock: Clock, emit: Emit) -> None:
        self._view = view
        self._confinement = confinement
        self._clock = clock
        self._emit = emit
        self._inside = confinement.places(view).tree
        able: dict[str, tuple[type[Form], Act]] = {
            "read_file": (Read, self._read),
            "list_files": (ListFiles, self._list),
            "search": (Search, self._search),
            "run": (Run, self._run),
        }
        if view.writable:
            able |= {"write_file": (Write, self._write), "edit_file": (Edit, self._edit)}
        self.tools = Tools(able)

    # -- files -----------------------------------------------------------------------------------

    async def _read(self, given: Read) -> Used:
        lines = _text_of(self._there(given.path)).splitlines()
        wanted = lines[given.first_line - 1 : given.first_line - 1 + given.lines]
        numbered = [f"{n:6}\t{line}" for n, line in enumerate(wanted, start=given.first_line)]
        left = len(lines) - (given.first_line - 1 + len(wanted))
        if left > 0:
            numbered.append(f"({left} more lines)")
        return Used("\n".join(numbered) or "(no lines there)")

    async def _list(self, given: ListFiles) -> Used:
        with os.scandir(self._there(given.path)) as entries:
            names = sorted(
                shown(os.fsencode(entry.name))
                + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if entry.name != ".git"
            )
        more = [f"({len(names) - _MOST_LISTED} more)"] if len(names) > _MOST_LISTED else []
        return Used("\n".join([*names[:_MOST_LISTED], *more]) or "(empty)")

    async def _write(self, given: Write) -> Used:
        path = self._to_write(given.path)
        there = path.exists()
        make_parents(path)
        path.write_text(given.content, "utf-8")
        self._changed(given.path, ChangeStatus.MODIFIED if there else ChangeStatus.ADDED)
        return Used(f"Wrote {given.path} ({len(given.content.splitlines())} lines).")

    async def _edit(self, given: Edit) -> Used:
        path = self._to_write(given.path)
        before = _text_of(path)
        count = before.count(given.old)
        if count != 1:
            raise ExecutionError(
                f"the text occurs {count} times in {given.path}; give more of what is around it"
                if count
                else f"the text does not occur in {given.path}; read it again and copy it exactly"
            )
        path.write_text(before.replace(given.old, given.new), "utf-8")
        self._changed(given.path, ChangeStatus.MODIFIED)
        return Used(f"Changed {given.path}.")

    def _relative(self, name: str) -> str:
        """A path as it is below the tree; a model may name it as its commands see it."""
        path = Path(name)
        if path.is_absolute() and path.is_relative_to(self._inside):
            return str(path.relative_to(self._inside))
        return name

    def _there(self, name: str) -> Path:
        """A file or folder to look at: links are followed as long as they stay below the tree."""
        root = self._view.tree.resolve()
        relative = self._relative(name)
        if relative in {"", ".", "./"}:
            return root
        path = root / os.fsdecode(workspace_relative(relative))
        if not path.resolve().is_relative_to(root):
            raise PathRefused(f"{name} leads out of the working folder by a link")
        return path

    def _to_write(self, name: str) -> Path:
        root = self._view.tree.resolve()
        path = root / os.fsdecode(workspace_relative(self._relative(name)))
        if path.is_symlink() or not path.parent.resolve().is_relative_to(root):
            raise PathRefused(f"{name} is, or lies behind, a link; name a real file")
        if path.exists() and not path.is_file():
            raise PathRefused(f"{name} is not a file")
        return path

    def _changed(self, name: str, status: ChangeStatus) -> None:
        self._emit(FileChangeEvent(path=self._relative(name), status=status, **UNSTAMPED))

    # -- programs --------------------------------------------------------------------------------

    async def _search(self, given: Search) -> Used:
        where = self._there(given.path).relative_to(self._view.tree.resolve())
        # With no folder named, grep names files without a "./" before them.
        place = () if where == Path() else ("--", f"./{where}")
        argv = ("grep", "-rnIE", "--exclude-dir=.git", "-e", given.pattern, *place)
        answer = await self._confined(argv, f"'{given.pattern}'", _SEARCH_S)
        if answer.exit_code == _NOTHING_FOUND:
            return Used("Nothing matches.")
        lines = answer.output.split("\n")
        more = [f"({len(lines) - _MOST_FOUND} more)"] if len(lines) > _MOST_FOUND else []
        return msgspec.structs.replace(answer, output="\n".join([*lines[:_MOST_FOUND], *more]))

    async def _run(self, given: Run) -> Used:
        return await self._confined(
            ("/bin/sh", "-c", given.command), f"'{given.command}'", given.timeout_s
        )

    async def _confined(self, argv: tuple[str, ...], what: str, timeout_s: float) -> Used:
        lines: list[str] = []

        def hear(line: Line) -> None:
            lines.append(line.text)

        limits = Limits(deadline_s=timeout_s, output_bytes=_OUTPUT_BYTES)
        ending = await run_heard(
            self._confinement,
            self._clock,
            self._view,
            Command(argv),
            limits=limits,
            hear=hear,
            emit=self._emit,
        )
        end = end_of(ending, what, limits)
        if ending.dropped_bytes:
            lines.append(f"({ending.dropped_bytes} bytes in the middle were dropped)")
        if end.outcome is not Outcome.OK:
            lines.append(f"({end.error})")
        if ending.survivors:
            lines.append(survived(ending.survivors))
        return Used(
            "\n".join(lines), failed=end.outcome is not Outcome.OK, exit_code=ending.exit_code
        )


def shortened(text: str) -> str:
    """The beginning and the end of what is too long."""
    if len(text) <= LONGEST_OUTPUT:
        return text
    half = LONGEST_OUTPUT // 2
    return f"{text[:half]}\n({len(text) - 2 * half} characters left out)\n{text[-half:]}"


def _text_of(path: Path) -> str:
    """The text of a regular file; a pipe or device is not even waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor has no Path
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"{path.name} is not a file")
        if found.st_size > LARGEST_FILE:
            raise ExecutionError(
                f"{path.name} has {found.st_size:,} bytes, too many to read whole; use run"
            )
        return file.read().decode("utf-8")
