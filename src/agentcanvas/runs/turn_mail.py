"""How a turn is said in messages, and what the message that ends one says of it.

Values only; sending and hearing is left to ``turns``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id, step_id
from agentcanvas.protocol.kinds import (
    Broadcast,
    Error,
    Kind,
    TaskAssign,
    TaskCancel,
    TaskConstraints,
    TaskContext,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.records import BlobRef, FailureClass
from agentcanvas.protocol.turns import Access, Order, Report, report_in
from agentcanvas.protocol.values import freeze
from agentcanvas.runs.people import engine_of
from agentcanvas.runs.turn import Attempt, Place, TurnOutcome, TurnSpec

_PATIENCE_S = 60.0
"""How long the host may take beyond its own limit to say that the limit was reached."""


class TurnMail:
    """Writes the messages of one run's engine about its turns."""

    def __init__(
        self,
        run_id: str,
        clock: Clock,
        limits_s: Mapping[str, float | None],
        images: tuple[BlobRef, ...],
    ) -> None:
        self._run_id = run_id
        self._engine = AgentRef(engine_of(run_id))
        self._clock = clock
        self._limits_s = limits_s
        self._images = images

    def timeout_s(self, spec: TurnSpec) -> float | None:
        """How long to wait for the answer: what the turn may take, and for its host to say so."""
        usual = self._limits_s.get(spec.to)
        return None if usual is None else usual * spec.patience + _PATIENCE_S

    def task(self, spec: TurnSpec, attempt: Attempt) -> Envelope:
        """What has a turn done."""
        timeout_s = self.timeout_s(spec)
        return Envelope(
            id=attempt.message_id,
            kind=Kind.TASK_ASSIGN,
            time=self._clock.now(),
            sender=self._engine,
            recipient=AgentRef(spec.to),
            session=self._run_id,
            correlation_id=step_id(self._run_id, spec.task_id or spec.key, 0),
            timeout_ms=UNSET if timeout_s is None else round(timeout_s * 1000),
            body=TaskAssign(
                task_id=_wire_id(spec, attempt.number),
                input=freeze(self._order(spec, attempt)),
                constraints=_constraints(spec),
                acceptance_criteria=spec.acceptance_criteria or UNSET,
                context=_context(spec),
            ),
        )

    def _order(self, spec: TurnSpec, attempt: Attempt) -> Order:
        return Order(
            message=spec.message,
            turn_id=spec.key,
            run_id=self._run_id,
            task_id=spec.task_id,
            role=spec.role,
            number=spec.number,
            revision=spec.revision,
            attempt=attempt.number,
            patience=spec.patience,
            access=spec.access,
            own_words=spec.own_words,
            streamed=spec.place.streamed,
            generation=UNSET if attempt.generation is None else attempt.generation,
            on=spec.on,
            # What was cut off may have left its session in pieces: a new one then (D18).
            session_id=spec.session if attempt.number == 1 else "",
            answer_schema=UNSET if spec.schema is None else freeze(spec.schema),
            rules=spec.rules,
            images=self._images if spec.access is Access.WORK or spec.number == 1 else (),
        )

    def telling(self, spec: TurnSpec) -> Envelope:
        """What needs no answer."""
        return Envelope(
            id=step_id(self._run_id, spec.key, 1),
            kind=Kind.BROADCAST,
            time=self._clock.now(),
            sender=self._engine,
            recipient=AgentRef(spec.to),
            session=self._run_id,
            correlation_id=step_id(self._run_id, spec.task_id or spec.key, 0),
            body=Broadcast(event="told", message=spec.message),
        )

    def cancel(self, attempt: Attempt, worker: str, reason: str) -> Envelope:
        """What ends a turn that is under way."""
        return Envelope(
            id=new_id(),
            kind=Kind.TASK_CANCEL,
            time=self._clock.now(),
            sender=self._engine,
            recipient=AgentRef(worker),
            session=self._run_id,
            body=TaskCancel(target_id=attempt.message_id, reason=reason),
            priority=9,
        )


def speaker_of(place: Place) -> OnBehalfOf | UnsetType:
    """For whom the engine speaks, and along which edge (D22)."""
    return OnBehalfOf(place.speaker, place.edge_id or UNSET) if place.speaker else UNSET


def outcome_of(envelope: Envelope, elapsed_ms: int) -> TurnOutcome:
    """What the last word on a turn says of it."""
    body = envelope.body
    if isinstance(body, TaskResult):
        report = report_in(body)
        well = envelope.kind is Kind.TASK_COMPLETE
        failure = report.failure if isinstance(report.failure, FailureClass) else None
        return TurnOutcome(
            report=report,
            ok=well,
            reason="" if well else body.error_message or body.summary or "it failed",
            failure=None if well else failure or FailureClass.UNKNOWN,
            duration_ms=elapsed_ms,
        )
    if isinstance(body, TaskReject):
        said = f": {body.message}" if body.message else ""
        return _not_done(f"{envelope.sender.id} does not take it ({body.reason}){said}", elapsed_ms)
    assert isinstance(body, Error)
    return _not_done(body.error_message, elapsed_ms)


def _not_done(reason: str, elapsed_ms: int) -> TurnOutcome:
    return TurnOutcome(
        report=Report(),
        ok=False,
        reason=reason,
        failure=FailureClass.UNKNOWN,
        duration_ms=elapsed_ms,
    )


def _wire_id(spec: TurnSpec, attempt: int) -> str:
    """Task ids are unique on the wire: revisions, retries and attempts have their own (C3)."""
    name = spec.task_id or spec.key
    name += f".r{spec.revision}" if spec.revision else ""
    name += ".again" if spec.again else ""
    name += f".c{spec.continuation}" if spec.continuation else ""
    return name + (f".a{attempt}" if attempt > 1 else "")


def _constraints(spec: TurnSpec) -> TaskConstraints | UnsetType:
    if spec.access is not Access.WORK:
        return UNSET
    return TaskConstraints(scope=spec.scope or ("**",), testing_required=spec.testing_required)


def _context(spec: TurnSpec) -> TaskContext | UnsetType:
    if not spec.previous_attempts:
        return UNSET
    return TaskContext(specs=(), reference_files=(), previous_attempts=spec.previous_attempts)
