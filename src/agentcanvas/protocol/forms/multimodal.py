"""Text and images in one message (T5, F5).

An image is carried by reference, or inline as base64 while it is small (D35). Fetching a blob and
showing an image belong to others.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from types import MappingProxyType

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms.shape import FormProblem
from agentcanvas.protocol.limits import BlobLimits
from agentcanvas.protocol.records import BlobRef

# What the models we drive accept, and how such a file begins. SVG is left out: it is a program, not
# a picture.
IMAGE_MEDIA = MappingProxyType(
    {
        "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
        "image/jpeg": re.compile(rb"\xff\xd8\xff"),
        "image/gif": re.compile(rb"GIF8[79]a"),
        "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    }
)


class TextPart(Struct, frozen=True, tag="text", tag_field="type", forbid_unknown_fields=True):
    """Words."""

    text: str


class ImagePart(
    Struct, frozen=True, kw_only=True, tag="image", tag_field="type", forbid_unknown_fields=True
):
    """A picture: either ``blob`` or ``data`` (base64) holds it; ``alt`` says what is on it."""

    media: str
    blob: BlobRef | UnsetType = UNSET
    data: str | UnsetType = UNSET
    alt: str | UnsetType = UNSET


MultimodalPart = TextPart | ImagePart

_DEFAULT = BlobLimits()
_ARRAY_START = re.compile(r"\[\s*\{")
_decoder: msgspec.json.Decoder[tuple[MultimodalPart, ...]] = msgspec.json.Decoder(
    tuple[MultimodalPart, ...]
)


def inline_image(content: bytes, media: str, *, alt: str | UnsetType = UNSET) -> ImagePart:
    """An image that travels inside the message."""
    return ImagePart(media=media, data=base64.b64encode(content).decode(), alt=alt)


def write_parts(parts: Sequence[MultimodalPart]) -> str:
    """The parts as a JSON array."""
    return msgspec.json.encode(parts).decode()


def parse_parts(text: str, limits: BlobLimits = _DEFAULT) -> tuple[MultimodalPart, ...]:
    """The parts in a JSON array, wherever in ``text`` it stands; the first breach raises."""
    start = _ARRAY_START.search(text)
    array = text[start.start() : text.rfind("]") + 1] if start else text
    try:
        parts = _decoder.decode(array)
    except (msgspec.DecodeError, UnicodeEncodeError) as broken:
        raise FormError(
            f"This is not a list of text and image parts: {broken}.", part="parts"
        ) from None
    for problem in check_parts(parts, limits):
        raise FormError(problem.sentence, part=problem.part)
    return parts


def check_parts(
    parts: Sequence[MultimodalPart], limits: BlobLimits = _DEFAULT
) -> tuple[FormProblem, ...]:
    """Every breach; a part is named by its place, such as ``parts[1].data``."""
    found: list[FormProblem] = []
    if not parts:
        found.append(FormProblem("parts", "There is no part: send a text or an image."))
    for place, part in enumerate(parts):
        name = f"parts[{place}]"
        if isinstance(part, ImagePart):
            found += _image_problems(name, part, limits)
        elif not part.text.strip():
            found.append(FormProblem(f"{name}.text", f"{name} has no text: leave it out."))
    return tuple(found)


def _image_problems(name: str, image: ImagePart, limits: BlobLimits) -> list[FormProblem]:
    if image.media not in IMAGE_MEDIA:
        known = ", ".join(IMAGE_MEDIA)
        return [
            FormProblem(
                f"{name}.media", f'{name} has the media type "{image.media}": use one of {known}.'
            )
        ]
    if (image.blob is UNSET) == (image.data is UNSET):
        return [FormProblem(name, f"{name} needs either blob or data, and not both.")]
    if image.blob is not UNSET:
        return _blob_problems(name, image.media, image.blob)
    assert image.data is not UNSET  # one of the two is there
    return _data_problems(name, image.media, image.data, limits)


def _blob_problems(name: str, media: str, blob: BlobRef) -> list[FormProblem]:
    found: list[FormProblem] = []
    if blob.media != media:
        found.append(
            FormProblem(
                f"{name}.blob", f"{name} says {media}, its blob says {blob.media}: make them agree."
            )
        )
    if blob.size == 0:
        found.append(FormProblem(f"{name}.blob", f"{name} refers to an empty blob."))
    return found


def _data_problems(name: str, media: str, data: str, limits: BlobLimits) -> list[FormProblem]:
    part = f"{name}.data"
    too_large = FormProblem(
        part,
        f"{name} holds more than {limits.inline_bytes} bytes: store it as a blob and send its "
        "reference.",
    )
    if len(data) > 4 * ((limits.inline_bytes + 2) // 3):  # do not decode what is hopeless
        return [too_large]
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as wrong:
        return [FormProblem(part, f"{name} is not base64 ({wrong}): encode the file's bytes.")]
    if len(content) > limits.inline_bytes:
        return [too_large]
    if not IMAGE_MEDIA[media].match(content):
        return [
            FormProblem(
                part, f"{name} does not begin like {media}: give its real media type, or the file."
            )
        ]
    return []
