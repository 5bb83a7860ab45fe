"""Names for messages: how they are made and what they must look like."""

from __future__ import annotations

import re
from uuid import UUID, uuid4, uuid5

_UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII
).fullmatch
_VERSION_AT = 14
_VARIANT_AT = 19
_STEPS = UUID("5f0a1c0e-6b1d-5e57-9a43-0b2f4f0c6d11")


def new_id() -> str:
    """A fresh message id (UUID version 4), valid in every dialect."""
    return str(uuid4())


def step_id(run: str, step: str, attempt: int) -> str:
    """The same id for the same step of a run, so that a resend after a crash is known (D3)."""
    return str(uuid5(_STEPS, "\n".join((run, step, str(attempt)))))


def is_uuid(text: str) -> bool:
    """A UUID of any version."""
    return _UUID(text) is not None


def is_uuid4(text: str) -> bool:
    """A random UUID (version 4, RFC 9562 variant)."""
    return is_uuid(text) and text[_VERSION_AT] == "4" and text[_VARIANT_AT].lower() in "89ab"
