"""How the reply to a plain question is read: in the message form that the flow gives the edge (I2).

A typed question brings its own form along, and work ends in a proposal; both are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from agentcanvas.errors import FormError
from agentcanvas.pattern import Answer, Ask
from agentcanvas.protocol.forms import FORM_ASKS, MessageForm, parse_acl, parse_parts
from agentcanvas.runs.answers import plain
from agentcanvas.runs.offstage import Settled
from agentcanvas.runs.scene import Scene


def is_free(scene: Scene, asks: list[Ask]) -> bool:
    """Whether whatever is answered will do."""
    return all(_form(scene, ask) is MessageForm.NL_TEXT for ask in asks)


def in_form(scene: Scene, ask: Ask) -> Ask:
    """The question with what its answer is to look like."""
    form = _form(scene, ask)
    if form is MessageForm.NL_TEXT:
        return ask
    return msgspec.structs.replace(ask, message=f"{ask.message}\n\n{FORM_ASKS[form].rstrip()}")


def formed(scene: Scene, to: str, settled: Settled, *, works: bool = False) -> Answer[bool]:
    """The answer, its value True if it has its form; else its reason is what was wrong."""
    answer = plain(to, settled)
    why = "" if works or not answer.done else breach(scene.form_of(to), answer.text)
    return Answer(
        to,
        answer.text,
        answer.fate,
        why or answer.reason,
        value=None if why else True,
        proposal=answer.proposal,
        failure=answer.failure,
    )


def reader(scene: Scene, asks: Sequence[Ask]) -> Callable[[str, Settled], Answer[bool]]:
    """How the answers to these are read."""
    works = {ask.to for ask in asks if ask.work is not None}
    return lambda to, settled: formed(scene, to, settled, works=to in works)


def as_answer(formed: Answer[bool]) -> Answer[None]:
    """The answer as a pattern gets it."""
    return Answer(
        formed.agent,
        formed.text,
        formed.fate,
        formed.reason,
        proposal=formed.proposal,
        failure=formed.failure,
    )


def breach(form: MessageForm, text: str) -> str:
    """What is wrong with an answer in this form; nothing if it has it."""
    try:
        match form:
            case MessageForm.NL_TEXT:
                pass
            case MessageForm.STRUCTURED_JSON:
                msgspec.json.decode(text)
            case MessageForm.ACL_PERFORMATIVE:
                parse_acl(text)
            case MessageForm.MULTIMODAL:
                parse_parts(text)
    except (msgspec.MsgspecError, FormError) as wrong:
        return f"Your answer is not in the form {form.value}: {wrong}"
    return ""


def _form(scene: Scene, ask: Ask) -> MessageForm:
    return MessageForm.NL_TEXT if ask.work is not None else scene.form_of(ask.to)
