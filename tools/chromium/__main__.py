"""``python -m tools.chromium``: put a browser into ``.browser/``, or exit 1 with the reason."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatch_build import PageNotBuilt, npm_command

HERE = Path(__file__).parent
PLACE = HERE.parents[1] / ".browser"
PROGRAM = "chromium"


def main() -> int:
    """Fetch, unpack, and try it before anybody relies on it."""
    if (PLACE / PROGRAM).exists():
        return 0
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return _without("there is none to fetch for this machine")
    with tempfile.TemporaryDirectory(dir=HERE.parents[1], prefix=".browser-") as name:
        folder = Path(name)
        for file in ("package.json", "package-lock.json", "unpack.mjs"):
            shutil.copy(HERE / file, folder)
        try:
            _npm(folder, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
            _npm(folder, "run", "--silent", "unpack")
            _run([str(folder / PROGRAM), "--version"], folder, {})
        except (PageNotBuilt, OSError, subprocess.CalledProcessError) as problem:
            said = getattr(problem, "stdout", None) or str(problem)
            return _without(str(said).strip().splitlines()[-1])
        shutil.rmtree(folder / "node_modules")
        shutil.rmtree(PLACE, ignore_errors=True)
        shutil.copytree(folder, PLACE)
    return 0


def _npm(folder: Path, *words: str) -> None:
    command, environment = npm_command()
    _run([*command, *words], folder, {**environment, "TMPDIR": str(folder)})


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(  # noqa: S603 - our own words, and what the lock file names
        command,
        cwd=folder,
        env=environment or None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=300,
    )


def _without(reason: str) -> int:
    sys.stderr.write(f"no browser could be fetched: {reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
