"""One run under way: its team is brought in, its interactions are played, its end is said.

Everything here may be cut off at any moment and begun again: what was settled is recalled (D4).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec

from agentcanvas.flows.settle import Settled as Interaction
from agentcanvas.flows.settle import settle
from agentcanvas.hub.audit import Trail
from agentcanvas.hub.broker import Record
from agentcanvas.hub.client import Connection
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.person_inbox import mailbox_of
from agentcanvas.hub.transports.memory import connect
from agentcanvas.memory.notebook import Notebook
from agentcanvas.pattern import Outcome
from agentcanvas.proposals.apply import STATE_FOLDER
from agentcanvas.runs import events as e
from agentcanvas.runs import history, transcripts
from agentcanvas.runs.allowance import behind_models, meter_of, time_limits
from agentcanvas.runs.aside import Aside
from agentcanvas.runs.attendance import Attendance
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.crew import CrewCall
from agentcanvas.runs.desk import RunDesk
from agentcanvas.runs.equipment import Equipment, sound_flow
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.runs.noting import Noting
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.people import People, engine_of
from agentcanvas.runs.preparing import prepare
from agentcanvas.runs.retaining import days_kept, forget_old_logs
from agentcanvas.runs.rules import rules_of
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import RunStage, Scope
from agentcanvas.runs.staging import Staging
from agentcanvas.runs.stall import Standing
from agentcanvas.runs.turns import Turns
from agentcanvas.runs.watching import Watch
from agentcanvas.sandbox.pick import Picked
from agentcanvas.store import Store


class Execution:
    """One life of one run."""

    def __init__(
        self,
        equipment: Equipment,
        run_id: str,
        stream: str,
        order: RunOrder,
        picked: Picked,
        *,
        lookout: Lookout,
    ) -> None:
        self._with = equipment
        self._lookout = lookout
        self._order = order
        self._picked = picked
        self._flow = sound_flow(order, equipment.repertoire)
        self._interactions = settle(self._flow, equipment.repertoire.infos)
        self._staging = Staging(
            self._flow, self._interactions, equipment.repertoire, plan_only=order.plan_only
        )
        self._clock = equipment.clock
        self._attendance = Attendance(equipment.clock)
        self._outcomes: dict[str, Outcome] = {}
        self._scribes: list[transcripts.Scribe] = []
        self._turns: Turns | None = None
        self._told_early: list[tuple[int, e.Told]] = []
        self.logbook = Logbook(equipment.broker, run_id, stream, equipment.clock)
        self._watch = Watch(self._attendance, self.logbook, equipment.clock)

    @property
    def is_parked(self) -> bool:
        """Whether nothing can go on before a person answers."""
        return self._attendance.is_parked

    async def stop_work(
        self, reason: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """End some of what is under way; the run goes on with what came of it."""
        if self._turns is None:
            return ()
        return await self._turns.end_work(reason, agent=agent, task_id=task_id)

    def standing(self) -> Standing:
        """For whom or what the run waits now (D25)."""
        return self._watch.standing(self._turns.under_way if self._turns else ())

    def note_told(self, told: e.Told, number: int) -> None:
        """What a person said, which is the event of this number, reaches the agent's next turn."""
        if self._turns is not None:
            self._turns.note_told(told)
        else:
            self._told_early.append((number, told))

    async def run(self) -> e.End:
        """Work until the run has come to its end, or a limit of it."""
        before = await history.recorded(self._with.store, self.logbook.stream)
        async with self._opened(before) as context:
            await self._greet(context, before)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch.parking, context.meter)
                tasks.start_soon(self._watch.limits, context.meter)
                tasks.start_soon(self._watch.stalls, self.standing)
                ended = await self._play(context)
                tasks.cancel_scope.cancel()
            await context.journal.flush()
            await context.logbook.flush()
            return ended

    # -- bringing everybody in -------------------------------------------------------------------

    @asynccontextmanager
    async def _opened(self, before: list[e.Recorded]) -> AsyncIterator[RunContext]:
        hub = self._with.hub
        engine = Principal(engine_of(self.logbook.run_id), PrincipalKind.ENGINE)
        await self._open_session()
        journal = await self._journal()
        async with connect(hub, engine) as connection:
            context = self._context(connection, journal, before)
            self._turns = context.turns
            for number, told in self._told_early:
                if not before or number > before[-1].seq:
                    context.turns.note_told(told)
            await context.turns.take_back()
            aside = Aside(
                self._flow,
                self._edges,
                self.logbook,
                meter=context.meter,
                noting=context.noting,
                before=before,
            )
            try:
                async with self._with.crew(await self._call(context.people, aside)):
                    yield context
            finally:
                hub.rates.forget(self.logbook.run_id)
                for scribe in self._scribes:
                    scribe.flush()

    async def _journal(self) -> Journal:
        """What was settled in earlier lives; it writes where the logbook does, in one order."""
        broker = self._with.broker
        return await Journal.open(
            self._with.store,
            self.logbook.stream,
            lambda work: broker.submit(lambda unit: work(unit.transaction)),
            lambda row: broker.record(Record(events=(row,))),
        )

    def _context(
        self, connection: Connection, journal: Journal, before: list[e.Recorded]
    ) -> RunContext:
        equipment, flow, logbook, clock = self._with, self._flow, self.logbook, self._clock
        meter = meter_of(flow, before, clock)
        return RunContext(
            order=self._order,
            flow=flow,
            clock=clock,
            logbook=logbook,
            journal=journal,
            meter=meter,
            turns=Turns(
                equipment.hub,
                equipment.broker,
                connection,
                logbook,
                journal,
                clock=clock,
                meter=meter,
                limits_s=time_limits(flow),
                estimated=behind_models(flow),
                images=self._order.images,
                before=before,
            ),
            people=People(
                equipment.hub,
                connection,
                logbook,
                attendance=self._attendance,
                clock=clock,
                before=before,
            ),
            ground=Ground(equipment.workspace, logbook, self._lookout, bring=flow.bring),
            lookout=self._lookout,
            noting=Noting(Notebook(equipment.workspace / STATE_FOLDER), logbook.run_id, clock),
            attendance=self._attendance,
            confinement=self._picked.confinement,
            rules={},
            recorded=lambda: history.recorded(equipment.store, logbook.stream),
            audited=lambda: _audited(equipment.store),
        )

    async def _open_session(self) -> None:
        """Who may address whom is the flow's to say, and the hub's to enforce (D23)."""
        await self._with.hub.sessions.open(
            self.logbook.run_id,
            members=[*(agent.id for agent in self._flow.agents), mailbox_of(self._order.person)],
            edges=self._edges or None,
            owner=engine_of(self.logbook.run_id),
        )
        self._with.hub.rates.install(
            self.logbook.run_id,
            {
                (edge.source, edge.target): edge.rate_limit_per_min
                for each in self._interactions
                for edge in each.edges
                if edge.rate_limit_per_min is not None
            },
        )

    @property
    def _edges(self) -> set[tuple[str, str]]:
        return {(edge.source, edge.target) for each in self._interactions for edge in each.edges}

    async def _call(self, people: People, aside: Aside) -> CrewCall:
        stream = self.logbook.stream
        spoken = {}
        for agent in self._flow.agents:
            said = transcripts.stream_of(stream, agent.id)
            count = 0
            async for row in history.rows(self._with.store, said):
                count = transcripts.read(row).seq + 1
            spoken[agent.id] = count
        return CrewCall(
            run_id=self.logbook.run_id,
            flow=self._flow,
            workspace=self._with.workspace,
            confinement=self._picked.confinement,
            ask_person=people.ask,
            keep=self._scribe,
            spoken=spoken,
            aside=aside,
            record=self._order.record,
            replay=self._order.replay,
        )

    def _scribe(self, agent: str) -> transcripts.Scribe:
        scribe = transcripts.Scribe(
            self._with.broker, transcripts.stream_of(self.logbook.stream, agent)
        )
        self._scribes.append(scribe)
        return scribe

    async def _greet(self, context: RunContext, before: list[e.Recorded]) -> None:
        """Say once what the user should know, and freeze the workspace as it is."""
        is_told = any(isinstance(entry.event, e.WarningGiven) for entry in before)
        warnings = [*self._picked.warnings, *self._with.advice(self._flow)]
        if warnings and not is_told:
            await context.logbook.write(*map(_warning, warnings))
        await forget_old_logs(
            self._with.store,
            self._with.workspace / ".agentcanvas",
            self._order.flow,
            days_kept(self._interactions),
            self._clock.now_ms(),
        )
        await context.ground.recover()
        rules, missing = rules_of(self._flow, await context.ground.current())
        context.rules.update(rules)
        if missing and not is_told:
            await context.logbook.write(*map(_warning, missing))
        if self._flow.setup is not None and not self._order.plan_only:
            await prepare(context, self._flow.setup)

    # -- playing ---------------------------------------------------------------------------------

    async def _play(self, context: RunContext) -> e.End:
        """Every interaction as soon as those before it are done; the first that fails ends all."""
        played = [each for each in self._interactions if not each.is_part]
        done = {each.id: anyio.Event() for each in played}
        failed: list[Outcome] = []
        slots = Slots(self._order.max_parallel)

        async def one(each: Interaction) -> None:
            for earlier in each.after:
                await done[earlier].wait()
            if not failed:
                outcome = await self._interact(context, each, slots)
                self._outcomes[each.id] = outcome
                if not outcome.done:
                    failed.append(outcome)
            done[each.id].set()

        async with anyio.create_task_group() as tasks:
            for each in played:
                tasks.start_soon(one, each)
        last = failed[0] if failed else self._outcomes[played[-1].id]
        return e.End(last.reason, last.done, result=last.result)

    async def _interact(self, context: RunContext, each: Interaction, slots: Slots) -> Outcome:
        scope = Scope(
            RunDesk(context, each),
            context.journal,
            context.meter,
            slots,
            self._clock,
            self._staging.parts(lambda other: RunDesk(context, other)),
        )
        stage = RunStage(scope, self._staging.scene(each))
        await context.once(f"{each.id}/started", each.pattern_id, bool, lambda: _started(each))
        outcome = await stage.perform(
            self._staging.pattern(each),
            each.roles,
            self._request(each),
            self._staging.options(each),
        )

        async def ended() -> tuple[bool, Sequence[e.RunEvent]]:
            end = e.End(outcome.reason, outcome.done, result=outcome.result)
            return True, [
                e.InteractionEnded(
                    actor="engine",
                    provenance=e.Provenance.SYSTEM,
                    interaction_id=each.id,
                    edge_id=_only_edge(each),
                    payload=end,
                )
            ]

        await context.once(f"{each.id}/ended", outcome.reason, bool, ended)
        return outcome

    def _request(self, each: Interaction) -> str:
        """What is asked for, and what came of the interactions before."""
        template = each.params.get("task_template")
        request = self._order.request or (template if isinstance(template, str) else "")
        earlier = [
            f"{name}: {self._outcomes[name].result}"
            for name in each.after
            if name in self._outcomes and self._outcomes[name].result
        ]
        return "\n\n".join([request, *(["So far:", *earlier] if earlier else [])])


async def _audited(store: Store) -> str:
    found = await Trail(store).verify()
    return "" if found is None else f"entry {found.number}: {found.reason}"


async def _started(each: Interaction) -> tuple[bool, Sequence[e.RunEvent]]:
    configured = e.ConfiguredInteraction(
        each.pattern_id,
        each.label,
        each.roles,
        msgspec.Raw(msgspec.json.encode(each.params)),
        each.observability.traces,
    )
    return True, [
        e.InteractionStarted(
            actor="engine",
            provenance=e.Provenance.SYSTEM,
            interaction_id=each.id,
            edge_id=_only_edge(each),
            payload=configured,
        )
    ]


def _only_edge(each: Interaction) -> str | None:
    """The edge that an interaction as a whole is about; with several there is no such edge."""
    return each.edges[0].id if len(each.edges) == 1 else None


def _warning(sentence: str) -> e.WarningGiven:
    return e.WarningGiven(
        actor="engine", provenance=e.Provenance.SYSTEM, payload=e.Warned(sentence)
    )
