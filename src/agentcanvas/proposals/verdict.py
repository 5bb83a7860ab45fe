"""What a reviewer's answer says (D17, R1, W2): a JSON form first, else the last verdict line.

``APPLY`` alone on its line, ``REJECT: reason`` or ``REVISE: instructions``. Anything else is no
verdict, and no verdict never applies. A later line that starts with one of the three words but is
not a verdict (``REJECT`` without a reason, ``APPLY if …``) makes an earlier one doubtful, so that
it counts as unreadable too.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import msgspec

from agentcanvas.proposals.model import Decision, FileChoice, Wire
from agentcanvas.protocol.reviews import Severity
from agentcanvas.protocol.reviews import Verdict as ReviewVerdict

_VERDICT_FIELD: Final = re.compile(r'"(?:decision|verdict)"\s*:')
_UNFENCED: Final = re.compile(r"^\{.*\}", re.MULTILINE | re.DOTALL)
_FENCED: Final = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Emphasis and code marks around the word are decoration, not meaning.
_LINE: Final = re.compile(r"^[\s*_`]*(APPLY|REJECT|REVISE)\b[*_`]*(.*)$")
_DECORATION: Final = " \t*_`"


class FindingPlace(msgspec.Struct, frozen=True):
    """The line of the changed file that a finding is about, as far as the reviewer said it."""

    file: str = ""
    line_start: int | None = None


class Finding(msgspec.Struct, frozen=True):
    """As much of W2's Finding as gate and page need; unknown fields are left to ``protocol``."""

    severity: Severity
    description: str = ""
    finding_id: str = ""
    fixed_in_iteration: int | None = None
    location: FindingPlace | None = None

    @property
    def blocks(self) -> bool:
        serious = self.severity in {Severity.CRITICAL, Severity.MAJOR}
        return serious and self.fixed_in_iteration is None


class ReviewerKind(StrEnum):
    """Who gave a verdict; AUTOMATIC is the flow's own ``autoApprove``."""

    AGENT = "agent"
    PERSON = "person"
    AUTOMATIC = "automatic"


class Verdict(Wire, frozen=True):
    """A decision with its author; made by ``read_verdict``, a person's answer, or ``automatic``."""

    decision: Decision
    by: str
    kind: ReviewerKind
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    verified: bool = True
    chosen: tuple[FileChoice, ...] = ()
    """The part that is meant; empty for the whole proposal. Only people choose."""


AUTOMATIC: Final = Verdict(
    Decision.APPLY, by="system", kind=ReviewerKind.AUTOMATIC, reason="approved automatically"
)


class _Verification(msgspec.Struct, frozen=True):
    passed: bool


class _Plain(msgspec.Struct, frozen=True):
    decision: Decision
    reason: str = ""
    findings: tuple[Finding, ...] = ()


_MEANING: Final = {
    ReviewVerdict.APPROVED: Decision.APPLY,
    ReviewVerdict.CHANGES_REQUESTED: Decision.REVISE,
    ReviewVerdict.REJECTED: Decision.REJECT,
}


class _RequiredChange(msgspec.Struct, frozen=True):
    description: str = ""


class _ReviewerOutput(msgspec.Struct, frozen=True):
    verdict: ReviewVerdict
    findings: tuple[Finding, ...] = ()
    summary: str = ""
    required_changes: tuple[_RequiredChange, ...] = ()
    verification: dict[str, msgspec.Raw] = {}


def read_verdict(
    answer: str, *, by: str, kind: ReviewerKind = ReviewerKind.AGENT
) -> Verdict | None:
    """The verdict in an answer, or None when there is none that can be relied on."""
    # A form that means to be a verdict and is broken is not replaced by a line elsewhere.
    if forms := [form for form in _json_forms(answer) if _VERDICT_FIELD.search(form)]:
        return _from_json(forms[-1], by, kind)
    return _from_lines(answer, by, kind)


def _json_forms(answer: str) -> list[str]:
    whole = answer.strip()
    if whole.startswith("{"):
        return [whole]
    return _FENCED.findall(answer) or _UNFENCED.findall(answer)


def _from_json(text: str, by: str, kind: ReviewerKind) -> Verdict | None:
    try:
        if "decision" in msgspec.json.decode(text, type=dict[str, msgspec.Raw]):
            plain = msgspec.json.decode(text, type=_Plain)
            return Verdict(plain.decision, by, kind, plain.reason.strip(), plain.findings)
        output = msgspec.json.decode(text, type=_ReviewerOutput)
        verified = all(_passed(result) for result in output.verification.values())
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    changes = [change.description for change in output.required_changes if change.description]
    reason = "\n".join([output.summary, *(f"- {change}" for change in changes)]).strip()
    return Verdict(_MEANING[output.verdict], by, kind, reason, output.findings, verified)


def _passed(result: msgspec.Raw) -> bool:
    """``tests``, ``type_check`` and ``lint`` are results; ``custom`` is a table of them."""
    try:
        return msgspec.json.decode(result, type=_Verification).passed
    except msgspec.ValidationError:
        table = msgspec.json.decode(result, type=dict[str, _Verification] | None)
        return all(inner.passed for inner in (table or {}).values())


def _from_lines(answer: str, by: str, kind: ReviewerKind) -> Verdict | None:
    lines = answer.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if found := _LINE.match(lines[index]):
            decision = Decision(found[1].lower())
            rest = found[2].strip(_DECORATION)
            if decision is Decision.APPLY:
                return None if rest else Verdict(decision, by, kind)
            below = "\n".join([rest.removeprefix(":").strip(_DECORATION), *lines[index + 1 :]])
            reason = below.strip()
            return Verdict(decision, by, kind, reason) if rest.startswith(":") and reason else None
    return None
