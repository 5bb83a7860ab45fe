"""Folders that a project needs and git does not keep: node_modules, .venv, target and their like.

Here they are found and told apart from source. They are no part of a base: how a sandbox gets them
is said in ``provision``, and nothing in them ever becomes part of a patch.
"""

# ruff: noqa: PTH113, PTH114, PTH116, PTH118 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from agentcanvas.sandbox.paths import shown

_VENVS = (b".venv", b"venv", b"env", b".virtualenv")
# The folder, and the files one of which stands beside it in a project that uses it.
_BESIDE: dict[bytes, tuple[bytes, ...]] = {
    b"node_modules": (b"package.json",),
    b"__pypackages__": (b"pyproject.toml",),
    b"vendor/bundle": (b"Gemfile",),
    b"target": (b"Cargo.toml",),
    b".tox": (b"tox.ini", b"tox.toml", b"pyproject.toml", b"setup.cfg"),
}
_PYTHON = (b"pyproject.toml", b"setup.py", b"setup.cfg", b"requirements.txt", b"Pipfile")
_MARKS = frozenset({mark for marks in _BESIDE.values() for mark in marks} | {*_PYTHON})
# A build writes into these: seen read-only they would be of no use.
_WRITTEN = frozenset({b"target", b".tox"})

FIRST_NAMES = frozenset({name.split(b"/")[0] for name in _BESIDE} | {*_VENVS})
"""What a path begins with, below its project, if it may be in such a folder."""


class Use(StrEnum):
    """How a sandbox has a folder."""

    READ = "read"
    """Seen read-only."""
    WRITE = "write"
    """A copy of its own, where that is cheap."""
    OWN = "own"
    """A copy of its own, whatever it costs: the setup made it for this."""


class Dependency(msgspec.Struct, frozen=True):
    """A folder (or, made by a setup, a file): where it belongs, and where it is on this machine."""

    path: bytes
    source: bytes
    use: Use = Use.READ

    @property
    def origin(self) -> Path:
        """Where it is, as a path of the machine."""
        return Path(os.fsdecode(self.source))


def use_of(path: bytes) -> Use:
    """Say how a folder of this name is had."""
    return Use.WRITE if path.rpartition(b"/")[2] in _WRITTEN else Use.READ


def find_dependencies(
    workspace: Path, paths: Iterable[bytes], tracked: Collection[bytes]
) -> tuple[Dependency, ...]:
    """Look beside the projects among ``paths``; a folder with tracked files in it is source."""
    base = os.fsencode(workspace)
    found: dict[bytes, Dependency] = {}
    for project in sorted(_projects(paths), key=lambda folder: folder.count(b"/")):
        if not is_in(project, found):
            found |= {each.path: each for each in _beside(base, project)}
    source = {folder for folder in found if any(is_in(path, (folder,)) for path in tracked)}
    return tuple(found[path] for path in sorted(found.keys() - source))


def interpreter(found: Iterable[Dependency]) -> str:
    """Name the Python of the environment at the project's root; empty if there is none."""
    for each in found:
        if each.path in _VENVS and (each.origin / "bin" / "python").exists():
            return f"{os.fsdecode(each.path)}/bin/python"
    return ""


def interpreter_here(root: Path) -> str:
    """The same for a folder that no base was taken of."""
    return interpreter(_beside(os.fsencode(root), b""))


def is_in(path: bytes, folders: Collection[bytes]) -> bool:
    """Tell whether a path is one of the folders, or lies in one."""
    return path in folders or path.startswith(tuple(folder + b"/" for folder in folders))


def is_dependency_folder(parent: bytes, name: bytes) -> bool:
    """Tell one by its name and what stands in or beside it; for walks without git."""
    if name in _VENVS:
        return os.path.isfile(os.path.join(parent, name, b"pyvenv.cfg"))
    if name == b"bundle" and parent.rpartition(b"/")[2] == b"vendor":
        return _has_one(parent.rpartition(b"/")[0], _BESIDE[b"vendor/bundle"])
    return name in _BESIDE and _has_one(parent, _BESIDE[name])


def _projects(paths: Iterable[bytes]) -> set[bytes]:
    marked = (path.rpartition(b"/") for path in paths)
    return {b""} | {folder for folder, _, name in marked if name in _MARKS}


def _beside(base: bytes, project: bytes) -> Iterator[Dependency]:
    here = os.path.join(base, project) if project else base
    for name in (*_BESIDE, *_VENVS):
        full = os.path.join(here, name)
        parent, _, last = full.rpartition(b"/")
        if not _is_folder(full) or not is_dependency_folder(parent, last):
            continue
        source = os.path.realpath(full)
        # A link is followed to a folder of the same kind only, so that it opens nothing else.
        if source != full and os.path.islink(full) and source.rpartition(b"/")[2] != last:
            continue
        path = project + b"/" + name if project else name
        yield Dependency(path, source, use_of(path))


def _is_folder(full: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.stat(full).st_mode)
    except OSError:
        return False


def _has_one(folder: bytes, names: Iterable[bytes]) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in names)


def leads_back(workspace: Path, dependencies: Iterable[Dependency]) -> str:
    """Say which dependency leads to code of the workspace itself; empty if none does (D9).

    Where a copy cannot stand in the workspace's place, a check that goes through it tests the
    user's code instead of the copy's, or finds none.
    """
    for each in dependencies:
        for way in (*_editable(each, workspace), *_linked(each, workspace)):
            return f"{shown(each.path)} leads back to the workspace ({way})"
    return ""


def _editable(each: Dependency, workspace: Path) -> Iterator[str]:
    """Find editable installs: path files and the import hooks that installers write."""
    mark = os.fsencode(workspace)
    for packages in each.origin.glob("lib*/python*/site-packages"):
        for file in sorted([*packages.glob("*.pth"), *packages.glob("__editable__*.py")]):
            try:
                lines = file.read_bytes().splitlines()
            except OSError:
                continue
            if any(mark in line and each.source not in line for line in lines):
                yield file.name


def _linked(each: Dependency, workspace: Path) -> Iterator[str]:
    """Find packages of the workspace that a package manager has linked in."""
    if each.path.rpartition(b"/")[2] != b"node_modules":
        return
    for package in sorted([*each.origin.glob("*"), *each.origin.glob("@*/*")]):
        if package.is_symlink():
            target = package.resolve()
            inside = target.relative_to(workspace).parts if target.is_relative_to(workspace) else ()
            if inside and "node_modules" not in inside:
                yield package.name
