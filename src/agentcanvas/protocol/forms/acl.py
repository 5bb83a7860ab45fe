"""FIPA-ACL: the 22 communicative acts, the message, and its string syntax (T5).

The syntax is FIPA's "ACL message representation in string" (SC00070):
``(inform :sender (agent-identifier :name a1) :content "…")``. Reading also takes what is common but
not to the letter: a bare name for an agent identifier, one receiver outside a set, content without
quotes, text and a code fence around the message. Writing keeps to the letter.

What the content means is between the agents; which act may answer which is ``REPLIES``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import sexpr
from agentcanvas.protocol.forms.sexpr import Expression, Word


class Performative(StrEnum):
    """FIPA's library of communicative acts (SC00037)."""

    ACCEPT_PROPOSAL = "accept-proposal"
    AGREE = "agree"
    CANCEL = "cancel"
    CFP = "cfp"
    CONFIRM = "confirm"
    DISCONFIRM = "disconfirm"
    FAILURE = "failure"
    INFORM = "inform"
    INFORM_IF = "inform-if"
    INFORM_REF = "inform-ref"
    NOT_UNDERSTOOD = "not-understood"
    PROPAGATE = "propagate"
    PROPOSE = "propose"
    PROXY = "proxy"
    QUERY_IF = "query-if"
    QUERY_REF = "query-ref"
    REFUSE = "refuse"
    REJECT_PROPOSAL = "reject-proposal"
    REQUEST = "request"
    REQUEST_WHEN = "request-when"
    REQUEST_WHENEVER = "request-whenever"
    SUBSCRIBE = "subscribe"


_P = Performative
_TO_A_REQUEST = frozenset({_P.AGREE, _P.REFUSE, _P.INFORM, _P.FAILURE})

# What the FIPA interaction protocols expect back. `not-understood` answers any act but itself and
# is not repeated here; an act that is absent expects no answer.
REPLIES: Mapping[Performative, frozenset[Performative]] = MappingProxyType(
    {
        _P.REQUEST: _TO_A_REQUEST,
        _P.REQUEST_WHEN: _TO_A_REQUEST,
        _P.REQUEST_WHENEVER: _TO_A_REQUEST,
        _P.QUERY_IF: _TO_A_REQUEST,
        _P.QUERY_REF: _TO_A_REQUEST,
        _P.SUBSCRIBE: _TO_A_REQUEST,
        _P.PROXY: _TO_A_REQUEST,
        _P.PROPAGATE: _TO_A_REQUEST,
        _P.CFP: frozenset({_P.PROPOSE, _P.REFUSE}),
        _P.PROPOSE: frozenset({_P.ACCEPT_PROPOSAL, _P.REJECT_PROPOSAL}),
        _P.ACCEPT_PROPOSAL: frozenset({_P.INFORM, _P.FAILURE}),
        _P.CANCEL: frozenset({_P.INFORM, _P.FAILURE}),
    }
)


def expects_reply(act: Performative) -> bool:
    """Whether the sender of this act waits for an answer."""
    return act in REPLIES


def may_answer(act: Performative, reply: Performative) -> bool:
    """Whether ``reply`` is an answer to ``act``."""
    if reply is Performative.NOT_UNDERSTOOD:
        return act is not Performative.NOT_UNDERSTOOD
    return reply in REPLIES.get(act, frozenset())


