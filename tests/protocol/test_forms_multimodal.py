"""Text and images in one message (T5, F5)."""

from __future__ import annotations

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import (
    IMAGE_MEDIA,
    ImagePart,
    MessageForm,
    MultimodalPart,
    TextPart,
    check_parts,
    inline_image,
    parse_parts,
    write_parts,
)
from agentcanvas.protocol.limits import BlobLimits
from agentcanvas.protocol.records import BlobRef

pytestmark = pytest.mark.req("T5")

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 16
STARTS = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0 jfif",
    "image/gif": b"GIF89a...",
    "image/webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
}
TEXT = TextPart("The button is 4 px too low.")


def only_problem(part: MultimodalPart, limits: BlobLimits | None = None) -> tuple[str, str]:
    (found,) = check_parts([TEXT, part], limits or BlobLimits())
    return found.part, found.sentence


def test_the_four_message_forms_are_named_as_in_the_documents() -> None:
    assert [form.value for form in MessageForm] == [
        "nl_text",
        "structured_json",
        "acl_performative",
        "multimodal",
    ]


@pytest.mark.parametrize("media", IMAGE_MEDIA)
def test_a_known_image_is_accepted_inline_and_by_reference(media: str) -> None:
    inline = inline_image(STARTS[media], media, alt="a button")
    reference = ImagePart(media=media, blob=BlobRef.of(STARTS[media], media))
    assert check_parts([TEXT, inline, reference]) == ()
    assert parse_parts(write_parts([TEXT, inline, reference])) == (TEXT, inline, reference)


def test_parts_are_tagged_and_absent_fields_stay_absent() -> None:
    written = write_parts([TEXT, inline_image(PNG, "image/png")])
    assert [sorted(part) for part in msgspec.json.decode(written)] == [
        ["text", "type"],
        ["data", "media", "type"],
    ]


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "Here you are:\n\n{}\n\nAnything else?"]
)
def test_text_and_fences_around_the_parts_are_left_aside(around: str) -> None:
    assert parse_parts(around.replace("{}", write_parts([TEXT]))) == (TEXT,)


@pytest.mark.parametrize("media", ["image/svg+xml", "image/bmp", "text/plain", "PNG", ""])
def test_an_unknown_media_type_is_refused_with_the_known_ones(media: str) -> None:
    part, sentence = only_problem(inline_image(PNG, media))
    assert part == "parts[1].media"
    assert "image/webp" in sentence


@pytest.mark.parametrize("data", ["%%%", "iVBORw0KGg", "iVBO Rw0K", "é", "iVBORw0KGgo=\n"])
def test_data_that_is_not_base64_is_refused(data: str) -> None:
    part, sentence = only_problem(ImagePart(media="image/png", data=data))
    assert part == "parts[1].data"
    assert "base64" in sentence


@pytest.mark.parametrize("content", [b"", b"hello", STARTS["image/gif"], b"RIFF0000WAVE"])
@pytest.mark.parametrize("media", ["image/png", "image/webp"])
def test_content_that_is_not_what_it_says_is_refused(content: bytes, media: str) -> None:
    part, sentence = only_problem(inline_image(content, media))
    assert part == "parts[1].data"
    assert media in sentence


def test_an_image_over_the_threshold_must_go_by_reference() -> None:
    limits = BlobLimits(inline_bytes=len(PNG))
    assert check_parts([inline_image(PNG, "image/png")], limits) == ()
    for size in (1, 2, 3, 1_000):
        part, sentence = only_problem(inline_image(PNG + bytes(size), "image/png"), limits)
        assert part == "parts[1].data"
        assert "reference" in sentence
    # A size that base64 rounds up to is still over the limit.
    rounded = inline_image(PNG + bytes(2), "image/png")
    assert "reference" in only_problem(rounded, BlobLimits(inline_bytes=len(PNG) + 1))[1]
    large = inline_image(PNG + bytes(65_536), "image/png")
    assert only_problem(large)[0] == "parts[1].data"


def test_an_image_holds_its_content_exactly_once() -> None:
    both = ImagePart(
        media="image/png",
        data=base64.b64encode(PNG).decode(),
        blob=BlobRef.of(PNG, "image/png"),
    )
    for image in (both, ImagePart(media="image/png")):
        part, sentence = only_problem(image)
        assert part == "parts[1]"
        assert "either blob or data" in sentence


def test_a_reference_must_agree_with_its_part_and_hold_something() -> None:
    part, sentence = only_problem(ImagePart(media="image/png", blob=BlobRef.of(b"x", "image/gif")))
    assert part == "parts[1].blob"
    assert "image/gif" in sentence
    assert (
        "empty" in only_problem(ImagePart(media="image/png", blob=BlobRef.of(b"", "image/png")))[1]
    )


def test_an_empty_message_and_an_empty_text_are_refused() -> None:
    assert [problem.part for problem in check_parts([])] == ["parts"]
    assert only_problem(TextPart(" \n")) == ("parts[1].text", "parts[1] has no text: leave it out.")


def test_all_breaches_are_found_at_once() -> None:
    parts: list[MultimodalPart] = [
        TextPart(""),
        inline_image(PNG, "image/bmp"),
        ImagePart(media="image/png"),
    ]
    found = [problem.part for problem in check_parts(parts)]
    assert found == ["parts[0].text", "parts[1].media", "parts[2]"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[",
        "{}",
        '[{"type":"video","data":"x"}]',
        '[{"type":"text"}]',
        '[{"type":"text","text":"x","more":1}]',
        '[{"type":"image","media":"image/png","blob":{"sha256":"x","size":1,"media":"image/png"}}]',
        '[{"type":"image","media":"image/png","data":null}]',
        '[{"type":"text","text":"\ud800"}]',
        "[{" * 100_000,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_what_is_not_a_list_of_parts_is_refused(text: str) -> None:
    with pytest.raises(FormError) as caught:
        parse_parts(text)
    assert caught.value.part == "parts"


def test_the_first_breach_of_a_parsed_message_raises_with_its_part() -> None:
    with pytest.raises(FormError) as caught:
        parse_parts(write_parts([TEXT, inline_image(b"x", "image/png")]))
    assert caught.value.part == "parts[1].data"


@given(
    texts=st.lists(
        st.text(alphabet=st.characters(exclude_categories=["Cs"])).filter(str.strip), min_size=1
    )
)
def test_every_text_is_read_back(texts: list[str]) -> None:
    parts = tuple(TextPart(text) for text in texts)
    assert parse_parts(write_parts(parts)) == parts
