"""An office without an engine: it plays canned runs, and remembers what it was asked to do.

``python -m tests.cli.fake_office SCENARIO ARGS…`` is the command line with such an office behind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec import UNSET, Raw, structs

from agentcanvas.cli import main, offices
from agentcanvas.cli.live.view import view_of
from agentcanvas.errors import NotFound, ValidationError
from agentcanvas.proposals.checks import Check, CheckResult, Compared, Evidence
from agentcanvas.proposals.model import Decision, ProposalReview, ProposalState, TestsRun
from agentcanvas.proposals.radar import Outlook
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.records import (
    ResultEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TranscriptEvent,
    Usage,
)
from agentcanvas.runs import events as e
from agentcanvas.runs.office import (
    Office,
    RunOrder,
    RunSummary,
    TranscriptEntry,
    UndoneTask,
    Window,
)
from agentcanvas.runs.shown import ShownProposal, Side, shown_files
from agentcanvas.runs.state import RunState, TaskStatus, fold

RUN = "run_20260301_101500"
START_MS = 1_772_360_100_000
SYSTEM = e.Provenance.SYSTEM
PATCH = b"""\
diff --git a/src/parser.py b/src/parser.py
index 1111111..2222222 100644
--- a/src/parser.py
+++ b/src/parser.py
@@ -1,2 +1,2 @@
 def parse(text):
