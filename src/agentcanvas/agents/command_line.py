"""The command line of an agent, as somebody wrote it: its placeholders, and what is wrong with it.

It is looked at before a run begins, since a slip in it fails every turn the same way.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PLACEHOLDERS: Final = ("prompt", "prompt_file", "workdir", "images")
PLACEHOLDER: Final = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")

_BRACED: Final = re.compile(r"(?<!\$)\{([a-z_]+)\}")
_LOOKS_LIKE: Final = 0.8
# Anything else is the shell's to read: an assignment, a quote, a bracket, a list of commands.
_PLAIN_WORD: Final = re.compile(r"[\w./+-]+(?=\s|$)", re.ASCII)
_LOOK_S: Final = 5.0


def unfit(words: Sequence[str]) -> str:
    """What is wrong with the words of a command; empty if nothing is."""
    if not words or not words[0].strip():
        return "is empty; name the program to run"
    for word in words:
        if "\0" in word:
            return "holds a NUL character; remove it"
        for name in _BRACED.findall(word):
            close = difflib.get_close_matches(name, PLACEHOLDERS, n=1, cutoff=_LOOKS_LIKE)
            if close and name not in PLACEHOLDERS:
                return f"says {{{name}}}; did you mean {{{close[0]}}}?"
    return ""


def missing_program(command: str, workspace: Path) -> str:
    """The program of a shell's line if it is not here; empty where only the shell can tell."""
    plain = _PLAIN_WORD.match(command.lstrip())
    return "" if plain is None or _shell_knows(plain[0], workspace) else plain[0]


def _shell_knows(word: str, workspace: Path) -> bool:
    """Whether it is a program, or a word of the shell's own."""
    try:
        found = subprocess.run(  # noqa: S603  # the word is looked up, and not run
            ["/bin/sh", "-c", 'command -v "$1"', "sh", word],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=_LOOK_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return found.returncode == 0
