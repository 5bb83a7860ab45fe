"""Every exception AgentCanvas raises on purpose.

    AgentCanvasError
    ├── ProtocolError            user_error        not understandable as a message
    │   ├── MessageTooLarge
    │   ├── MethodNotAllowed                       a web address that is not used this way
    │   └── UnknownDialect
    ├── ValidationError          user_error        understood, but breaks a rule
    │   ├── InvalidMessage                         carries every breach found
    │   ├── FormError                              a text form misses or garbles a part
    │   ├── SettingsError
    │   ├── FlowError                              carries every problem of a flow
    │   ├── InvalidScript                          carries every problem found
    │   ├── ProposalMalformed                      a proposal/ folder that cannot be read
    │   ├── IllegalTransition                      names the moves that are legal
    │   ├── AgentNotFound                          nobody of this name in the session
    │   ├── NotFound                               no run, task, ask or page of this name
    │   ├── IdReused                               the same id with other content
    │   └── PathRefused                            not workspace-relative, or internal
    ├── PermissionDenied         permission_error
    │   ├── Unauthenticated                        no token, or not the right one
    │   ├── SealError
    │   │   ├── BadSignature
    │   │   ├── UnknownKey
    │   │   ├── CannotDecrypt
    │   │   └── Replayed
    │   │       └── Repeated
    │   ├── NotApproved                            a person said no, or nobody can be asked
    │   ├── ScopeViolation
    │   ├── EgressRefused                          a request that leads where it may not
    │   └── UnsafePatch                            carries one breach a path
    ├── ExecutionError           agent_error
    │   ├── TaskFailed                             another agent's task ended badly
    │   ├── TaskRejected                           another agent did not take a task
    │   ├── StageEnded                             a limit of the run was reached
    │   ├── RunDiverged                            a replay asked for something else
    │   └── Unpatchable                            a change that no patch can carry
    ├── DeadlineExceeded         timeout_error
    └── ResourceError            system_error
        ├── Overloaded                             an inbox is full; send again later
        ├── RateLimited                            too many messages along an edge
        ├── QuotaExceeded                          an agent keeps too much
        ├── CircuitOpen                            a recipient failed too often lately
        ├── Undeliverable                          kept as a dead letter
        ├── AgentLost                              an agent with work in hand fell silent
        ├── Disconnected                           the connection is gone
        │   └── Replaced                           by a newer one of the same agent
        ├── ApplyError                             the workspace is as it was before
        │   ├── ApplyConflict    user_error        carries one reason a path
        │   ├── ApplyFailed                        disk, permissions, or changed meanwhile
        │   ├── LandingRefused   user_error        the user's git is not ready for a commit
        │   ├── UnknownTransaction user_error
        │   └── GitUnusable
        ├── SandboxError                           no place to work in could be made
        │   └── NoConfinement                      carries one reason a back-end
        └── StoreError
            ├── StoreTooNew
            ├── StoreDamaged
            ├── StoreFull
            ├── StoreBusy
            └── StoreClosed

Each class knows how it is said on the wire: its category (H5), MAC's error_type (C13) and an
error_code. The sentence is written for whoever has to act on it; it never holds a traceback or an
internal detail (H11).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ErrorCategory(StrEnum):
    """Who has to act (H5)."""

    USER = "user_error"
    AGENT = "agent_error"
    SYSTEM = "system_error"
    TIMEOUT = "timeout_error"
    PERMISSION = "permission_error"


class ErrorType(StrEnum):
    """MAC's five words for what went wrong (W1)."""

    PROTOCOL = "PROTOCOL_ERROR"
    VALIDATION = "VALIDATION_ERROR"
    EXECUTION = "EXECUTION_ERROR"
    TIMEOUT = "TIMEOUT_ERROR"
    RESOURCE = "RESOURCE_ERROR"


class AgentCanvasError(Exception):
    """Root of the tree; catch it to catch everything AgentCanvas raises on purpose."""

    category: ClassVar[ErrorCategory] = ErrorCategory.SYSTEM
    error_type: ClassVar[ErrorType] = ErrorType.RESOURCE
    code: ClassVar[str] = "INTERNAL_ERROR"
    recoverable: ClassVar[bool] = False


class ProtocolError(AgentCanvasError):
    """The bytes cannot be understood as a message of any dialect.

    ``pointer`` is the JSON pointer of the offending field, where there is one, ``message_id`` the
    id that could be read from the broken message, so that the answer can name it (M3), and
    ``breaches`` everything that is wrong with it, one sentence each.
    """

    category = ErrorCategory.USER
    error_type = ErrorType.PROTOCOL
    code = "INVALID_MESSAGE_FORMAT"

    def __init__(
        self,
        sentence: str,
        *,
        pointer: str = "",
        message_id: str | None = None,
        breaches: Sequence[str] = (),
    ) -> None:
        super().__init__(sentence)
        self.pointer = pointer
        self.message_id = message_id
        self.breaches = tuple(breaches) or (sentence,)


class MessageTooLarge(ProtocolError):
    """Over the size limit of L1; said before anything is parsed."""

    code = "MESSAGE_TOO_LARGE"


