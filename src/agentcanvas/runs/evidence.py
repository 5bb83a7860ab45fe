"""Gathering evidence: the checks on a generation, and on that generation plus a patch (D13).

Both trees are copies that nobody else sees, confined like an agent and, where it can be had, at the
workspace's own path (D9). The base is examined once for each generation.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agentcanvas.clock import Clock
from agentcanvas.errors import SandboxError
from agentcanvas.proposals.apply import STATE_FOLDER, Landing
from agentcanvas.proposals.checks import (
    Check,
    CheckResult,
    CheckRun,
    Evidence,
    compare,
    run_checks,
)
from agentcanvas.proposals.detecting import PYTHON, choose_checks, detect, scripts_of
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.steering import steering_of
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.dependencies import interpreter, interpreter_here
from agentcanvas.sandbox.generation import Generation, told
from agentcanvas.sandbox.paths import run_folder
from agentcanvas.sandbox.prepare import copy_generation
from agentcanvas.sandbox.private_git import make_private_git
from agentcanvas.sandbox.process import Cause, Limits, run_confined
from agentcanvas.sandbox.provision import provide
from agentcanvas.sandbox.trees import open_up, remove_path
from agentcanvas.sandbox.views import copy_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

CHECK_S = 600.0
_OUTPUT_BYTES = 4 * 1024 * 1024


class Examiner:
    """Runs the checks of one run; ``timeouts`` are seconds by the name of a check."""

    def __init__(
        self,
        confinement: Confinement,
        clock: Clock,
        *,
        declared: Sequence[Check] = (),
        timeouts: Mapping[str, float] | None = None,
    ) -> None:
        self._confinement = confinement
        self._clock = clock
        self._declared = tuple(declared)
        self._timeouts = timeouts or {}
        self._before: dict[int, dict[Check, CheckResult]] = {}
        self._locks: dict[int, anyio.Lock] = {}

    async def examine(
        self,
        base: Generation,
        patch: bytes,
        changed: Sequence[str],
        policy: Policy,
        *,
        onto: Generation | None = None,
    ) -> Evidence:
        """Evidence for a patch that is safe to land, made on ``base``.

        ``onto`` is a later generation that it is merged into; a conflict is an ``ApplyConflict``.
        """
        ground = onto or base
        checks = self._checks_of(ground)
        steering = steering_of(
            patch,
            changed,
            [check.command for check in checks],
            scripts=scripts_of(ground.tree),
            is_new=lambda path: os.fsencode(path) not in base.seen,
        )
        if not checks:
            return compare(ground.name, checks, {}, {}, steering)
        before = await self.before(ground)
        async with self._copy(ground) as tree:
            await Landing(tree, policy=policy).apply("evidence", patch, base.tree)
            await anyio.to_thread.run_sync(remove_path, tree / STATE_FOLDER)
            after = await self._run(checks, ground, tree)
        return compare(ground.name, checks, before, after, steering)

    async def before(self, base: Generation) -> dict[Check, CheckResult]:
        """The checks on a generation as it is, run once."""
        async with self._locks.setdefault(base.number, anyio.Lock()):
            if base.number not in self._before:
                checks = self._checks_of(base)
                results: dict[Check, CheckResult] = {}
                if checks:
                    async with self._copy(base) as tree:
                        results = await self._run(checks, base, tree)
                self._before[base.number] = results
        return self._before[base.number]

    def _checks_of(self, base: Generation) -> tuple[Check, ...]:
        return choose_checks(self._declared, base.tree, interpreter(base.beside) or PYTHON)

    async def _run(
        self, checks: Sequence[Check], base: Generation, tree: Path
    ) -> dict[Check, CheckResult]:
        limits = {check.command: self._timeouts.get(check.name, CHECK_S) for check in checks}

        async def runner(command: str, tree: Path) -> CheckRun:
            try:
                open_up(tree)  # an earlier check may have closed it
                return await self._check(command, tree, base, limits[command])
            except (OSError, RecursionError, SandboxError) as problem:
                # Nor does what else it left there end the run: what was not run has not passed.
                why = told(problem) if isinstance(problem, OSError) else str(problem)
                return CheckRun(None, f"it could not be run: {why}")

        return await run_checks(checks, tree, runner)

    async def _check(
        self, command: str, tree: Path, base: Generation, deadline_s: float
    ) -> CheckRun:
        provided = await provide(base, tree, self._confinement)
        view = copy_view(base, tree, read_only=provided.binds)
        await make_private_git(base, tree, self._confinement.places(view).objects)
        limits = Limits(deadline_s=deadline_s, output_bytes=_OUTPUT_BYTES)
        self._clock.hold()
        try:
            started = Command(("/bin/sh", "-c", command), tag=str(view.home))
            ending, lines = await run_confined(self._confinement, view, started, limits)
        finally:
            self._clock.release()
        output = "\n".join(line.text for line in lines)
        if ending.cause is not Cause.EXITED:
            why = ending.reason or f"it was not done after {deadline_s:g} s"
            return CheckRun(None, f"{output}\nstopped: {why}")
        return CheckRun(ending.exit_code, output, provided.unsound or self._unsound(view))

    def _unsound(self, view: View) -> str:
        """Why a green check may have tested other code than the tree holds (D9)."""
        if self._confinement.places(view).tree == view.workspace:
            return ""
        inside = [
            folder
            for folder in os.environ.get("PATH", "").split(os.pathsep)
            if folder and Path(folder).is_relative_to(view.workspace)
        ]
        if not inside:
            return ""
        return (
            f"{inside[0]} leads back to the workspace, and {self._confinement.name} cannot put the "
            "copy in its place; the checks may have run your old code"
        )

    @asynccontextmanager
    async def _copy(self, base: Generation) -> AsyncIterator[Path]:
        place = run_folder(base.workspace, base.run_id)
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".evidence-", dir=place))
        try:
            tree = folder / "tree"
            await copy_generation(base, tree)
            yield tree
        finally:
            # What resists is taken away when the run is continued or cleaned up.
            with anyio.CancelScope(shield=True), suppress(OSError):
                await anyio.to_thread.run_sync(remove_path, folder)


def checks_here(root: Path) -> tuple[Check, ...]:
    """What changes of a workspace are judged by where its flow names nothing."""
    return detect(root, interpreter_here(root) or PYTHON)
