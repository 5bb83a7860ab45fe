"""What happens in a run, one tagged value a kind of event (V1, V2).

An event says who acted, on whose behalf (provenance) and what (``payloads``, which are named from
here too); its number and time are the store's. Encoded, the collaboration events are exactly the
lines of the collaboration log.
"""

# ruff: noqa: I001, PLC0414 -- an event and what it says are named from one place, in one block

from __future__ import annotations

from enum import StrEnum

import msgspec

from agentcanvas.errors import StoreDamaged
from agentcanvas.proposals.model import AnnounceMessage, ProposalReview
from agentcanvas.protocol.records import Usage
from agentcanvas.runs.payloads import (
    Answered as Answered,
    Applying as Applying,
    Base as Base,
    Charge as Charge,
    Checked as Checked,
    ConfiguredInteraction as ConfiguredInteraction,
    Discarded as Discarded,
    Dispatch as Dispatch,
    Draw as Draw,
    End as End,
    Failure as Failure,
    Folder as Folder,
    Going as Going,
    Landed as Landed,
    Limit as Limit,
    Member as Member,
    MemberQuestion as MemberQuestion,
    MemberReply as MemberReply,
    Note as Note,
    Part as Part,
    PersonAnswered as PersonAnswered,
    PersonAsked as PersonAsked,
    PostedByMember as PostedByMember,
    Progress as Progress,
    Setup as Setup,
    Standing as Standing,
    Start as Start,
    Submission as Submission,
    Telling as Telling,
    Told as Told,
    TurnBegun as TurnBegun,
    TurnDone as TurnDone,
    Undone as Undone,
    Waiting as Waiting,
    Warned as Warned,
)
from agentcanvas.store import Event as Row


class Provenance(StrEnum):
    """Where an event comes from (V2)."""

    USER_INPUT = "user_input"
    ORCHESTRATOR_TO_WORKER = "orchestrator_to_worker"
    WORKER_PROPOSAL = "worker_proposal"
    ANNOUNCE_INTERNAL = "announce_internal"
    ANNOUNCE_USER = "announce_user"
    SYSTEM = "system"


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
_KIND_OF = {kind: str(kind.__struct_config__.tag) for kind in RunEvent.__args__}
KINDS = frozenset(_KIND_OF.values())


def kind_of(event: RunEvent) -> str:
    """The event's name in the log."""
    return _KIND_OF[type(event)]


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
