"""What happens in a run, one tagged value a kind of event (V1, V2).

An event says who acted, on whose behalf (provenance) and what; its number and time are the store's.
Encoded, the collaboration events are exactly the lines of the collaboration log.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agentcanvas.errors import StoreDamaged
from agentcanvas.proposals.model import AnnounceMessage, FileChoice, ProposalReview, TestsRun, Wire
from agentcanvas.protocol.records import Usage
from agentcanvas.store import Event as Row


class Provenance(StrEnum):
    """Where an event comes from (V2)."""

    USER_INPUT = "user_input"
    ORCHESTRATOR_TO_WORKER = "orchestrator_to_worker"
    WORKER_PROPOSAL = "worker_proposal"
    ANNOUNCE_INTERNAL = "announce_internal"
    ANNOUNCE_USER = "announce_user"
    SYSTEM = "system"


class Member(Wire, frozen=True):
    """An agent of the team, by the name people know it by."""

    id: str
    name: str
    role: str


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
    """What the checks say on base + patch, before → after (D13); ``red`` names those that fail."""

    task_id: str
    status: str
    sentence: str
    tests: TestsRun | None = None
    red: tuple[str, ...] = ()


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


class _Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="event",
    rename="camel",
    omit_defaults=True,
):
    actor: str
    provenance: Provenance
    usage: Usage | None = None
    parent_run_id: str | None = None
    interaction_id: str | None = None
    edge_id: str | None = None


class RunStarted(_Event, frozen=True, kw_only=True, tag="run_started"):
    """The first event of a run."""

    payload: Start


class TaskDispatched(_Event, frozen=True, kw_only=True, tag="task_dispatched"):
    """A worker was given a task."""

    payload: Dispatch


class ProposalSubmitted(_Event, frozen=True, kw_only=True, tag="proposal_submitted"):
    """A worker handed in a change."""

    payload: Submission


class ProposalReviewed(_Event, frozen=True, kw_only=True, tag="proposal_reviewed"):
    """The gate decided."""

    payload: ProposalReview


class Announced(_Event, frozen=True, kw_only=True, tag="announce"):
    """What a worker's task came to, said to the orchestrator or to the user (R4)."""

    payload: AnnounceMessage


class ProposalLanded(_Event, frozen=True, kw_only=True, tag="proposal_applied"):
    """A change reached the workspace."""

    payload: Landed


class ProposalUndone(_Event, frozen=True, kw_only=True, tag="proposal_undone"):
    """A change was taken back."""

    payload: Undone


class ProposalDiscarded(_Event, frozen=True, kw_only=True, tag="proposal_discarded"):
    """A candidate was let go."""

    payload: Discarded


class PartChosen(_Event, frozen=True, kw_only=True, tag="part_chosen"):
    """A person wants only a part of a change."""

    payload: Part


class ProposalRechecked(_Event, frozen=True, kw_only=True, tag="proposal_rechecked"):
    """The ground has moved, and a waiting change stands otherwise than before."""

    payload: Standing


class TaskFailed(_Event, frozen=True, kw_only=True, tag="task_failed"):
    """A task ended without a proposal."""

    payload: Failure


class TaskAnswered(_Event, frozen=True, kw_only=True, tag="task_answered"):
    """A task that may change nothing ended well without a proposal."""

    payload: Answered


class ApplyStarted(_Event, frozen=True, kw_only=True, tag="apply_started"):
    """A change is about to reach the workspace; on resume its journal is looked up (D3)."""

    payload: Applying


class InteractionStarted(_Event, frozen=True, kw_only=True, tag="interaction_started"):
    """A pattern begins to run."""

    payload: ConfiguredInteraction


class InteractionEnded(_Event, frozen=True, kw_only=True, tag="interaction_ended"):
    """A pattern has ended, and why."""

    payload: End


class TurnStarted(_Event, frozen=True, kw_only=True, tag="turn_started"):
    """An agent was asked."""

    payload: TurnBegun


class TurnEnded(_Event, frozen=True, kw_only=True, tag="turn_ended"):
    """An agent has answered, or will not."""

    payload: TurnDone


class TurnProgressed(_Event, frozen=True, kw_only=True, tag="turn_progress"):
    """An agent is still at it."""

    payload: Progress


class ChecksRun(_Event, frozen=True, kw_only=True, tag="checks_run"):
    """Evidence was gathered."""

    payload: Checked


class AskedPerson(_Event, frozen=True, kw_only=True, tag="person_asked"):
    """A question lies in somebody's inbox."""

    payload: PersonAsked


