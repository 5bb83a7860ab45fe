"""Says which ways to confine processes work on this machine, and so which ones the tests ran in.

``python -m tools.backends``: one line each; exit code 1 when there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import anyio

from agentcanvas.errors import NoConfinement
from agentcanvas.sandbox.pick import NAMES, pick


async def found() -> dict[str, str]:
    """For each way, an empty text if it works, else why not."""
    return {name: await _why_not(name) for name in NAMES}


def report(backends: Mapping[str, str]) -> tuple[str, int]:
    """The lines to print, and the exit code."""
    lines = [f"{name}: {f'no ({why})' if why else 'works'}" for name, why in backends.items()]
    if all(backends.values()):
        lines.append("None works here: nothing of the sandbox was tested.")
        return "\n".join(lines), 1
    return "\n".join(lines), 0


async def _why_not(name: str) -> str:
    try:
        await pick(only=name)
    except NoConfinement as refusal:
        return "; ".join(reason.removeprefix(f"{name}: ") for reason in refusal.reasons)
    return ""


def main() -> int:
    """Print and judge."""
    text, code = report(anyio.run(found))
    sys.stdout.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
