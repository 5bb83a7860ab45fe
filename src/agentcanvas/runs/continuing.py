"""A turn that was not done by whom it was given to: it waits for a limit's end, or goes to another.

An agent may name a ``fallback``. It gets the task with what was said so far and, in its files, what
was changed so far. Without one the run waits, its clock stopped, until the time that the service
named. Whoever cannot do a task may also hand it over by itself. All are events. Whoever was handed
over from has ended its turn, and what it said is on record; should it answer once more, the hub
refuses that, since the task is no longer its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, structs

from agentcanvas.flows.bounds import CONTINUATIONS
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.turns import Access
from agentcanvas.runs import events as e
from agentcanvas.runs import prompts
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.turn import TurnOutcome, TurnSpec

_LIMITS = frozenset({FailureClass.RATE_LIMIT, FailureClass.QUOTA, FailureClass.HANDED_OFF})
_LONGEST_WAIT_MS = 12 * 3_600_000
_UNTOLD_WAIT_MS = 60_000
"""How long a rate limit lasts that does not say so."""


class _Step(Struct, frozen=True):
    """What is done about a limit: another agent, or a time to wait for."""

    to: str = ""
    until_ms: int = 0


async def take_through_limits(
    run: RunContext, spec: TurnSpec, *also: e.RunEvent, never: Sequence[str] = ()
) -> TurnOutcome:
    """Have a turn done, through the limits of its service; ``never`` must not do it.

    The outcome says who did it in the end.
    """
    outcome = await run.turns.take(spec, *also)
    tried = {spec.to, *never}
    base = spec
    for number in range(1, CONTINUATIONS + 1):
        if outcome.ok or outcome.failure not in _LIMITS:
            break
        step = await _decided(run, f"{base.key}/limit:{number}", spec, outcome, tried=tried)
        if not step.to and not step.until_ms:
            break
        if step.to:
            tried.add(step.to)
        else:
            await _wait(run, spec, step.until_ms)
        spec = _next(run, base, spec, outcome, to=step.to or spec.to, number=number)
        run.meter.spend_turn()
        outcome = await run.turns.take(spec)
    return structs.replace(outcome, by=spec.to)


async def _decided(
    run: RunContext, step_key: str, spec: TurnSpec, outcome: TurnOutcome, *, tried: set[str]
) -> _Step:
    """What to do, decided once and put on record."""

    async def effect() -> tuple[_Step, Sequence[e.RunEvent]]:
        step = _decide(run, spec, outcome, tried)
        if not step.to and not step.until_ms:
            return step, ()
        limit = e.Limit(
            turn_id=spec.key,
            agent=spec.to,
            reason=outcome.reason,
            task_id=spec.task_id,
            to=step.to,
            until_ms=step.until_ms or None,
            partial=outcome.report.partial,
        )
        return step, [
            e.LimitReached(
                actor="engine",
                provenance=e.Provenance.SYSTEM,
                interaction_id=spec.place.interaction_id or None,
                payload=limit,
            )
        ]

    request = [spec.key, outcome.reason]
    return await run.once(step_key, request, _Step, effect)


def _decide(run: RunContext, spec: TurnSpec, outcome: TurnOutcome, tried: set[str]) -> _Step:
    if outcome.failure is FailureClass.HANDED_OFF:
        to = outcome.report.hand_to
        known = any(each.id == to for each in run.flow.agents)
        return _Step(to=to) if known and to not in tried else _Step()
    fallback = next((each.fallback for each in run.flow.agents if each.id == spec.to), None)
    if fallback is not None and fallback not in tried:
        return _Step(to=fallback)
    now = run.clock.now_ms()
    told = outcome.report.retry_at_ms
    if told is UNSET:
        is_short = outcome.failure is FailureClass.RATE_LIMIT
        return _Step(until_ms=now + _UNTOLD_WAIT_MS) if is_short else _Step()
    return _Step(until_ms=max(now + 1, told)) if told - now <= _LONGEST_WAIT_MS else _Step()


async def _wait(run: RunContext, spec: TurnSpec, until_ms: int) -> None:
    """Wait for a moment; the run's clock stands still when nothing else is under way."""
    who = run.name_of(spec.to)
    with run.attendance.held_up(spec.key, f"the end of {who}'s limit"):
        wait_s = (until_ms - run.clock.now_ms()) / 1000
        if wait_s > 0:
            await run.clock.sleep(wait_s)


def _next(
    run: RunContext,
    base: TurnSpec,
    spec: TurnSpec,
    outcome: TurnOutcome,
    *,
    to: str,
    number: int,
) -> TurnSpec:
    """The same turn once more: by another, or after the limit; with what was there by then."""
    report = outcome.report
    partial = report.partial
    message = base.message
    if spec.access is Access.WORK:
        message = prompts.continued(
            base.message,
            said=report.text,
            why=outcome.reason,
            before="" if to == spec.to else run.name_of(spec.to),
            has_files=bool(partial),
        )
    after = structs.replace(
        spec,
        key=f"{base.key}/after:{number}",
        to=to,
        message=message,
        continuation=number,
        session="",
        generation=run.turns.generation_of(spec.key),
        rules=run.rules.get(to, ()),
    )
    if not partial:
        return after
    # The patch is all that was changed since the generation, earlier rounds included.
    return structs.replace(after, revision=0, on=(partial,))
