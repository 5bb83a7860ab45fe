"""Text forms: five-part message, six-part response, HANDOFF block, FIPA-ACL, text with images.

Values, and the text they are written as and read from; pure, like all of ``protocol``. When a form
is asked for, and what a breach leads to, is left to the engine and the agents' host.
"""

from agentcanvas.protocol.forms.acl import (
    REPLIES,
    AclAgent,
    AclMessage,
    Performative,
    expects_reply,
    may_answer,
    parse_acl,
    write_acl,
)
from agentcanvas.protocol.forms.asks import FORM_ASKS, STYLE, TEXT_ASKS
from agentcanvas.protocol.forms.checkable import why_not_checkable
from agentcanvas.protocol.forms.checking import tidy, tidy_line
from agentcanvas.protocol.forms.handoff import Handoff
from agentcanvas.protocol.forms.message_form import MessageForm
from agentcanvas.protocol.forms.multimodal import (
    IMAGE_MEDIA,
    ImagePart,
    MultimodalPart,
    TextPart,
    check_parts,
    inline_image,
    parse_parts,
    write_parts,
)
from agentcanvas.protocol.forms.shape import FormProblem
from agentcanvas.protocol.forms.standard import StandardMessage, StandardResponse
from agentcanvas.protocol.forms.text_form import TextForm, check, parse, problems, write

__all__ = [
    "FORM_ASKS",
    "IMAGE_MEDIA",
    "REPLIES",
    "STYLE",
    "TEXT_ASKS",
    "AclAgent",
    "AclMessage",
    "FormProblem",
    "Handoff",
    "ImagePart",
    "MessageForm",
    "MultimodalPart",
    "Performative",
    "StandardMessage",
    "StandardResponse",
    "TextForm",
    "TextPart",
    "check",
    "check_parts",
    "expects_reply",
    "inline_image",
    "may_answer",
    "parse",
    "parse_acl",
    "parse_parts",
    "problems",
    "tidy",
    "tidy_line",
    "why_not_checkable",
    "write",
    "write_acl",
    "write_parts",
]
