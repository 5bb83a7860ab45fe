"""Which checks there are: those of the flow, else what a newcomer would run here (D13, D44).

They are looked for in the base, never in the patched tree, or a patch could bring its own judge.
"""

from __future__ import annotations

import re
import tomllib
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agentcanvas.proposals.checks import Check

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PYTHON: Final = "python3"
"""Where a project has no environment of its own; ``python`` alone is not on every machine."""

_LARGEST_MANIFEST: Final = 1024 * 1024
_FILES_READ: Final = 50
_NPM_DEFAULT: Final = "no test specified"
_MAKE_TEST: Final = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_PYTEST_FILES: Final = ("pytest.ini", "pytest.toml", ".pytest.ini", "conftest.py")
_TEST_FOLDERS: Final = (".", "tests", "test")
# What only pytest runs: its own name, and tests that stand in no class.
_FOR_PYTEST: Final = re.compile(
    r"^(?:[ \t]*(?:import|from) pytest\b|(?:async )?def test_)", re.MULTILINE
)
_FOR_UNITTEST: Final = re.compile(r"^[ \t]*(?:import|from) unittest\b", re.MULTILINE)


def choose_checks(declared: Iterable[Check], base: Path, python: str = PYTHON) -> tuple[Check, ...]:
    """Declared ones if there are any, else what is detected in the base."""
    chosen = tuple(msgspec.structs.replace(check, declared=True) for check in declared)
    return chosen or detect(base, python)


def detect(root: Path, python: str = PYTHON) -> tuple[Check, ...]:
    """What a newcomer would run here; ``make test`` only where nothing more direct is known."""
    found = []
    if _has_pytest_settings(root):
        found.append(_pytest(python))
    elif (folder := _test_folder(root)) is not None:
        found.append(_python_tests(root, folder, python))
    if _has_npm_test(root):
        found.append(Check("npm test", "npm test"))
    if (root / "Cargo.toml").is_file():
        found.append(Check("cargo test", "cargo test"))
    if (root / "go.mod").is_file():
        found.append(Check("go test", "go test ./..."))
    if not found and _has_make_test(root):
        found.append(Check("make test", "make test"))
    return tuple(found)


def _pytest(python: str) -> Check:
    return Check("pytest", f"{python} -m pytest")


def _has_pytest_settings(root: Path) -> bool:
    if any((root / name).is_file() for name in _PYTEST_FILES):
        return True
    if "[tool:pytest]" in _text(root / "setup.cfg") or "[pytest]" in _text(root / "tox.ini"):
        return True
    try:
        tools = tomllib.loads(_text(root / "pyproject.toml")).get("tool")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(tools, dict) and "pytest" in tools


def _test_folder(root: Path) -> str | None:
    return next((name for name in _TEST_FOLDERS if any((root / name).glob("test_*.py"))), None)


def _python_tests(root: Path, folder: str, python: str) -> Check:
    """Tests that need no pytest are run without it: it may not be installed."""
    texts = [_text(path) for path in islice((root / folder).glob("test_*.py"), _FILES_READ)]
    if any(map(_FOR_PYTEST.search, texts)) or not any(map(_FOR_UNITTEST.search, texts)):
        return _pytest(python)
    where = "" if folder == "." else f" -s {folder}"
    if where and (root / folder / "__init__.py").is_file():
        where += " -t ."  # its tests may name their own package
    return Check("unittest", f"{python} -m unittest discover{where}")


def _has_npm_test(root: Path) -> bool:
    command = scripts_of(root).get("test", "")
    return bool(command) and _NPM_DEFAULT not in command


def scripts_of(root: Path) -> dict[str, str]:
    """The scripts of a package.json; none where it cannot be read."""
    try:
        package = msgspec.json.decode(_text(root / "package.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {name: said for name, said in package.scripts.items() if isinstance(said, str)}


class _Package(msgspec.Struct, frozen=True):
    scripts: dict[str, Any] = {}


def _has_make_test(root: Path) -> bool:
    makefiles = (root / name for name in ("GNUmakefile", "makefile", "Makefile"))
    return any(_MAKE_TEST.search(_text(path)) for path in makefiles)


def _text(path: Path) -> str:
    """The start of a file, empty when there is none: a repository may hold anything."""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_MANIFEST).decode(errors="replace")
    except OSError:
        return ""
