"""What the events of a run say (V1); who said it, and on whose behalf, is in ``events``."""

from __future__ import annotations

import msgspec

from agentcanvas.proposals.model import FileChoice, TestsRun, Wire


class Member(Wire, frozen=True):
    """An agent of the team, by the name people know it by, and what it was given of the host's.

    ``network`` and ``variables`` say only what goes beyond the usual (``flows.reach``).
    """

    id: str
    name: str
    role: str
    network: str = ""
    variables: tuple[str, ...] = ()


class Start(Wire, frozen=True):
    """What a run sets out to do."""

    flow: str
    request: str
    team: tuple[Member, ...]
    head: str | None = None


class Dispatch(Wire, frozen=True):
    """A task on its way to a worker."""

    task_id: str
    worker_id: str
    instruction: str


class Submission(Wire, frozen=True):
    """A proposal as its worker hands it in."""

    task_id: str
    changed_files: int
    summary: str
    tests: TestsRun | None = None


class Landed(Wire, frozen=True):
    """Files that reached the workspace, and the commit if one was made."""

    task_id: str
    files: tuple[str, ...]
    commit: str | None = None
    transaction: str = ""


class Failure(Wire, frozen=True):
    """Why a task brought nothing to judge."""

    task_id: str
    reason: str


class Answered(Wire, frozen=True):
    """A task of which words were enough: nothing was changed, and nothing had to be."""

    task_id: str
    summary: str


class Told(Wire, frozen=True):
    """Words of a person for an agent, which it hears with its next turn."""

    agent: str
    text: str


class Discarded(Wire, frozen=True):
    """A candidate that nobody landed (D6)."""

    proposal_id: str


class Part(Wire, frozen=True):
    """A part of a proposal that a person has chosen; it is a proposal of its own (D13)."""

    task_id: str
    proposal_id: str
    part_of: str
    chosen: tuple[FileChoice, ...] = ()


class Standing(Wire, frozen=True):
    """How a waiting proposal stands in the workspace of now: clean, merges, stale or conflicts.

    ``meets`` says in sentences which other waiting proposals change the same places.
    """

    task_id: str
    proposal_id: str
    fitness: str
    reason: str = ""
    conflicts: tuple[str, ...] = ()
    meets: tuple[str, ...] = ()


class Undone(Wire, frozen=True):
    """A landed proposal that was taken back."""

    task_id: str
    files: tuple[str, ...]


class Applying(Wire, frozen=True):
    """A landing that has begun; ``transaction`` is its name in the apply journal (D3)."""

    task_id: str
    transaction: str


class MemberQuestion(Wire, frozen=True):
    """What a member asked another one in the middle of its turn."""

    to: str
    text: str


class MemberReply(Wire, frozen=True):
    """What it was answered."""

    to: str
    text: str


class PostedByMember(Wire, frozen=True):
    """Something on the team's board."""

    number: int
    topic: str
    text: str


class ConfiguredInteraction(Wire, frozen=True):
    """An interaction with everything said, as it is about to run."""

    pattern_id: str
    label: str
    roles: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    data: msgspec.Raw = msgspec.Raw(b"{}")
    traces: bool = False


class TurnBegun(Wire, frozen=True):
    """A message on its way to an agent; ``attempt`` is above 1 when an earlier one was cut off.

    ``step`` numbers the lines of its interaction's log; 0 where the flow wants none.
    """

    turn_id: str
    to: str
    message_id: str
    text: str
    role: str = ""
    task_id: str = ""
    attempt: int = 1
    revision: int = 0
    generation: int | None = None
    step: int = 0


class Charge(Wire, frozen=True):
    """What a turn took from the budget, in tokens and US dollars; partly guessed where unknown."""

    tokens: int
    cost: float
    estimated: bool = False


class TurnDone(Wire, frozen=True):
    """What an agent answered."""

    turn_id: str
    text: str
    ok: bool = True
    reason: str = ""
    task_id: str = ""
    duration_ms: int = 0
    charge: Charge | None = None
    step: int = 0
    to: str = "engine"
    """Whom it answers: the speaker on whose behalf it was asked (D22)."""


class Progress(Wire, frozen=True):
    """How a long turn gets on; with ``part`` the step is that part of its answer.

    ``line`` is its line in the log of the interaction; 0 where it has none.
    """

    turn_id: str
    step: str = ""
    files: tuple[str, ...] = ()
    task_id: str = ""
    part: int = 0
    line: int = 0


class Checked(Wire, frozen=True):
    """What the checks say on base + patch, before → after (D13).

    ``red`` names those that fail, ``worse`` those of them that a person overrules with a reason.
    """

    task_id: str
    status: str
    sentence: str
    tests: TestsRun | None = None
    red: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()


class PersonAsked(Wire, frozen=True):
    """Something waits for a person (D24)."""

    ask_id: str
    person: str
    question: str
    scope: str
    task_id: str = ""


class PersonAnswered(Wire, frozen=True):
    """A person has answered, or a deadline took the default."""

    ask_id: str
    person: str
    answer: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")


class Base(Wire, frozen=True):
    """A new frozen base (D7), and what in it differs from the one before."""

    generation: int
    reason: str
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Setup(Wire, frozen=True):
    """What was run before the work, where its words are, and what the user should know of it."""

    command: str
    log: str
    notes: tuple[str, ...] = ()


class Folder(Wire, frozen=True):
    """A folder of the workspace, and what it takes in bytes."""

    path: str
    bytes: int


class Going(Wire, frozen=True):
    """Old runs whose sandboxes are removed, what that frees in bytes, and where most of it is."""

    runs: tuple[str, ...]
    frees: int
    largest: tuple[Folder, ...] = ()


class Note(Wire, frozen=True):
    """Something worth keeping, and where it comes from."""

    entry: str
    sources: tuple[str, ...] = ()


class Telling(Wire, frozen=True):
    """A message that needs no answer; ``step`` numbers the lines of its interaction's log."""

    to: str
    text: str
    step: int = 0


class Draw(Wire, frozen=True):
    """One of several, taken by the declared seed."""

    step: str
    choice: str
    among: tuple[str, ...]
    why: str
    seed: int = 0


class Limit(Wire, frozen=True):
    """A limit of an agent's service: it goes on after ``until_ms``, or ``to`` does instead.

    ``partial`` is the patch of what it had changed by then.
    """

    turn_id: str
    agent: str
    reason: str
    task_id: str = ""
    to: str = ""
    until_ms: int | None = None
    partial: str = ""


class Warned(Wire, frozen=True):
    """A sentence the user should read."""

    sentence: str


class Waiting(Wire, frozen=True):
    """Whom the run waits for, and for what."""

    person: str
    question: str


class End(Wire, frozen=True):
    """Why a run or an interaction ended, with what; ``head`` is the workspace's commit then."""

    reason: str
    done: bool
    head: str | None = None
    result: str = ""
