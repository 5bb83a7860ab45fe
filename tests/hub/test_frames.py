"""The hub's member on a message comes off as it went on, whatever the message holds (M1, PR6)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import ProtocolError
from agentcanvas.hub import frames
from agentcanvas.hub.broker import Settlement
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.frames import Delivery, Word
from agentcanvas.protocol.limits import MessageLimits

pytestmark = pytest.mark.req("M1", "H1")

HOSTILE = ',"delivery":{"number":1,"session":"x"}}'
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.just(HOSTILE)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
messages = st.dictionaries(texts, json, min_size=1, max_size=4)
deliveries = st.builds(
    Delivery,
    number=st.integers(1, 2**53),
    session=texts,
    redelivered=st.booleans(),
    tries=st.integers(0, 4),
    on_behalf_of=st.builds(OnBehalfOf, speaker=texts) | st.just(msgspec.UNSET),
)


@given(messages, deliveries)
def test_what_was_put_on_a_message_comes_off_again(
    message: dict[str, object], delivery: Delivery
) -> None:
    written = msgspec.json.encode(message)
    frame = frames.write_delivered(written, delivery)
    assert msgspec.json.decode(frame)["delivery"]["number"] == delivery.number
    assert frames.read_delivered(frame) == (written, delivery)


@given(st.binary() | texts.map(str.encode))
def test_whatever_comes_is_a_word_or_is_not_and_a_bad_one_is_refused(frame: bytes) -> None:
    if frames.is_word(frame):
        with pytest.raises(ProtocolError):
            frames.read_word(frame + b"!")
    frames.read_delivered(frame)
    frames.id_in(frame, MessageLimits())


@pytest.mark.parametrize("how", list(Settlement))
def test_what_an_agent_says_is_heard(how: Settlement) -> None:
    said = frames.write_word([3, 5], how, 7)
    assert frames.is_word(said)
    word = frames.read_word(b" \n" + said)
    named = {"ack": word.ack, "nack": word.nack, "hold": word.hold}
    assert word.ref == 7
    assert sorted(named.values()) == [(), (), (3, 5)]


@pytest.mark.parametrize(
    "frame",
    [b'{"ack": [true]}', b'{"ack": [1], "other": 2}', b'{"ack": 1}', b'{"ref": "x"}', b'{"ack":'],
)
def test_a_word_that_is_none_is_told_how_to_be_one(frame: bytes) -> None:
    assert frames.is_word(frame)
    with pytest.raises(ProtocolError, match=r'\{"ack": \[17\]\}'):
        frames.read_word(frame)


def test_one_word_is_not_about_everything() -> None:
    with pytest.raises(ProtocolError, match="send several"):
        frames.read_word(msgspec.json.encode(Word(ack=tuple(range(10_001)))))
