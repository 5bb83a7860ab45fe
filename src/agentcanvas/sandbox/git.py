"""Running git so that nothing but our own arguments decides what it does.

Two ways: ``plumbing`` for our own repositories, blind to every configuration there is, and
``asked`` for questions about the user's workspace, where the user's ignore rules count. Neither is
ever given a working directory that an agent can write to: a planted ``.git/config`` runs code.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from agentcanvas.errors import SandboxError, Unpatchable

BLIND = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "HOME": os.devnull,
    "LC_ALL": "C",
}

# The fsmonitor of a repository is a program that git would start for us.
_QUIET = ("-c", "core.fsmonitor=false")

DEADLINE_OF_RULES_S = 60.0
"""A pattern of thirty letters can keep git busy for years, and nobody can interrupt it."""

_BELOW_HERE = b"./"
"""So that a file called ``:(glob)x`` is a name, and no instruction to git."""


def plumbing(
    arguments: Sequence[str],
    *,
    git_dir: Path,
    work_tree: Path | None = None,
    stdin: bytes = b"",
    fine: Container[int] = (0,),
    deadline_s: float | None = None,
) -> bytes:
    """Run git on a repository of ours, without any configuration but that repository's own.

    ``fine`` are the exit codes that do not mean a failure; ``TimeoutError`` at the deadline.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), **BLIND, "GIT_DIR": str(git_dir)}
    if work_tree:
        environment["GIT_WORK_TREE"] = str(work_tree)
    done = _run(
        [*_QUIET, *arguments],
        cwd=work_tree or git_dir,
        environment=environment,
        stdin=stdin,
        deadline_s=deadline_s,
    )
    if done.returncode not in fine:
        raise SandboxError(f"git {arguments[0]} failed: {_last_words(done.stderr)}")
    return done.stdout


def ignored(paths: Iterable[bytes], *, git_dir: Path, rules: Path) -> frozenset[bytes]:
    """Say which of the paths the .gitignore files in ``rules`` leave out.

    ``rules`` holds copies of those files and nothing else, since an agent has written them.
    """
    given = b"".join(_BELOW_HERE + path + b"\0" for path in paths)
    try:
        told = plumbing(
            ["check-ignore", "--no-index", "--stdin", "-z"],
            git_dir=git_dir,
            work_tree=rules,
            stdin=given,
            fine=(0, 1),  # 1: none is ignored
            deadline_s=DEADLINE_OF_RULES_S,
        )
    except TimeoutError as late:
        raise Unpatchable(
            f"The .gitignore files take more than {DEADLINE_OF_RULES_S:g} s to tell which new "
            "files they leave out; make their patterns simpler"
        ) from late
    return frozenset(path.removeprefix(_BELOW_HERE) for path in told.split(b"\0")[:-1])


def asked(arguments: Sequence[str], workspace: Path) -> subprocess.CompletedProcess[bytes]:
    """Ask git about the user's workspace; the caller reads the exit code."""
    kept = {"PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"}
    return _run([*_QUIET, *arguments], cwd=workspace, environment=environment)


def answer(arguments: Sequence[str], workspace: Path) -> bytes | None:
    """Ask, and take a failure for "there is none"."""
    done = asked(arguments, workspace)
    return None if done.returncode else done.stdout.rstrip(b"\n")


def _run(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    deadline_s: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 -- fixed program, arguments made by this package
            ["git", *arguments],  # noqa: S607 -- the user's PATH says which git is theirs
            cwd=cwd,
            env=dict(environment),
            input=stdin,
            capture_output=True,
            check=False,
            timeout=deadline_s,
        )
    except FileNotFoundError as missing:
        raise SandboxError("git was not found on the PATH; install git") from missing
    except subprocess.TimeoutExpired as late:
        raise TimeoutError(str(late)) from late


def _last_words(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it did not say why"


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """Give git's own words for why a question was not answered."""
    return _last_words(done.stderr)