class AnsweredByPerson(_Event, frozen=True, kw_only=True, tag="person_answered"):
    """A question was answered."""

    payload: PersonAnswered


class GenerationTaken(_Event, frozen=True, kw_only=True, tag="generation_taken"):
    """The workspace was frozen as it is."""

    payload: Base


class SetupDone(_Event, frozen=True, kw_only=True, tag="setup_done"):
    """What git ignores and the agents need was made."""

    payload: Setup


class CleaningUp(_Event, frozen=True, kw_only=True, tag="cleaning_up"):
    """Sandboxes of old runs are about to be removed; proposals stay (D15)."""

    payload: Going


class Noted(_Event, frozen=True, kw_only=True, tag="noted"):
    """Something was put on record."""

    payload: Note


class MemberAsked(_Event, frozen=True, kw_only=True, tag="member_asked"):
    """A member asked another one, in the middle of its turn."""

    payload: MemberQuestion


class MemberAnswered(_Event, frozen=True, kw_only=True, tag="member_answered"):
    """The other one answered."""

    payload: MemberReply


class TeamPosted(_Event, frozen=True, kw_only=True, tag="team_posted"):
    """A member put something on the team's board."""

    payload: PostedByMember


class MessagePassed(_Event, frozen=True, kw_only=True, tag="message_passed"):
    """An agent was told something that needs no answer."""

    payload: Telling


class Drew(_Event, frozen=True, kw_only=True, tag="drew"):
    """A tie or an order was settled by drawing."""

    payload: Draw


class WarningGiven(_Event, frozen=True, kw_only=True, tag="warning"):
    """Something the user should know."""

    payload: Warned


class WorkerTold(_Event, frozen=True, kw_only=True, tag="worker_told"):
    """A person said something to an agent, without being asked."""

    payload: Told


class LimitReached(_Event, frozen=True, kw_only=True, tag="limit_reached"):
    """The service of an agent does not let it go on for now."""

    payload: Limit


class RunInterrupted(_Event, frozen=True, kw_only=True, tag="run_interrupted"):
    """The process that ran it is gone; it waits for ``resume`` (D25)."""


class RunParked(_Event, frozen=True, kw_only=True, tag="run_parked"):
    """Nothing to do until a person answers (D25)."""

    payload: Waiting


class RunResumed(_Event, frozen=True, kw_only=True, tag="run_resumed"):
    """The run goes on."""


class RunEnded(_Event, frozen=True, kw_only=True, tag="run_ended"):
    """The last event of a run."""

    payload: End


RunEvent = (
    RunStarted
    | InteractionStarted
    | InteractionEnded
    | TurnStarted
    | TurnEnded
    | TurnProgressed
    | ChecksRun
    | AskedPerson
    | AnsweredByPerson
    | GenerationTaken
    | ApplyStarted
    | TaskFailed
    | TaskAnswered
    | ProposalDiscarded
    | PartChosen
    | SetupDone
    | CleaningUp
    | ProposalRechecked
    | Noted
    | MemberAsked
    | MemberAnswered
    | TeamPosted
    | MessagePassed
    | Drew
    | WarningGiven
    | WorkerTold
    | LimitReached
    | RunInterrupted
    | TaskDispatched
    | ProposalSubmitted
    | ProposalReviewed
    | Announced
    | ProposalLanded
    | ProposalUndone
    | RunParked
    | RunResumed
    | RunEnded
)
COLLABORATION = (TaskDispatched, ProposalSubmitted, ProposalReviewed, Announced)
"""What the cards show (layer A and B of V1)."""


class Recorded(msgspec.Struct, frozen=True):
    """An event with its place in the one order of everything, and its time."""

    seq: int
    ts: int
    run_id: str
    event: RunEvent


_decoder = msgspec.json.Decoder(RunEvent)
KINDS = frozenset(str(kind.__struct_config__.tag) for kind in RunEvent.__args__)


def kind_of(event: RunEvent) -> str:
    """The event's name in the log."""
    return str(event.__struct_config__.tag)


def to_json(event: RunEvent) -> bytes:
    """The event as the store keeps it."""
    return msgspec.json.encode(event)


def from_row(row: Row) -> Recorded:
    """Read an event back."""
    try:
        event = _decoder.decode(row.body)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(
            f"Event {row.seq} of {row.stream} cannot be read: {error}. If the file is damaged, "
            "bring a back-up back: agentcanvas store restore BACKUP"
        ) from None
    _, _, run_id = row.stream.rpartition("/")
    return Recorded(row.seq, row.at_ms, run_id, event)
