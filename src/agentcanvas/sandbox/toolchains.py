"""Which folders of the machine hold programs: the system's, and what the user's PATH leads to.

Tools under the home folder (nvm, pyenv, pipx, cargo, …) must be readable inside; the rest of the
home folder, with its keys and logins, must not. So a prefix is opened by its program folders only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/nix/var/nix/profiles",  # beside them lies the socket of the daemon
    "/home/linuxbrew/.linuxbrew",
)

SYSTEM_FILES = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives",
        "ca-certificates",
        "debian_version",
        "fonts",
        "gitconfig",
        "group",
        "hosts",
        "java-11-openjdk",
        "java-17-openjdk",
        "java-21-openjdk",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "localtime",
        "lsb-release",
        "maven",
        "mime.types",
        "nsswitch.conf",
        "os-release",
        "passwd",
        "pki",
        "protocols",
        "resolv.conf",
        "services",
        "ssl",
        "timezone",
    )
)

# Not `share`: that is where programs keep logins and histories.
_PARTS_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "include")


def toolchain_folders(workspace: Path) -> tuple[Path, ...]:
    """List what must be readable, beyond the system, for the programs on the PATH to run."""
    return _folders(workspace, os.environ.get("PATH", ""))


def interpreter_folders(venv: Path, workspace: Path) -> tuple[Path, ...]:
    """List what must be readable for the Python that a virtual environment borrows.

    Its ``pyvenv.cfg`` names the folder; one that is not a bin/ with a Python in it opens nothing,
    because the file is anybody's who could write to the workspace.
    """
    try:
        lines = (venv / "pyvenv.cfg").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ()
    named = [
        line.partition("=")[2].strip() for line in lines if line.split("=")[0].strip() == "home"
    ]
    found: set[Path] = set()
    for folder in map(Path, named):
        is_python = folder.name == "bin" and any(folder.glob("python3*"))
        if is_python and not _is_of_the_system(folder):
            found |= {part for part in _parts_around(folder.resolve()) if part.is_dir()}
    return tuple(sorted(path for path in found if _may_be_seen(path, workspace)))


@lru_cache(maxsize=16)  # asked at every start of a process, answered by hundreds of lookups
def _folders(workspace: Path, search: str) -> tuple[Path, ...]:
    found: set[Path] = set()
    for folder in map(Path, dict.fromkeys(search.split(os.pathsep))):
        if folder.is_absolute() and not _is_of_the_system(folder) and folder.is_dir():
            found.update(_opened_by(folder))
    outside = {path for path in found if _may_be_seen(path, workspace)}
    return tuple(sorted(path for path in outside if outside.isdisjoint(path.parents)))


def _opened_by(folder: Path) -> Iterator[Path]:
    yield folder
    yield from _parts_around(folder)
    for program in folder.iterdir():
        if program.is_symlink():
            target = program.resolve()
            if target.exists() and not _is_of_the_system(target) and target.parent != folder:
                yield target
                yield from _parts_around(target.parent)


def _parts_around(folder: Path) -> Iterator[Path]:
    """Give the parts of an installation around its bin/; version managers need all of theirs."""
    if folder.name == "shims":
        yield folder.parent
    if folder.name != "bin":
        return
    prefix = folder.parent
    if prefix == Path.home():
        return
    parts = (prefix / part for part in (*_PARTS_OF_A_PREFIX, "pyvenv.cfg"))
    yield from (part for part in parts if part.exists())
    if prefix.name == ".cargo":  # its programs are doors to the toolchains beside it
        yield from (p for p in (prefix.parent / ".rustup",) if p.is_dir())


def _may_be_seen(path: Path, workspace: Path) -> bool:
    """Whether nothing private lies there, wherever PATH leads.

    The workspace is seen through its copy alone, and a folder that holds it, or the home folder,
    holds more than programs.
    """
    real, copied, home = path.resolve(), workspace.resolve(), Path.home().resolve()
    return not (_within(real, copied) or _within(copied, real) or _within(home, real))


def _is_of_the_system(path: Path) -> bool:
    return any(_within(path, Path(system)) for system in SYSTEM)


def _within(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
