"""The four forms a message's content may have (T5)."""

from __future__ import annotations

from enum import StrEnum


class MessageForm(StrEnum):
    """How a reply is to be read (I2)."""

    NL_TEXT = "nl_text"
    STRUCTURED_JSON = "structured_json"
    ACL_PERFORMATIVE = "acl_performative"
    MULTIMODAL = "multimodal"