class AclAgent(Struct, frozen=True):
    """FIPA's agent-identifier."""

    name: str
    addresses: tuple[str, ...] = ()
    resolvers: tuple[AclAgent, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise FormError("An agent identifier needs a :name.", part="agent-identifier")
        for text in (self.name, *self.addresses):
            _require_sendable("agent-identifier", text)
        level, agents = 0, self.resolvers
        while agents:
            level, agents = level + 1, tuple(each for agent in agents for each in agent.resolvers)
        if level > _MAX_RESOLVER_LEVELS:
            raise FormError(
                f"An agent identifier may nest resolvers {_MAX_RESOLVER_LEVELS} levels deep, "
                f"not {level}.",
                part="agent-identifier",
            )


class AclMessage(Struct, frozen=True, kw_only=True):
    """One communicative act; every parameter but the performative may be absent.

    ``reply_by`` is FIPA's time token (``20261116T101500000Z``, or a span with a sign). ``extra``
    holds parameters of others' making, whose names should begin with ``X-``.
    """

    performative: Performative
    sender: AclAgent | UnsetType = UNSET
    receiver: tuple[AclAgent, ...] = ()
    reply_to: tuple[AclAgent, ...] = ()
    content: str | UnsetType = UNSET
    language: str | UnsetType = UNSET
    encoding: str | UnsetType = UNSET
    ontology: str | UnsetType = UNSET
    protocol: str | UnsetType = UNSET
    conversation_id: str | UnsetType = UNSET
    reply_with: str | UnsetType = UNSET
    in_reply_to: str | UnsetType = UNSET
    reply_by: str | UnsetType = UNSET
    extra: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in _TEXTS:
            if (text := getattr(self, _attribute(name))) is not UNSET:
                _require_sendable(name, text)
        if self.reply_by is not UNSET and not _TIME.fullmatch(self.reply_by):
            raise FormError(
                f":reply-by {self.reply_by!r} is not a FIPA time: write YYYYMMDDThhmmssmmmZ, "
                "or +YYYYMMDDThhmmssmmm for a span.",
                part="reply-by",
            )
        taken = set(_PARAMETERS)
        for name, text in self.extra:
            _require_sendable(name, text)
            if not _EXTRA_NAME.fullmatch(name) or name.casefold() in taken:
                raise FormError(
                    f":{name} cannot be an extra parameter: use X- and letters, each name once.",
                    part=name,
                )
            taken.add(name.casefold())


_MAX_RESOLVER_LEVELS = 8
_MAX_CANDIDATES = 16
_TIME = re.compile(r"[+-]?\d{8}T\d{9}[A-Za-z]?", re.ASCII)
_EXTRA_NAME = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_AGENT_SETS = ("receiver", "reply-to")
_TEXTS = (
    "content",
    "language",
    "encoding",
    "ontology",
    "protocol",
    "conversation-id",
    "reply-with",
    "in-reply-to",
    "reply-by",
)
_PARAMETERS = ("sender", *_AGENT_SETS, *_TEXTS)
_START = re.compile(r"\([\x00-\x20]*(?P<act>[A-Za-z][A-Za-z-]*)(?=[\x00-\x20)])")


def _attribute(parameter: str) -> str:
    return parameter.replace("-", "_")


def _require_sendable(part: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormError(
            f":{part} holds half of a surrogate pair, which cannot be sent.", part=part
        ) from None


# --- writing ------------------------------------------------------------------------------------


def write_acl(message: AclMessage) -> str:
    """The message in FIPA's string syntax; ``parse_acl`` gives the same value back."""
    parts = [message.performative.value]
    if message.sender is not UNSET:
        parts.append(f":sender {_write_agent(message.sender)}")
    for name in _AGENT_SETS:
        agents: tuple[AclAgent, ...] = getattr(message, _attribute(name))
        if agents:
            parts.append(f":{name} (set {' '.join(map(_write_agent, agents))})")
    for name in _TEXTS:
        text: str | UnsetType = getattr(message, _attribute(name))
        if text is not UNSET:
            parts.append(f":{name} {_WRITERS.get(name, sexpr.write_text)(text)}")
    parts += (f":{name} {sexpr.write_text(text)}" for name, text in message.extra)
    return f"({' '.join(parts)})"


# FIPA wants content to be a string, and a time to be bare.
_WRITERS: Mapping[str, Callable[[str], str]] = {"content": sexpr.write_string, "reply-by": str}


def _write_agent(agent: AclAgent) -> str:
    parts = ["agent-identifier", f":name {sexpr.write_text(agent.name)}"]
    if agent.addresses:
        addresses = " ".join(map(sexpr.write_text, agent.addresses))
        parts.append(f":addresses (sequence {addresses})")
    if agent.resolvers:
        resolvers = " ".join(map(_write_agent, agent.resolvers))
        parts.append(f":resolvers (sequence {resolvers})")
    return f"({' '.join(parts)})"


# --- reading ------------------------------------------------------------------------------------


def parse_acl(text: str) -> AclMessage:
    """The first ACL message in ``text``; the error names the parameter that is wrong."""
    known = set(Performative)
    words = list(_START.finditer(text))
    candidates = [word for word in words if word["act"].lower() in known]
    if not candidates:
        raise _no_performative(words[0]["act"] if words else "")
    first_error: FormError | None = None
    for candidate in candidates[:_MAX_CANDIDATES]:
        try:
            return _read_message(text, candidate)
        except FormError as broken:
            first_error = first_error or broken
    assert first_error is not None
    raise first_error


def _no_performative(word: str) -> FormError:
    if not word:
        sentence = 'There is no ACL message: write one such as (inform :content "done").'
    else:
        close = difflib.get_close_matches(word.lower(), list(Performative), n=1)
        advice = f"did you mean {close[0]}?" if close else f"use one of {', '.join(Performative)}."
        sentence = f'"{word}" is not a FIPA performative: {advice}'
    return FormError(sentence, part="performative")


def _read_message(text: str, start: re.Match[str]) -> AclMessage:
    fields: dict[str, str | AclAgent | tuple[AclAgent, ...]] = {}
    extra: list[tuple[str, str]] = []
    place = sexpr.skip_space(text, start.end())
    part = "performative"
    while text[place : place + 1] != ")":
        try:
            keyword, place = sexpr.read(text, place)
            part = _parameter_name(keyword, after=part)
            begin = sexpr.skip_space(text, place)
            value, place = sexpr.read(text, begin)
        except sexpr.ExpressionError as broken:
            raise FormError(f"The ACL message is broken at :{part}: {broken}.", part=part) from None
        raw = text[begin:place]
        if part.lower() not in _PARAMETERS:
            extra.append((part, _plain(value, raw)))
        elif _attribute(part.lower()) in fields:
            raise FormError(f":{part} is there twice: keep one.", part=part.lower())
        else:
            part = part.lower()
            fields[_attribute(part)] = _field(part, value, raw)
        place = sexpr.skip_space(text, place)
    performative = Performative(start["act"].lower())
    return msgspec.convert(
        {"performative": performative, "extra": tuple(extra), **fields}, AclMessage
    )


def _parameter_name(keyword: Expression, *, after: str) -> str:
    if isinstance(keyword, Word) and keyword.startswith(":") and len(keyword) > 1:
        return keyword[1:]
    raise FormError(
        f"After :{after} a parameter such as :sender or :content must follow, not "
        f"{str(keyword)[:40]!r}; put a text of several words in quotes.",
        part=after,
    )


def _field(part: str, value: Expression, raw: str) -> str | AclAgent | tuple[AclAgent, ...]:
    if part == "sender":
        return _read_agent(part, value)
    if part in _AGENT_SETS:
        if isinstance(value, list) and value and value[0] in ("set", "sequence"):
            return tuple(_read_agent(part, each) for each in value[1:])
        return (_read_agent(part, value),)
    return _plain(value, raw)


def _plain(value: Expression, raw: str) -> str:
    """A word or string by its content, a list by its text."""
    return str(value) if isinstance(value, str) else raw


def _read_agent(part: str, value: Expression) -> AclAgent:
    if isinstance(value, str):
        return AclAgent(str(value))
    if not value or value[0] != "agent-identifier" or len(value) % 2 == 0:
        raise _bad_agent(part)
    found = dict(zip(map(str, value[1::2]), value[2::2], strict=True))
    name = found.pop(":name", None)
    addresses = _sequence(part, found.pop(":addresses", ["sequence"]))
    resolvers = _sequence(part, found.pop(":resolvers", ["sequence"]))
    if found or not isinstance(name, str) or not all(isinstance(each, str) for each in addresses):
        raise _bad_agent(part)
    return AclAgent(
        str(name),
        tuple(str(address) for address in addresses),
        tuple(_read_agent(part, resolver) for resolver in resolvers),
    )


def _sequence(part: str, value: Expression) -> list[Expression]:
    if isinstance(value, list) and value and value[0] in ("sequence", "set"):
        return value[1:]
    raise _bad_agent(part)


def _bad_agent(part: str) -> FormError:
    return FormError(
        f":{part} is not an agent: write (agent-identifier :name NAME), with :addresses and "
        ":resolvers as (sequence …) if need be.",
        part=part,
    )
