"""What happened in a run, as one value: the JSON report, and what the page is drawn from.

The shape is stable: camelCase names, every field always there, times as RFC 3339 text in UTC, null
for what is not known. What agents said to their tools is left to the transcripts.

    version        "1"
    run            id, flow, request, status, reason, waitsFor, startedAt, endedAt, durationMs,
                   head, commit, files, team [{id, name, role}], with network and
                   variables where an agent has more of them than is usual
    interactions   [{id, pattern, label, roles, ended, done, reason}]
    tasks          [{id, worker, workerName, instruction, status, attempts, summary, reason, files,
                   proposals [{at, summary, changedFiles, tests {passed, failed},
                   evidence [{at, status, sentence, tests}],
                   verdicts [{at, by, byName, decision, reason}],
                   landed {at, files, commit}, undone {at, files, commit}}]}]
    questions      [{id, at, person, question, answer, answeredAt}]
    usage          {total, agents}, each {id, name, turns, inputTokens, outputTokens, cacheRead,
                   cacheWrite, cost, models}
    warnings       [{at, text}]
    notes          [{at, text}]
    timeline       [{seq, at, event, actor, name, text}]
    end            {reason, done, result}, or null while the run goes on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from agentcanvas.clock import rfc3339
from agentcanvas.proposals.model import TestsRun
from agentcanvas.protocol.records import Usage
from agentcanvas.runs import events as e
from agentcanvas.runs.report_parts import (
    EndPart,
    EvidencePart,
    InteractionPart,
    Landing,
    Line,
    ProposalPart,
    QuestionPart,
    Report,
    RunPart,
    Said,
    Spent,
    TaskPart,
    UsagePart,
    VerdictPart,
)
from agentcanvas.runs.state import RunState, RunStatus, TaskState, TaskStatus, fold
from agentcanvas.sandbox.disk import in_words


def json_report(recorded: Sequence[e.Recorded]) -> bytes:
    """The report as JSON, laid out for people too; the same events give the same bytes."""
    return msgspec.json.format(msgspec.json.encode(report_of(recorded)), indent=2) + b"\n"


def report_of(recorded: Sequence[e.Recorded]) -> Report:
    """Everything a report tells, from the events alone."""
    state = fold(recorded)
    told = [(rfc3339(entry.ts), entry.event) for entry in recorded]
    by_task: dict[str, list[Told]] = {}
    for at, event in told:
        by_task.setdefault(_task_of(event), []).append((at, event))
    return Report(
        version="1",
        run=_run(recorded, state),
        interactions=_interactions(recorded),
        tasks=tuple(_task(task, by_task.get(id_, ()), state) for id_, task in state.tasks.items()),
        questions=_questions(told),
        usage=_usage(recorded, state),
        warnings=tuple(
            Said(at=at, text=event.payload.sentence)
            for at, event in told
            if isinstance(event, e.WarningGiven)
        ),
        notes=tuple(
            Said(at=at, text=event.payload.entry)
            for at, event in told
            if isinstance(event, e.Noted)
        ),
        timeline=tuple(_line(entry, state) for entry in recorded),
        end=_end(state),
    )


Told = tuple[str, e.RunEvent]
"""An event and its moment in words."""


def _run(recorded: Sequence[e.Recorded], state: RunState) -> RunPart:
    ends = [entry.ts for entry in recorded if isinstance(entry.event, e.RunEnded)]
    times = [entry.ts for entry in recorded] or [0]
    # What comes after the end, such as an undo, is no part of how long it took.
    last = ends[-1] if state.status.is_over else times[-1]
    applied = [task for task in state.tasks.values() if task.status is TaskStatus.APPLIED]
    starts = [entry.event.payload for entry in recorded if isinstance(entry.event, e.RunStarted)]
    return RunPart(
        id=state.run_id,
        flow=state.flow,
        request=state.request,
        status=state.status,
        reason=state.reason,
        waits_for=state.waits_for,
        started_at=rfc3339(times[0]) if recorded else None,
        ended_at=rfc3339(last) if state.status.is_over else None,
        duration_ms=max(0, last - times[0]),
        head=state.head,
        commit=state.commit,
        files=tuple(dict.fromkeys(file for task in applied for file in task.files)),
        team=starts[0].team if starts else (),
    )


def _end(state: RunState) -> EndPart | None:
    if not state.status.is_over:
        return None
    done = state.status is RunStatus.DONE
    return EndPart(reason=state.reason, done=done, result=state.result)


def _interactions(recorded: Sequence[e.Recorded]) -> tuple[InteractionPart, ...]:
    events = [entry.event for entry in recorded]
    # A resumed interaction begins again; it is still the same one.
    began = {
        event.interaction_id or "": event.payload
        for event in events
        if isinstance(event, e.InteractionStarted)
    }
    over = {
        event.interaction_id or "": event.payload
        for event in events
        if isinstance(event, e.InteractionEnded)
    }
    return tuple(
        InteractionPart(
            id=id_,
            pattern=said.pattern_id,
            label=said.label,
            roles=said.roles,
            ended=id_ in over,
            done=id_ in over and over[id_].done,
            reason=over[id_].reason if id_ in over else "",
        )
        for id_, said in began.items()
    )


def _task_of(event: e.RunEvent) -> str:
    return str(getattr(getattr(event, "payload", None), "task_id", ""))


def _task(task: TaskState, told: Iterable[Told], state: RunState) -> TaskPart:
    versions: list[list[Told]] = []
    for at, event in told:
        if isinstance(event, e.ProposalSubmitted):
            versions.append([])
        elif not isinstance(event, _ABOUT_A_PROPOSAL):
            continue
        elif not versions:  # what is said about a change nobody handed in is told as well
            versions.append([])
        versions[-1].append((at, event))
    return TaskPart(
        id=task.task_id,
        worker=task.worker,
        worker_name=state.name_of(task.worker),
        instruction=task.instruction,
        status=task.status,
        attempts=task.attempts,
        summary=task.summary,
        reason=task.reason,
        files=task.files,
        proposals=tuple(_proposal(version, state) for version in versions),
    )


_ABOUT_A_PROPOSAL = (e.ChecksRun, e.ProposalReviewed, e.ProposalLanded, e.ProposalUndone)


def _proposal(told: Sequence[Told], state: RunState) -> ProposalPart:
    made = e.Submission("", 0, "")
    evidence: list[EvidencePart] = []
    verdicts: list[VerdictPart] = []
    landed = undone = None
    for at, event in told:
        match event:
            case e.ProposalSubmitted(payload=said):
                made = said
            case e.ChecksRun(payload=p):
                found = EvidencePart(at=at, status=p.status, sentence=p.sentence, tests=p.tests)
                evidence.append(found)
            case e.ProposalReviewed(actor=by, payload=p):
                name, why = state.name_of(by), p.reason or ""
                verdict = VerdictPart(at=at, by=by, by_name=name, decision=p.decision, reason=why)
                verdicts.append(verdict)
            case e.ProposalLanded(payload=p):
                landed = Landing(at=at, files=p.files, commit=p.commit)
            case e.ProposalUndone(payload=p):
                undone = Landing(at=at, files=p.files)
    return ProposalPart(
        at=told[0][0],
        summary=made.summary,
        changed_files=made.changed_files,
        tests=made.tests,
        evidence=tuple(evidence),
        verdicts=tuple(verdicts),
        landed=landed,
        undone=undone,
    )


def _questions(told: Sequence[Told]) -> tuple[QuestionPart, ...]:
    asked: dict[str, QuestionPart] = {}
    for at, event in told:
        match event:
            case e.AskedPerson(payload=p) if p.ask_id not in asked:
                asked[p.ask_id] = QuestionPart(
                    id=p.ask_id,
                    at=at,
                    person=p.person,
                    question=p.question,
                    answer=None,
                    answered_at=None,
                )
            case e.AnsweredByPerson(payload=p) if p.ask_id in asked:
                asked[p.ask_id] = msgspec.structs.replace(
                    asked[p.ask_id], answer=p.answer, answered_at=at
                )
    return tuple(asked.values())


def _usage(recorded: Sequence[e.Recorded], state: RunState) -> UsagePart:
    by_agent: dict[str, list[e.RunEvent]] = {}
    for entry in recorded:
        if entry.event.usage is not None or isinstance(entry.event, e.TurnEnded):
            by_agent.setdefault(entry.event.actor, []).append(entry.event)
    agents = tuple(_spent(id_, state.name_of(id_), events) for id_, events in by_agent.items())
    everything = [event for events in by_agent.values() for event in events]
    return UsagePart(total=_spent("", "in all", everything), agents=agents)


def _spent(id_: str, name: str, events: Sequence[e.RunEvent]) -> Spent:
    used = [event.usage or Usage() for event in events]
    return Spent(
        id=id_,
        name=name,
        turns=sum(isinstance(event, e.TurnEnded) for event in events),
        input_tokens=sum(each.input_tokens or 0 for each in used),
        output_tokens=sum(each.output_tokens or 0 for each in used),
        cache_read=sum(each.cache_read or 0 for each in used),
        cache_write=sum(each.cache_write or 0 for each in used),
        cost=round(sum(each.cost or 0.0 for each in used), 6),
        models=tuple(dict.fromkeys(each.model for each in used if each.model)),
        cost_is_estimate=any(each.estimated is True for each in used),
    )


def _line(entry: e.Recorded, state: RunState) -> Line:
    event = entry.event
    return Line(
        seq=entry.seq,
        at=rfc3339(entry.ts),
        event=e.kind_of(event),
        actor=event.actor,
        name=state.name_of(event.actor),
        text=_text(event, state),
    )


def _text(event: e.RunEvent, state: RunState) -> str:
    """What an event says in one line; prompts and answers are left to the transcripts."""
    say = _TEXTS.get(type(event))
    return say(getattr(event, "payload", None), state) if say else ""


_TEXTS: Final[dict[type, Callable[[Any, RunState], str]]] = {
    e.RunStarted: lambda start, _: start.request,
    e.InteractionStarted: lambda configured, _: configured.label,
    e.InteractionEnded: lambda end, _: end.reason,
    e.TaskDispatched: lambda task, state: f"to {state.name_of(task.worker_id)}: {task.instruction}",
    e.TurnStarted: lambda turn, state: f"asked {state.name_of(turn.to)}{_again(turn.attempt)}",
    e.TurnProgressed: lambda progress, _: progress.step,
    e.TurnEnded: lambda turn, _: "answered" if turn.ok else f"failed: {turn.reason}",
    e.ProposalSubmitted: lambda made, _: (
        f"{_files(made.changed_files)}{_tests(made.tests)}: {made.summary}"
    ),
    e.ChecksRun: lambda found, _: f"{found.status}: {found.sentence}",
    e.ProposalReviewed: lambda review, _: ": ".join(filter(None, (review.decision, review.reason))),
    e.TaskFailed: lambda failure, _: failure.reason,
    e.TaskAnswered: lambda answered, _: answered.summary,
    e.ProposalDiscarded: lambda discarded, _: discarded.proposal_id,
    e.CleaningUp: lambda going, _: f"{in_words(going.frees)}: {', '.join(going.runs)}",
    e.SetupDone: lambda setup, _: "; ".join((setup.command, *setup.notes)),
    e.PartChosen: lambda part, _: ", ".join(choice.path for choice in part.chosen),
    e.ProposalRechecked: lambda now, _: "; ".join(
        filter(None, (now.fitness, now.reason, *now.meets))
    ),
    e.ApplyStarted: lambda applying, _: applying.transaction,
    e.ProposalLanded: lambda landed, _: ", ".join(landed.files),
    e.ProposalUndone: lambda undone, _: ", ".join(undone.files),
    e.Announced: lambda announced, _: f"{announced.status}: {announced.summary}",
    e.AskedPerson: lambda ask, _: f"{ask.person}: {ask.question}",
    e.AnsweredByPerson: lambda answer, _: f"{answer.person}: {answer.answer}",
    e.GenerationTaken: lambda base, _: f"g{base.generation}: {base.reason}",
    e.Noted: lambda note, _: note.entry,
    e.MemberAsked: lambda asked, state: f"{state.name_of(asked.to)}: {asked.text}",
    e.MemberAnswered: lambda reply, state: f"{state.name_of(reply.to)}: {reply.text}",
    e.TeamPosted: lambda posted, _: f"{posted.topic}: {posted.text}",
    e.MessagePassed: lambda said, _: f"to {said.to}: {said.text}",
    e.Drew: lambda draw, _: f"{draw.choice} of {', '.join(draw.among)}: {draw.why}",
    e.WorkerTold: lambda told, _: f"{told.agent}: {told.text}",
    e.LimitReached: lambda limit, _: f"{limit.agent}: {limit.reason}",
    e.WarningGiven: lambda warned, _: warned.sentence,
    e.RunParked: lambda waiting, _: f"{waiting.person}: {waiting.question}",
    e.RunEnded: lambda end, _: end.reason,
}


def _again(attempt: int) -> str:
    return "" if attempt == 1 else f", attempt {attempt}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _tests(tests: TestsRun | None) -> str:
    return "" if tests is None else f", tests {tests.passed}/{tests.total}"
