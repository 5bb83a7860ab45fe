"""FIPA-ACL: the acts, the answers they expect, and the string syntax (T5)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import (
    REPLIES,
    AclAgent,
    AclMessage,
    Performative,
    expects_reply,
    may_answer,
    parse_acl,
    write_acl,
)

pytestmark = pytest.mark.req("T5")

P = Performative


def refused(text: str) -> FormError:
    with pytest.raises(FormError) as caught:
        parse_acl(text)
    return caught.value


# --- acts and answers ---------------------------------------------------------------------------


def test_the_library_has_its_twenty_two_acts() -> None:
    assert len(Performative) == 22
    assert {P.CFP, P.NOT_UNDERSTOOD, P.REQUEST_WHENEVER, P.PROPAGATE, P.PROXY} <= set(Performative)
    assert all(act.value == act.name.lower().replace("_", "-") for act in Performative)


@pytest.mark.parametrize(
    ("act", "answers"),
    [
        (P.CFP, {P.PROPOSE, P.REFUSE}),
        (P.PROPOSE, {P.ACCEPT_PROPOSAL, P.REJECT_PROPOSAL}),
        (P.ACCEPT_PROPOSAL, {P.INFORM, P.FAILURE}),
        (P.CANCEL, {P.INFORM, P.FAILURE}),
        (P.REQUEST, {P.AGREE, P.REFUSE, P.INFORM, P.FAILURE}),
        (P.QUERY_IF, {P.AGREE, P.REFUSE, P.INFORM, P.FAILURE}),
        (P.SUBSCRIBE, {P.AGREE, P.REFUSE, P.INFORM, P.FAILURE}),
        (P.INFORM, set()),
        (P.REJECT_PROPOSAL, set()),
    ],
)
def test_an_act_is_answered_as_the_interaction_protocols_say(
    act: Performative, answers: set[Performative]
) -> None:
    given_answers = {reply for reply in Performative if may_answer(act, reply)}
    assert given_answers == answers | {P.NOT_UNDERSTOOD}
    assert expects_reply(act) == bool(answers)


def test_not_understood_answers_every_act_but_itself() -> None:
    assert not may_answer(P.NOT_UNDERSTOOD, P.NOT_UNDERSTOOD)
    assert not any(may_answer(P.NOT_UNDERSTOOD, reply) for reply in Performative)
    assert all(P.NOT_UNDERSTOOD not in replies for replies in REPLIES.values())


# --- writing and reading ------------------------------------------------------------------------

BID = AclMessage(
    performative=P.PROPOSE,
    sender=AclAgent("custom:coder-1", ("http://127.0.0.1:7717/a",)),
    receiver=(AclAgent("manager"), AclAgent("2nd manager")),
    reply_to=(AclAgent("clerk", resolvers=(AclAgent("df", ("iiop://x/y",)),)),),
    content='I split "src/api.ts"\nin 2 turns',
    language="english",
    encoding="utf-8",
    ontology="(set coding review)",
    protocol="fipa-contract-net",
    conversation_id="task-1",
    reply_with="42",
    in_reply_to="cfp-1",
    reply_by="20261116T101500000Z",
    extra=(("X-cost", "12 turns"),),
)
BID_TEXT = (
    "(propose"
    " :sender (agent-identifier :name custom:coder-1"
    " :addresses (sequence http://127.0.0.1:7717/a))"
    ' :receiver (set (agent-identifier :name manager) (agent-identifier :name "2nd manager"))'
    " :reply-to (set (agent-identifier :name clerk"
    " :resolvers (sequence (agent-identifier :name df :addresses (sequence iiop://x/y)))))"
    ' :content "I split \\"src/api.ts\\"\nin 2 turns"'
    ' :language english :encoding utf-8 :ontology "(set coding review)"'
    " :protocol fipa-contract-net :conversation-id task-1"
    ' :reply-with "42" :in-reply-to cfp-1 :reply-by 20261116T101500000Z'
    ' :X-cost "12 turns")'
)


def test_a_message_is_written_in_the_string_syntax_and_read_back() -> None:
    assert write_acl(BID) == BID_TEXT
    assert parse_acl(BID_TEXT) == BID


def test_only_the_performative_is_required() -> None:
    bare = parse_acl("(agree)")
    assert bare == AclMessage(performative=P.AGREE)
    assert bare.sender is bare.content is UNSET
    assert write_acl(bare) == "(agree)"


@pytest.mark.parametrize(
    "text",
    [
        '(INFORM :sender a1 :receiver a2 :content "done")',
        '(inform :Sender (agent-identifier :name a1) :receiver (set a2) :content "done")',
        '(inform\n  :sender  "a1"\n  :receiver (agent-identifier :name a2)\n  :content done\n)',
        'Here it is (see below):\n```lisp\n( inform :sender a1 :receiver a2 :content #4"done)\n```',
        '(inform you soon) (inform :sender a1 :receiver a2 :content "done") (agree)',
    ],
)
def test_what_is_common_but_not_to_the_letter_is_read_too(text: str) -> None:
    assert parse_acl(text) == AclMessage(
        performative=P.INFORM,
        sender=AclAgent("a1"),
        receiver=(AclAgent("a2"),),
        content="done",
    )


def test_content_without_quotes_is_kept_as_its_text() -> None:
    assert parse_acl("(cfp :content (sell  (car :x 10)))").content == "(sell  (car :x 10))"


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("plain", '"plain"'),
        ("", '""'),
        ('a "quote"', '"a \\"quote\\""'),
        ("C:\\dir", '"C:\\dir"'),
        ("ends in \\", '#9"ends in \\'),
        ('a\\"b', '#4"a\\"b'),
        ("é\\", '#3"é\\'),
    ],
)
def test_strings_are_quoted_and_counted_where_readers_differ(content: str, written: str) -> None:
    message = AclMessage(performative=P.INFORM, content=content, language="x")
    assert write_acl(message) == f"(inform :content {written} :language x)"
    assert parse_acl(write_acl(message)) == message


TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", '\\"', ")", "(", ":sender", '#3"', "\n", "\x00", "-x", "7", "@", "é\\", "(a b)"]
)
NAMES = TEXTS.filter(bool)
AGENTS = st.recursive(
    st.builds(AclAgent, NAMES, st.lists(TEXTS, max_size=2).map(tuple)),
    lambda inner: st.builds(AclAgent, NAMES, resolvers=st.lists(inner, max_size=2).map(tuple)),
    max_leaves=3,
)
MAYBE = st.just(UNSET) | TEXTS
MESSAGES = st.builds(
    AclMessage,
    performative=st.sampled_from(Performative),
    sender=st.just(UNSET) | AGENTS,
    receiver=st.lists(AGENTS, max_size=2).map(tuple),
    reply_to=st.lists(AGENTS, max_size=2).map(tuple),
    content=MAYBE,
    language=MAYBE,
    encoding=MAYBE,
    ontology=MAYBE,
    protocol=MAYBE,
    conversation_id=MAYBE,
    reply_with=MAYBE,
    in_reply_to=MAYBE,
    reply_by=st.sampled_from([UNSET, "20261116T101500000Z", "+00000000T000130000"]),
    extra=st.dictionaries(st.sampled_from(["X-a", "X-b", "cost"]), TEXTS, max_size=2).map(
        lambda found: tuple(found.items())
    ),
)


@given(message=MESSAGES)
@example(message=BID)
def test_every_message_is_read_back_as_it_was_written(message: AclMessage) -> None:
    assert parse_acl(f"Well: {write_acl(message)} (agree)") == message


@given(
    text=st.text()
    | st.lists(
        st.sampled_from(
            [
                *("(", ")", "inform", " ", ":content", ":sender", '"', '#2"', "set", "\\", ":x"),
                *("a", "agent-identifier", ":name", "é", "\ud800"),
            ]
        ),
        max_size=30,
    ).map(lambda bits: "(inform " + " ".join(bits))
)
def test_any_text_is_read_or_refused_with_the_parameter(text: str) -> None:
    try:
        message = parse_acl(text)
    except FormError as error:
        named = error.part
    else:
        named = "-"
        assert parse_acl(write_acl(message)) == message
    assert named


# --- breaches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part", "said"),
    [
        ("no message here", "performative", "no ACL message"),
        ("(infrom :content x)", "performative", "did you mean inform?"),
        ("(zzz :content x)", "performative", "accept-proposal"),
        ("(inform :content", "content", "breaks off"),
        ('(inform :content "x', "content", "not closed"),
        ('(inform :content "x\\")', "content", "not closed"),
        ('(inform :content #99"x)', "content", "more bytes"),
        ('(inform :content #1"é)', "content", "inside a character"),
        ("(inform :content )", "content", "missing"),
        ("(inform :content two words)", "content", "in quotes"),
        ("(inform :content x :content y)", "content", "twice"),
        ("(inform :Content x :CONTENT y)", "content", "twice"),
        ("(inform :X-a 1 :x-A 2)", "x-A", "each name once"),
        ("(inform content x)", "performative", ":sender"),
        ("(inform :sender (agent x))", "sender", "agent-identifier"),
        ("(inform :sender (agent-identifier :addresses (sequence a)))", "sender", ":name"),
        ("(inform :sender (agent-identifier :name a :X-y z))", "sender", "agent-identifier"),
        ("(inform :sender (agent-identifier :name a :addresses b))", "sender", "sequence"),
        ("(inform :sender (agent-identifier :name a :addresses (set (b))))", "sender", "sequence"),
        ("(inform :receiver (set (agent-identifier)))", "receiver", ":name"),
        ("(inform :reply-by tomorrow)", "reply-by", "FIPA time"),
        ("(inform :content " + "(" * 65 + ")" * 65 + ")", "content", "64 levels"),
        ("(inform :content \ud800)", "content", "surrogate"),
    ],
)
def test_a_breach_names_its_parameter_and_how_to_mend_it(text: str, part: str, said: str) -> None:
    error = refused(text)
    assert error.part == part
    assert said in str(error)


def test_values_that_could_not_be_sent_cannot_be_made() -> None:
    with pytest.raises(FormError, match="surrogate"):
        AclMessage(performative=P.INFORM, content="\ud800")
    with pytest.raises(FormError, match="surrogate"):
        AclAgent("\ud800")
    with pytest.raises(FormError, match=":name"):
        AclAgent("")
    with pytest.raises(FormError, match="X-"):
        AclMessage(performative=P.INFORM, extra=(("content", "x"),))
    with pytest.raises(FormError, match="X-"):
        AclMessage(performative=P.INFORM, extra=(("a b", "x"),))
    deep = AclAgent("a")
    for _ in range(8):
        deep = AclAgent("a", resolvers=(deep,))
    message = AclMessage(performative=P.INFORM, receiver=(deep,))
    assert parse_acl(write_acl(message)) == message
    with pytest.raises(FormError, match="8 levels"):
        AclAgent("a", resolvers=(deep,))


@pytest.mark.parametrize(
    "text",
    [
        "(inform :content " * 50_000,
        '(inform :content "' * 50_000,
        "(" * 500_000,
        '(inform :content "' + '\\"' * 500_000,
    ],
    ids=["nested", "unclosed strings", "parentheses", "quotes"],
)
def test_a_very_long_broken_text_is_refused_all_the_same(text: str) -> None:
    assert refused(text).part in ("content", "performative")


def test_a_message_travels_as_json_and_absent_means_absent() -> None:
    encoded = msgspec.json.encode(AclMessage(performative=P.CFP, content="x"))
    assert b"null" not in encoded
    assert b"sender" not in encoded
    assert msgspec.json.decode(msgspec.json.encode(BID), type=AclMessage) == BID