-    return text.split(",")
+    return [part.strip() for part in text.split(",")]
"""

Script = Callable[["Played", PersonAnswer], Sequence[e.RunEvent]]
"""What happens when something is answered."""


class Played:
    """One run: its events so far, and what is asked in it."""

    def __init__(self, run_id: str = RUN) -> None:
        self.run_id = run_id
        self.log: list[e.Recorded] = []
        self.asks: list[PersonAsk] = []
        self.said: list[TranscriptEntry] = []
        self.changed = anyio.Event()

    def tell(self, *events: e.RunEvent) -> Played:
        for event in events:
            number = len(self.log)
            self.log.append(e.Recorded(number + 1, START_MS + 1000 * number, self.run_id, event))
        self.changed.set()
        self.changed = anyio.Event()
        return self

    def ask(self, ask: PersonAsk) -> Played:
        """Ask a person; with nothing else to do the run is parked."""
        self.asks.append(ask)
        asked = e.PersonAsked(
            ask_id=ask.ask_id,
            person=ask.person,
            question=ask.text.split("\n")[0],
            scope=ask.scope,
            task_id=ask.scope.partition(":")[2],
        )
        return self.tell(e.AskedPerson(actor=ask.agent_id, provenance=SYSTEM, payload=asked))

    def park(self) -> Played:
        waiting = e.Waiting("you", self.asks[0].text.split("\n")[0])
        return self.tell(e.RunParked(actor="engine", provenance=SYSTEM, payload=waiting))

    @property
    def rests(self) -> bool:
        """Whether nothing more comes by itself."""
        for entry in reversed(self.log):
            if isinstance(entry.event, e.RunParked | e.RunEnded | e.RunInterrupted):
                return True
            if isinstance(entry.event, e.RunResumed | e.RunStarted):
                return False
        return False

    @property
    def summary(self) -> RunSummary:
        state = fold(self.log)
        view = view_of(self.log)
        applied = [task for task in state.tasks.values() if task.status is TaskStatus.APPLIED]
        return RunSummary(
            run_id=self.run_id,
            flow=state.flow,
            request=state.request,
            status=state.status,
            started_ms=START_MS,
            reason=state.reason,
            waits_for=state.waits_for,
            applied=len(applied),
            tasks=len(state.tasks),
            tokens=view.tokens,
            cost=view.cost,
        )


class FakeOffice:
    """Plays runs; ``begin`` writes a run that is started, ``go_on`` what follows an answer.

    ``lag`` is how many looks it takes before an answer is taken up, as in an engine that is busy.
    """

    def __init__(
        self,
        *runs: Played,
        begin: Callable[[Played], object] | None = None,
        go_on: Script | None = None,
        lag: int = 0,
        stop_hangs: bool = False,
        close_hangs: bool = False,
        refuses: dict[str, str] | None = None,
    ) -> None:
        self.played = {run.run_id: run for run in runs}
        self.orders: list[RunOrder] = []
        self.answers: list[tuple[str, PersonAnswer]] = []
        self.calls: list[str] = []
        self.served = False
        self.outlook: Outlook | None = None
        self.evidence: Evidence | None = None
        self._begin = begin
        self._go_on = go_on
        self._lag = lag
        self._late: list[tuple[int, Callable[[], object]]] = []
        self._stop_hangs = stop_hangs
        self._close_hangs = close_hangs
        self._refuses = refuses or {}

    async def close(self) -> None:
        if self._close_hangs:
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()

    # -- records ---------------------------------------------------------------------------------

    async def runs(self) -> tuple[RunSummary, ...]:
        return tuple(run.summary for run in reversed(self.played.values()))

    async def state(self, run_id: str) -> RunState:
        return fold(self._run(run_id).log)

    async def window(self, run_id: str, *, last: int = 500, before: int | None = None) -> Window:
        run = self._run(run_id)
        shown = [entry for entry in run.log if before is None or entry.seq < before][-last:]
        return Window(fold(run.log), run.summary, (), tuple(shown), len(shown) < len(run.log))

    async def order(self, run_id: str) -> RunOrder:
        state = await self.state(run_id)
        return RunOrder(flow=state.flow, flow_text="", request=state.request)

    async def events(
        self, run_id: str, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[e.Recorded]:
        run = self._run(run_id)
        self._look()
        while True:
            for entry in run.log[after:]:
                after = entry.seq
                yield entry
                if follow and isinstance(entry.event, e.RunParked | e.RunEnded):
                    return
            if not follow or run.rests:
                return
            if after == len(run.log):
                await run.changed.wait()

    async def transcript(
        self, run_id: str, agent: str | None = None, *, after: int = 0, follow: bool = False
    ) -> AsyncIterator[TranscriptEntry]:
        run = self._run(run_id)
        while True:
            for entry in run.said:
                if entry.seq > after and agent in (None, entry.agent):
                    after = entry.seq
                    yield entry
            if not follow or run.rests:
                return
            await run.changed.wait()

    async def proposal(
        self, run_id: str, task_id: str, attempt: int | None = None
    ) -> ShownProposal:
        patch = await self.patch(run_id, task_id, attempt)
        asks = (ask.ask_id for ask in self._run(run_id).asks if ask.scope == f"review:{task_id}")
        return ShownProposal(
            run_id=run_id,
            task_id=task_id,
            proposal_id=f"{task_id}.r0",
            attempt=1,
            worker="coder",
            status=ProposalState.WAITING,
            generation=0,
            created_at="2026-02-19T10:00:00Z",
            files=shown_files(patch),
            ask_id=next(asks, None),
            outlook=self.outlook,
            evidence=self.evidence,
        )

    async def patch(self, run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        if task_id not in fold(self._run(run_id).log).tasks:
            raise NotFound(f"{task_id} has proposed nothing.")
        if attempt is not None and attempt > 1:
            raise NotFound(f"{task_id} has no attempt {attempt}; it has 1 to 1.")
        return PATCH

    async def file(
        self, run_id: str, task_id: str, path: str, side: Side, attempt: int | None = None
    ) -> bytes:
        del side
        await self.patch(run_id, task_id, attempt)
        raise NotFound(f"The proposal does not change {path}.")

    # -- control ---------------------------------------------------------------------------------

    async def start(self, order: RunOrder) -> str:
        self.orders.append(order)
        run = Played(f"{RUN}{len(self.played) or ''}")
        self.played[run.run_id] = run
        if self._begin is not None:
            self._begin(run)
        return run.run_id

    async def resume(self, run_id: str) -> None:
        self.calls.append(f"resume {run_id}")
        run = self._run(run_id)
        self._later(lambda: run.tell(resumed(), *ending(done=True)))

    async def retry(self, run_id: str) -> str:
        self.calls.append(f"retry {run_id}")
        old = self._run(run_id).summary
        return await self.start(RunOrder(flow=old.flow, flow_text="", request=old.request))

    async def stop(self, run_id: str, *, reason: str = "stopped by you") -> None:
        self.calls.append(f"stop {run_id}: {reason}")
        if self._stop_hangs:
            await anyio.sleep_forever()
        self._run(run_id).tell(*ending(done=False, reason=reason))

    async def stop_work(
        self, run_id: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        self.calls.append(f"stop_work {run_id} {agent} {task_id}")
        return ()

    async def tell(self, run_id: str, agent: str, text: str) -> None:
        self.calls.append(f"tell {run_id} {agent} {text}")

    async def undo(self, run_id: str, task_id: str | None = None) -> tuple[UndoneTask, ...]:
        self.calls.append(f"undo {run_id} {task_id or 'all'}")
        tasks = fold(self._run(run_id).log).tasks.values()
        return tuple(
            UndoneTask(task.task_id, problem=self._refuses[task.task_id])
            if task.task_id in self._refuses
            else UndoneTask(task.task_id, task.files)
            for task in reversed(tasks)
            if task.status is TaskStatus.APPLIED and task_id in (None, task.task_id)
        )

    # -- inbox -----------------------------------------------------------------------------------

    async def asks(self, run_id: str | None = None) -> tuple[PersonAsk, ...]:
        return tuple(
            ask for run in self.played.values() for ask in run.asks if run_id in (None, ask.run_id)
        )

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        for run in self.played.values():
            for ask in run.asks:
                if ask.ask_id == ask_id:
                    self.answers.append((ask_id, answer))
                    run.asks.remove(ask)
                    self._later(partial(self._take_up, run, ask_id, answer))
                    return
        raise ValidationError(f"Nothing waits for an answer under {ask_id}.")

    def _take_up(self, run: Played, ask_id: str, answer: PersonAnswer) -> None:
        said = e.PersonAnswered(ask_id=ask_id, person="you", answer=str(answer.content))
        was_parked = run.rests
        run.tell(
            e.AnsweredByPerson(actor="person:you", provenance=e.Provenance.USER_INPUT, payload=said)
        )
        if was_parked:
            run.tell(resumed())
        if self._go_on is not None:
            run.tell(*self._go_on(run, answer))
        if run.asks and not run.rests:
            run.park()

    # --------------------------------------------------------------------------------------------

    def _later(self, act: Callable[[], object]) -> None:
        if self._lag:
            self._late.append((self._lag, act))
        else:
            act()

    def _look(self) -> None:
        due = [act for left, act in self._late if left <= 1]
        self._late = [(left - 1, act) for left, act in self._late if left > 1]
        for act in due:
            act()

    def _run(self, run_id: str) -> Played:
        if run_id not in self.played:
            raise NotFound(f"There is no run {run_id}.")
        return self.played[run_id]


def opening(office: FakeOffice) -> Callable[..., AbstractAsyncContextManager[Office]]:
    """What stands in for ``open_office``."""

    @asynccontextmanager
    async def open_office(
        root: Path, *, serve: bool = False, resume: bool = False
    ) -> AsyncIterator[Office]:
        del root, resume
        office.served = serve
        yield office
        await office.close()

    return open_office


# Events -------------------------------------------------------------------------------------------


def started(request: str = "strip the blanks around each part") -> e.RunStarted:
    team = (e.Member("coder", "Coder", "worker"), e.Member("docs", "Writer", "worker"))
    start = e.Start("one-off", request, team, head="0123456789abcdef")
    return e.RunStarted(actor="you", provenance=e.Provenance.USER_INPUT, payload=start)


def dispatched(task: str = "task-1", to: str = "coder", what: str = "") -> e.TaskDispatched:
    what = what or "Strip the blanks around each part"
    payload = e.Dispatch(task, to, what)
    return e.TaskDispatched(actor="manager", provenance=SYSTEM, payload=payload)


def turn(task: str = "task-1", to: str = "coder") -> e.TurnStarted:
    payload = e.TurnBegun(f"turn-{task}", to, "m1", "…", task_id=task)
    return e.TurnStarted(actor="engine", provenance=SYSTEM, payload=payload)


def progress(step: str = "reading", task: str = "task-1") -> e.TurnProgressed:
    payload = e.Progress(f"turn-{task}", step, task_id=task)
    return e.TurnProgressed(actor="coder", provenance=SYSTEM, payload=payload)


def turn_done(task: str = "task-1", to: str = "coder") -> e.TurnEnded:
    usage = Usage(input_tokens=11_000, output_tokens=1_300, cost=0.042)
    payload = e.TurnDone(f"turn-{task}", "done", task_id=task)
    return e.TurnEnded(actor=to, provenance=SYSTEM, payload=payload, usage=usage)


def checked(task: str = "task-1", status: str = "passed", sentence: str = "") -> e.ChecksRun:
    sentence = sentence or "tests: 2 failed → all 14 passed"
    payload = e.Checked(task, status, sentence, TestsRun(14, 0))
    return e.ChecksRun(actor="engine", provenance=SYSTEM, payload=payload)


def proposed(task: str = "task-1", by: str = "coder") -> e.ProposalSubmitted:
    payload = e.Submission(task, 1, "parse() strips each part", TestsRun(14, 0))
    return e.ProposalSubmitted(actor=by, provenance=SYSTEM, payload=payload)


def reviewed(decision: Decision, reason: str = "", task: str = "task-1") -> e.ProposalReviewed:
    review = ProposalReview(RUN, task, decision, reason or None)
    return e.ProposalReviewed(actor="person:you", provenance=SYSTEM, payload=review)


def landed(task: str = "task-1", *files: str) -> e.ProposalLanded:
    payload = e.Landed(task, files or ("src/parser.py",))
    return e.ProposalLanded(actor="engine", provenance=SYSTEM, payload=payload)


def resumed() -> e.RunResumed:
    return e.RunResumed(actor="engine", provenance=SYSTEM)


def warned(sentence: str) -> e.WarningGiven:
    return e.WarningGiven(actor="engine", provenance=SYSTEM, payload=e.Warned(sentence))


def ending(*, done: bool, reason: str = "quality_gate: tests_passed") -> tuple[e.RunEvent, ...]:
    payload = e.End(reason, done, head="0123456789abcdef")
    return (e.RunEnded(actor="engine", provenance=SYSTEM, payload=payload),)


def review_ask(run_id: str = RUN, task: str = "task-1", text: str = "") -> PersonAsk:
    text = text or (
        f"Apply the change of Coder for {task}?\n\nTask: Strip the blanks around each part\n\n"
        "Files:\n- modified src/parser.py"
    )
    return PersonAsk(
        ask_id=f"{run_id}/{task}/person:1",
        person="you",
        run_id=run_id,
        agent_id="coder",
        scope=f"review:{task}",
        text=text,
    )


PLAN = {
    "tasks": [
        {"task_id": "parser", "agent": "coder", "description": "Strip the blanks"},
        {
            "task_id": "docs",
            "agent": "docs",
            "description": "Say so in the manual",
            "depends_on": [{"task_id": "parser"}],
            "scope": ["docs/**"],
        },
    ]
}


def plan_ask(run_id: str = RUN) -> PersonAsk:
    return PersonAsk(
        ask_id=f"{run_id}/plan",
        person="you",
        run_id=run_id,
        agent_id="manager",
        scope="plan:work",
        text="The plan: 2 tasks",
        schema={"type": "object"},
        default=PLAN,
    )


def question_ask(run_id: str = RUN, schema: Any = UNSET) -> PersonAsk:
    return PersonAsk(
        ask_id=f"{run_id}/question",
        person="you",
        run_id=run_id,
        agent_id="coder",
        scope="turn:t9",
        text="Which separator is meant?",
        schema=schema,
    )


def transcript_of(agent: str = "coder") -> list[TranscriptEntry]:
    said: list[TranscriptEvent] = [
        TextEvent(ts=0, seq=0, text="I look at the parser."),
        ToolCallEvent(ts=0, seq=1, name="shell", input=Raw(b'{"command": "pytest -q"}')),
        ToolResultEvent(ts=0, seq=2, output="2 failed\n", exit_code=1),
        ResultEvent(ts=0, seq=3, text="parse() strips each part"),
    ]
    return [TranscriptEntry(number, agent, event) for number, event in enumerate(said, start=1)]


# Whole runs ---------------------------------------------------------------------------------------


def propose(run: Played) -> Played:
    """A run up to the moment at which it waits for a review."""
    run.said = transcript_of()
    run.tell(started(), dispatched(), turn(), turn_done(), checked(), proposed())
    return run.ask(review_ask(run.run_id)).park()


def judge(run: Played, answer: PersonAnswer) -> Sequence[e.RunEvent]:
    """What follows from a verdict."""
    del run
    decision = Decision(answer.content["decision"])
    verdict = reviewed(decision, answer.content["reason"])
    if decision is Decision.APPLY:
        return [verdict, landed(), *ending(done=True)]
    return [verdict, *ending(done=False, reason="max_rounds: 2")]


def finished(run: Played) -> Played:
    """A run that landed its change."""
    propose(run).asks.clear()
    return run.tell(resumed(), reviewed(Decision.APPLY), landed(), *ending(done=True))


def at_work(run: Played) -> Played:
    """A run in the middle of a turn that does not end by itself."""
    return run.tell(started(), dispatched(), turn())


def one_of_two(run: Played) -> Played:
    """One change waits for its review while somebody is still at work on another."""
    run.tell(started(), dispatched(), dispatched("task-2", "docs"), turn("task-2", "docs"))
    run.tell(checked(), proposed()).ask(review_ask(run.run_id))
    # By the time the person has looked, the other has ended too.
    return run.tell(turn_done("task-2", "docs")).park()


def two_reviews(run: Played) -> Played:
    run.tell(started(), dispatched(), dispatched("task-2", "docs", "Say so in the manual"))
    for task in ("task-1", "task-2"):
        run.tell(checked(task), proposed(task)).ask(review_ask(run.run_id, task))
    return run.park()


def land_one(run: Played, answer: PersonAnswer) -> Sequence[e.RunEvent]:
    """Each verdict lands its task; the run ends with the last."""
    del answer
    open_tasks = {ask.scope.partition(":")[2] for ask in run.asks}
    view = view_of(run.log)
    now = [
        task.task_id
        for task in view.tasks.values()
        if task.status is TaskStatus.IN_REVIEW and task.task_id not in open_tasks
    ]
    events: list[e.RunEvent] = []
    for task in now:
        events += [reviewed(Decision.APPLY, task=task), landed(task, f"{task}.py")]
    return events if run.asks else [*events, *ending(done=True)]


RED = Evidence(
    "g0",
    (
        Compared(
            Check("t", "x"),
            CheckResult(passed=True, exit_code=0),
            CheckResult(passed=False, exit_code=1),
        ),
    ),
)


def red(office: FakeOffice) -> FakeOffice:
    """The same with a check that every change makes red."""
    office.evidence = RED
    return office


def asked_again(run: Played) -> Played:
    """A run that asks about its change once more, and says why."""
    propose(run).asks.clear()
    ask = structs.replace(review_ask(run.run_id), problem="the ground has moved")
    return run.tell(resumed()).ask(ask).park()


def accept_plan(run: Played) -> Played:
    return run.tell(started()).ask(plan_ask(run.run_id)).park()


def carry_out(run: Played, answer: PersonAnswer) -> Sequence[e.RunEvent]:
    del run
    if answer.content is None:
        return ending(done=False, reason="no plan: declined")
    tasks = answer.content["tasks"]
    return [
        *(dispatched(task["task_id"], task["agent"], task["description"]) for task in tasks),
        *ending(done=True),
    ]


def offices_by_name(name: str) -> FakeOffice:
    return {
        "review": lambda: FakeOffice(begin=propose, go_on=judge),
        "late": lambda: FakeOffice(begin=propose, go_on=judge, lag=3),
        "parked": lambda: FakeOffice(propose(Played()), go_on=judge),
        "red": lambda: red(FakeOffice(propose(Played()), go_on=judge)),
        "again": lambda: FakeOffice(asked_again(Played()), go_on=judge),
        "done": lambda: FakeOffice(finished(Played())),
        "plan": lambda: FakeOffice(begin=accept_plan, go_on=carry_out),
        "two": lambda: FakeOffice(two_reviews(Played()), go_on=land_one),
        "busy": lambda: FakeOffice(begin=one_of_two),
        "work": lambda: FakeOffice(begin=at_work),
        "wedged": lambda: FakeOffice(begin=at_work, stop_hangs=True, close_hangs=True),
        "stuck": lambda: FakeOffice(begin=at_work, stop_hangs=True),
    }[name]()


if __name__ == "__main__":
    scenario, *rest = sys.argv[1:]
    fake = offices_by_name(scenario)
    offices.open_office = opening(fake)
    sys.argv = ["agentcanvas", *rest]
    try:
        main()
    finally:
        if answers := os.environ.get("ANSWERS"):
            content = [structs.asdict(answer)["content"] for _, answer in fake.answers]
            Path(answers).write_text(repr(content), encoding="utf-8")
