"""Images that a run is started with: kept as blobs, and found again unchanged (F5, D35).

They lie among the blobs of the workspace, outside of what git sees, so that an agent of another
process finds them by the same reference. What an agent does with them is its runtime's; which of
them are still needed is known to ``runs.housekeeping``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import anyio.to_thread

from agentcanvas.errors import ExecutionError, MessageTooLarge, NotFound, ValidationError
from agentcanvas.hub.blobs import Blobs
from agentcanvas.protocol.forms.multimodal import IMAGE_MEDIA
from agentcanvas.protocol.limits import BlobLimits
from agentcanvas.protocol.records import BlobRef

FOLDER = "blobs"
LARGEST_IMAGE = 20 * 1024 * 1024
"""In bytes; what the services of models take."""
MOST_IMAGES = 10
WAITS_S = 24 * 3600
"""How long an image is kept for a run that may still be started with it."""
_HEAD = 16


def read_image(path: Path) -> bytes:
    """A file that a person names, or why it is none to hand on."""
    try:
        # A link could lead to what was not meant, and a pipe would never end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise ValidationError(f"{path} is a link; name the image it leads to.") from None
        raise NotFound(f"The image {path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValidationError(f"{path} is not a file; name an image.")
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor has no Path
        content = file.read(LARGEST_IMAGE + 1)
    image_ref(content, str(path))
    return content


def image_ref(content: bytes, name: str = "This") -> BlobRef:
    """The reference of an image, its kind by its first bytes; anything else is refused."""
    if len(content) > LARGEST_IMAGE:
        raise MessageTooLarge(
            f"{name} has more than {LARGEST_IMAGE:,} bytes, the most an image may have; "
            "make it smaller."
        )
    media = _media_of(content)
    if media is None:
        raise ValidationError(
            f"{name} is not an image that agents can be shown; use PNG, JPEG, GIF or WebP."
        )
    return BlobRef.of(content, media)


async def keep_image(state: Path, content: bytes) -> BlobRef:
    """Keep an image in the folder of a workspace's state; the same one is kept once."""
    ref = image_ref(content)

    async def whole() -> AsyncIterator[bytes]:
        yield content

    # Its owner is itself: a person's images are not held to the quota of an agent.
    await Blobs(state / FOLDER, BlobLimits()).put(_owner(ref.sha256), ref.sha256, whole())
    # One that is handed in again is new again: it waits for its run as long as any.
    await anyio.to_thread.run_sync(os.utime, image_path(state, ref))
    return ref


async def idle_images(state: Path, needed: Collection[str], *, now_ms: int) -> dict[str, int]:
    """The images that no run needs, with their sizes; new ones wait for their run first."""
    return await anyio.to_thread.run_sync(_idle, state / FOLDER, needed, now_ms / 1000 - WAITS_S)


async def drop_images(state: Path, images: Collection[str]) -> None:
    """Keep these images no longer; an agent that sent the same file keeps it."""
    blobs = Blobs(state / FOLDER, BlobLimits())
    for image in images:
        with suppress(NotFound):  # dropped by another clean-up just now
            await blobs.drop(_owner(image), image)


def _idle(folder: Path, needed: Collection[str], before: float) -> dict[str, int]:
    found = {}
    for mark in folder.glob("owners/*/*"):
        name = mark.name
        path = folder / name[:2] / name
        if name in needed or mark.parent.name != sha256(_owner(name).encode()).hexdigest():
            continue
        with suppress(FileNotFoundError):
            known = path.stat()
            if known.st_mtime < before:
                found[name] = known.st_size
    return found


def _owner(image: str) -> str:
    return f"image {image}"


def check_images(state: Path, images: Sequence[BlobRef]) -> None:
    """Refuse what a run could not hand on, before it starts."""
    if len(images) > MOST_IMAGES:
        raise ValidationError(
            f"A run starts with at most {MOST_IMAGES} images, not {len(images)}; leave some out."
        )
    for ref in images:
        path = image_path(state, ref)
        if not path.is_file():
            raise NotFound(f"There is no image {ref.sha256}; hand it in again, then start the run.")
        with path.open("rb") as file:
            media = _media_of(file.read(_HEAD))
        if media != ref.media or path.stat().st_size != ref.size or ref.size > LARGEST_IMAGE:
            raise ValidationError(
                f"{ref.sha256} is not the image it is said to be; hand it in again."
            )


def image_path(state: Path, ref: BlobRef) -> Path:
    """Where an image lies, if it is there."""
    return state / FOLDER / ref.sha256[:2] / ref.sha256


def unchanged_image(state: Path, ref: BlobRef) -> Path:
    """The file of an image, whole and as it was handed in."""
    path = image_path(state, ref)
    try:
        found = sha256(path.read_bytes()).hexdigest()
    except OSError:
        found = ""
    if found != ref.sha256:
        raise ExecutionError(
            f"The image {ref.sha256} is gone or damaged; start the run again with the image."
        )
    return path


def _media_of(content: bytes) -> str | None:
    return next((media for media, begin in IMAGE_MEDIA.items() if begin.match(content)), None)