class MethodNotAllowed(ProtocolError):
    """The web address exists, but is not used with this method; the sentence names the others."""

    code = "METHOD_NOT_ALLOWED"


class UnknownDialect(ProtocolError):
    """No dialect has this shape, or more than one has a claim on it."""

    code = "UNKNOWN_DIALECT"


class ValidationError(AgentCanvasError):
    """Understood, but against a rule."""

    category = ErrorCategory.USER
    error_type = ErrorType.VALIDATION
    code = "VALIDATION_FAILED"


class InvalidMessage(ValidationError):
    """A message that breaks at least one rule; ``breaches`` holds all of them, as sentences."""

    code = "INVALID_MESSAGE"

    def __init__(self, sentence: str, *, breaches: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.breaches = tuple(breaches)


class FormError(ValidationError):
    """A text form (T1-T3) with a missing or malformed part; ``part`` names it."""

    code = "INVALID_FORM"

    def __init__(self, sentence: str, *, part: str) -> None:
        super().__init__(sentence)
        self.part = part


class SettingsError(ValidationError):
    """A setting that is unknown, of the wrong type or in the wrong unit."""

    code = "INVALID_SETTINGS"


class FlowError(ValidationError):
    """A flow that cannot be read, saved or run as it stands.

    ``problems`` holds all of them as sentences that begin with file, line and column.
    """

    code = "INVALID_FLOW"

    def __init__(self, sentence: str, *, problems: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.problems = tuple(problems) or (sentence,)


class InvalidScript(ValidationError):
    """A script for a scripted agent that cannot be played; ``problems`` holds all of them."""

    code = "INVALID_SCRIPT"

    def __init__(self, sentence: str, *, problems: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.problems = tuple(problems)


class ProposalMalformed(ValidationError):
    """A proposal/ folder whose files are missing or cannot be read as S4 says."""

    code = "INVALID_PROPOSAL"


class IllegalTransition(ValidationError):
    """A life cycle was asked for a move it does not have; the sentence names the legal ones."""

    code = "ILLEGAL_TRANSITION"


class PathRefused(ValidationError):
    """A name that leads out of the workspace or into an internal folder (S3)."""

    code = "PATH_REFUSED"


class AgentNotFound(ValidationError):
    """The receiver, or the sender, is not a member of the session (H11)."""

    code = "AGENT_NOT_FOUND"


class NotFound(ValidationError):
    """There is no run, task, ask or page of this name."""

    code = "NOT_FOUND"


class IdReused(ValidationError):
    """The sender used this id before for another message (C11)."""

    code = "ID_REUSED"


class PermissionDenied(AgentCanvasError):
    """The sender may not do this."""

    category = ErrorCategory.PERMISSION
    error_type = ErrorType.VALIDATION
    code = "PERMISSION_DENIED"


class Unauthenticated(PermissionDenied):
    """Whoever asks did not show the token, or showed another one."""

    code = "UNAUTHENTICATED"


class SealError(PermissionDenied):
    """A signature or encryption that does not hold."""

    code = "SEAL_BROKEN"


class BadSignature(SealError):
    """The signature does not belong to this message and key."""

    code = "BAD_SIGNATURE"


class UnknownKey(SealError):
    """The key id is not known, or no longer accepted."""

    code = "UNKNOWN_KEY"


class CannotDecrypt(SealError):
    """The payload was altered, cut short, or encrypted for another key."""

    code = "CANNOT_DECRYPT"


class Replayed(SealError):
    """A signed message outside the replay window, or seen before (C9)."""

    code = "REPLAYED"


class Repeated(Replayed):
    """The very same signed message once more, as a resend would be; it was taken the first time."""


class NotApproved(PermissionDenied):
    """A message that needs a person's consent and did not get it (H6)."""

    code = "NOT_APPROVED"


class ScopeViolation(PermissionDenied):
    """A change outside the files a task may touch (S8)."""

    code = "SCOPE_VIOLATION"


class EgressRefused(PermissionDenied):
    """A request through the egress proxy that leads where it may not; ``status`` answers it."""

    code = "EGRESS_REFUSED"

    def __init__(self, sentence: str, *, status: int = 403) -> None:
        super().__init__(sentence)
        self.status = status


class UnsafePatch(PermissionDenied):
    """A patch that may not land; ``breaches`` maps each path to the sentence that says why."""

    code = "UNSAFE_PATCH"

    def __init__(self, sentence: str, *, breaches: Mapping[str, str]) -> None:
        super().__init__(sentence)
        self.breaches = dict(breaches)


class ExecutionError(AgentCanvasError):
    """An agent failed while it worked."""

    category = ErrorCategory.AGENT
    error_type = ErrorType.EXECUTION
    code = "EXECUTION_ERROR"
    recoverable = True


class TaskFailed(ExecutionError):
    """A task that another agent took ended badly; ``error_code`` is the code it gave."""

    code = "TASK_FAILED"

    def __init__(self, sentence: str, *, error_code: str = "", retry_possible: bool = True) -> None:
        super().__init__(sentence)
        self.error_code = error_code
        self.retry_possible = retry_possible


class TaskRejected(ExecutionError):
    """Another agent did not take a task; ``suggested_agents`` are those it thinks would."""

    code = "TASK_REJECTED"
    recoverable = False

    def __init__(
        self, sentence: str, *, reason: str = "", suggested_agents: Sequence[str] = ()
    ) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.suggested_agents = tuple(suggested_agents)


class Unpatchable(ExecutionError):
    """An agent left something behind that a patch cannot carry; the sentence names it."""

    code = "UNPATCHABLE_CHANGE"


class StageEnded(ExecutionError):
    """A limit of the run was reached; the sentence is the reason it ended."""

    code = "STAGE_ENDED"
    recoverable = False


class RunDiverged(ExecutionError):
    """A replay asked for something else than the run had recorded (D4)."""

    code = "RUN_DIVERGED"
    recoverable = False


class DeadlineExceeded(AgentCanvasError):
    """Nothing came in time."""

    category = ErrorCategory.TIMEOUT
    error_type = ErrorType.TIMEOUT
    code = "TIMEOUT"
    recoverable = True


class ResourceError(AgentCanvasError):
    """The machine, the disk or a quota is in the way."""

    category = ErrorCategory.SYSTEM
    error_type = ErrorType.RESOURCE
    code = "RESOURCE_ERROR"
    recoverable = True


class Overloaded(ResourceError):
    """An inbox is full; nothing of the message was kept, and it may be sent again later (L1)."""

    code = "OVERLOADED"


class RateLimited(ResourceError):
    """More messages along an edge than its limit allows; the sentence says when to go on (I5)."""

    code = "RATE_LIMITED"


class QuotaExceeded(ResourceError):
    """An agent keeps as many bytes of blobs as it may; deleting some makes room (D35)."""

    code = "QUOTA_EXCEEDED"
    recoverable = False


class CircuitOpen(ResourceError):
    """A recipient failed too often; it is left alone for a while (H4, H11)."""

    code = "CIRCUIT_OPEN"


class Undeliverable(ResourceError):
    """A message was not taken over in time or in as many tries as it had; it is kept (H2)."""

    code = "UNDELIVERABLE"
    recoverable = False


class AgentLost(ResourceError):
    """An agent fell silent while it had a task or review in hand (D31)."""

    code = "AGENT_LOST"


class Disconnected(ResourceError):
    """The connection was closed, by either side or by a newer one of the same agent (D36)."""

    code = "DISCONNECTED"


class Replaced(Disconnected):
    """A newer connection of the same agent took over; to come back would throw that one out."""

    code = "REPLACED"
    recoverable = False


class ApplyError(ResourceError):
    """A proposal was not applied or not undone; the workspace is as it was before."""

    code = "APPLY_ERROR"


class ApplyConflict(ApplyError):
    """Edits of the user are in the way; ``conflicts`` maps each path to the sentence why (D7)."""

    category = ErrorCategory.USER
    error_type = ErrorType.VALIDATION
    code = "APPLY_CONFLICT"

    def __init__(self, sentence: str, *, conflicts: Mapping[str, str]) -> None:
        super().__init__(sentence)
        self.conflicts = dict(conflicts)


class ApplyFailed(ApplyError):
    """Something failed in the middle and everything was rolled back."""

    code = "APPLY_FAILED"


class LandingRefused(ApplyError):
    """A commit or branch cannot be made in the user's repository as it is now (D16)."""

    category = ErrorCategory.USER
    error_type = ErrorType.VALIDATION
    code = "LANDING_REFUSED"


class UnknownTransaction(ApplyError):
    """There is no applied proposal under this name to take back."""

    category = ErrorCategory.USER
    error_type = ErrorType.VALIDATION
    code = "UNKNOWN_TRANSACTION"
    recoverable = False


class GitUnusable(ApplyError):
    """git is missing, too old for what is asked, or failed in an unforeseen way."""

    code = "GIT_UNUSABLE"


class SandboxError(ResourceError):
    """A sandbox could not be made, found again or compared."""

    code = "SANDBOX_ERROR"
    recoverable = False


class NoConfinement(SandboxError):
    """No back-end can confine a process here; ``reasons`` says why, one sentence a back-end."""

    code = "NO_CONFINEMENT"

    def __init__(self, sentence: str, *, reasons: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.reasons = tuple(reasons)


class StoreError(ResourceError):
    """The store could not do what was asked."""

    code = "STORE_ERROR"
    recoverable = False


class StoreTooNew(StoreError):
    """The file was written by a newer AgentCanvas."""

    code = "STORE_TOO_NEW"


class StoreDamaged(StoreError):
    """A page or a row does not read back as it was written; the sentence says how to restore."""

    code = "STORE_DAMAGED"


class StoreFull(StoreError):
    """No room to write; nothing of the refused batch was kept."""

    code = "STORE_FULL"
    recoverable = True


class StoreBusy(StoreError):
    """Another process owns the store (D1)."""

    code = "STORE_BUSY"
    recoverable = True


class StoreClosed(StoreError):
    """The store was closed before this write was committed."""

    code = "STORE_CLOSED"
