"""Where the asks of an interaction are carried out: messages, sandboxes, verdicts (``stage.Desk``).

A plain ask is one turn. An ask with a work product is an ``Assignment``. What a person is asked
goes to the one inbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agentcanvas.flows.axes import Sync
from agentcanvas.flows.settle import Settled as Interaction
from agentcanvas.flows.team import CwdMode
from agentcanvas.pattern import Ask, Fate, Measure, Work
from agentcanvas.patterns.verified import AUDIT, SANDBOX
from agentcanvas.proposals.checks import Check
from agentcanvas.proposals.model import Decision
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.protocol.records import FailureClass, ProposalRef
from agentcanvas.protocol.turns import Access
from agentcanvas.runs import events as e
from agentcanvas.runs.assignment import Assignment, Terms
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.continuing import take_through_limits
from agentcanvas.runs.evidence import Examiner
from agentcanvas.runs.offstage import Drawn, Settled
from agentcanvas.runs.steps import Done
from agentcanvas.runs.turn import Place, TurnOutcome, TurnSpec
from agentcanvas.runs.verdicts import Verdicts

TESTS_PASSED = "tests_passed"
_UNCONFINED = "unconfined"


class RunDesk:
    """The desk of one interaction."""

    def __init__(self, run: RunContext, interaction: Interaction) -> None:
        self._run = run
        self._interaction = interaction
        self._orchestrator = _orchestrator(interaction)
        declared = [
            Check(check.name, check.command, check.expected_exit_code, declared=True)
            for check in interaction.checks
        ]
        self._examiner = Examiner(
            run.confinement,
            run.clock,
            declared=declared,
            timeouts={
                check.name: check.timeout_ms / 1000
                for check in interaction.checks
                if check.timeout_ms is not None
            },
        )

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        """Carry out one ask until it is settled."""
        with self._run.attendance.at_work():
            if ask.work is None:
                return Done(await self._plain(step, ask, schema))
            assignment = Assignment(self._run, self._terms(ask.to), step, ask)
            settled = await assignment.carry_out()
            return Done(settled)

    async def land(self, step: str, candidate: ProposalRef) -> Done:
        """Have a candidate judged and maybe applied."""
        with self._run.attendance.at_work():
            name, _, _ = candidate.proposal_id.rpartition(".r")
            ask = Ask(candidate.agent_id, f"Land {name}", Work(name))
            assignment = Assignment(self._run, self._terms(candidate.agent_id), step, ask)
            return Done(await assignment.judge_candidate(candidate))

    async def confirm(
        self, step: str, title: str, value: msgspec.Raw, schema: dict[str, Any]
    ) -> Done:
        """Put a value before the person, if the run wants that."""
        if not self._run.order.approve_plan:
            return Done(Settled(title, value=value, turns=0, messages=0))
        with self._run.attendance.at_work():
            answer = await self._run.people.ask(
                PersonAsk(
                    ask_id=f"{self._run.run_id}/{step}",
                    person=self._run.order.person,
                    run_id=self._run.run_id,
                    agent_id=self._orchestrator,
                    scope=f"plan:{self._interaction.id}",
                    text=title,
                    instruction="Accept it, change it, or answer with null to decline",
                    schema=schema,
                    default=msgspec.json.decode(value),
                )
            )
        if answer.content in (None, "", False):
            return Done(Settled(title, Fate.REJECTED, "declined", turns=0, messages=0))
        edited = msgspec.Raw(msgspec.json.encode(answer.content))
        return Done(Settled(title, value=edited, turns=0, messages=0))

    async def tell(self, step: str, to: str, message: str, by: str = "") -> Done:
        """Say something that needs no answer."""
        spec = TurnSpec(key=step, place=self._place(to, by), to=to, message=message)
        await self._run.turns.say(spec)
        return Done(result=True)

    async def measure(self, step: str, metric: str) -> Done:
        """Measure the work as it stands: the share of checks that pass on the current base."""
        del step
        if metric in (SANDBOX, AUDIT):
            return Done(await self._circumstance(metric))
        with self._run.attendance.at_work():
            base = await self._run.ground.current()
            results = await self._examiner.before(base)
        named = {check: result for check, result in results.items() if check.name == metric}
        counted = named or results
        if metric != TESTS_PASSED and not named:
            detail = f"nothing here measures {metric}"
            return Done(Measure(metric, 0, holds=False, detail=detail))
        red = [check.name for check, result in counted.items() if not result.passed]
        detail = f"red: {', '.join(red)}" if red else ""
        if not counted:
            detail = "unverified: no checks are declared or detected"
        elif red and set(red) <= await self._accepted_red():
            detail, red = f"red, which a person accepted: {', '.join(red)}", []
        return Done(Measure(metric, 0.0 if red else 1.0, holds=not red, detail=detail))

    async def _circumstance(self, metric: str) -> Measure:
        """Whether agents are confined here, and whether the record is as it was written."""
        if metric == SANDBOX:
            confined = self._run.confinement.name != _UNCONFINED
            detail = "" if confined else "the run was started with --unsafe"
            return Measure(metric, float(confined), confined, detail)
        await self._run.logbook.flush()
        broken = await self._run.audited()
        return Measure(metric, float(not broken), not broken, broken)

    async def _accepted_red(self) -> set[str]:
        """Checks that are red with what landed, which a person has looked at and let pass.

        The gate has asked for a reason where the change made them so. Without this a change that
        a person lands all the same, or a repository that is red for reasons of its own, could
        never be done with.
        """
        await self._run.logbook.flush()
        accepted: dict[str, tuple[str, ...]] = {}
        red: dict[str, tuple[str, ...]] = {}
        for entry in await self._run.recorded():
            match entry.event:
                case e.ChecksRun(payload=checked):
                    red[checked.task_id] = checked.red
                case e.ProposalReviewed(actor=who, payload=review) if (
                    review.decision is Decision.APPLY and who.startswith("person:")
                ):
                    accepted[review.task_id] = red.get(review.task_id, ())
                case e.ProposalUndone(payload=undone):
                    accepted.pop(undone.task_id, None)
                case _:
                    pass
        return {name for names in accepted.values() for name in names}

    async def recall(self, step: str, query: str) -> Done:
        """Look up what the workspace's memory knows."""
        del step
        return Done(await self._run.noting.recall(query))

    async def note(self, step: str, entry: str, sources: Sequence[str]) -> Done:
        """Put something on record, and into the day's file; without that it goes on as well."""
        events = await self._run.noting.note(
            step, entry, sources, by="engine", interaction=self._interaction.id
        )
        return Done(
            result=True,
            also=lambda transaction: self._run.logbook.note(transaction, *events),
        )

    async def drawn(self, step: str, draw: Drawn) -> Done:
        """Put on record what was drawn by the seed."""
        event = e.Drew(
            actor="engine",
            provenance=e.Provenance.SYSTEM,
            interaction_id=self._interaction.id,
            payload=e.Draw(step, draw.choice, draw.among, draw.why, draw.seed),
        )
        return Done(
            draw.choice,
            also=lambda transaction: self._run.logbook.note(transaction, event),
        )

    async def discard(self, step: str, candidates: Sequence[ProposalRef]) -> Done:
        """Let go of candidates that were never landed."""
        del step
        events = [
            e.ProposalDiscarded(
                actor="engine",
                provenance=e.Provenance.SYSTEM,
                interaction_id=self._interaction.id,
                payload=e.Discarded(candidate.proposal_id),
            )
            for candidate in candidates
        ]
        return Done(
            result=True,
            also=lambda transaction: self._run.logbook.note(transaction, *events),
        )

    async def give_up(self, step: str, reason: str) -> None:
        """End what agents still do for a step whose time is over."""
        await self._run.turns.give_up(step, reason)

    # ---------------------------------------------------------------------------------------------

    async def _plain(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Settled:
        run = self._run
        key = f"{step}/turn"
        reads = self._stands_in_the_workspace(ask.to)
        generation = None
        if reads and key not in run.journal:
            generation = (await run.ground.current()).number
        outcome = await take_through_limits(
            run,
            TurnSpec(
                key=key,
                place=self._place(ask.to),
                to=ask.to,
                message=ask.message,
                role=ask.role,
                number=ask.number,
                access=Access.READ if reads else Access.NONE,
                generation=generation,
                schema=schema,
                rules=run.rules.get(ask.to, ()),
            ),
        )
        return _settled(outcome)

    def _stands_in_the_workspace(self, agent_id: str) -> bool:
        """Whether an agent sees the workspace when it is asked without a task (S2)."""
        agent = next((each for each in self._run.flow.agents if each.id == agent_id), None)
        return agent is not None and agent.cwd_mode is CwdMode.WORKSPACE

    def _terms(self, worker: str) -> Terms:
        place = self._place(worker)
        return Terms(
            Verdicts(self._run, self._interaction.review, Place(place.interaction_id)),
            self._examiner,
            place,
            self._orchestrator,
            self._interaction.land,
            self._interaction.scope,
        )

    def _place(self, to: str, by: str = "") -> Place:
        """The edge along which somebody is spoken to, if the flow draws one (D22)."""
        each = self._interaction
        into = [edge for edge in each.edges if edge.target == to]
        streamed = (into[0].sync if into else each.sync) is Sync.STREAMING
        agents = {agent.id for agent in self._run.flow.agents}
        sources = dict.fromkeys(edge.source for edge in into if edge.source in agents)
        listeners = tuple(sources) if streamed else ()
        for edge in into:
            if by in ("", edge.source):
                logged = edge.observability.logs
                return Place(each.id, edge.id, edge.source, logged, streamed, listeners)
        logged = each.observability.logs
        return Place(each.id, "", by, logged, streamed, listeners)


def _settled(outcome: TurnOutcome) -> Settled:
    report = outcome.report
    if not outcome.ok:
        fate = Fate.TIMED_OUT if report.timed_out else Fate.FAILED
        failure = outcome.failure or FailureClass.UNKNOWN
        return Settled(report.text, fate, outcome.reason, failure=failure)
    return Settled(report.text, value=report.value, reason=report.breach)


def _orchestrator(interaction: Interaction) -> str:
    managers = interaction.roles.get("manager", ())
    return managers[0] if managers else "orchestrator"
