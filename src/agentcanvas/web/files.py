"""Files of a proposal on their way to a page: content that an agent made, and nothing a page obeys.

Only pictures are said to be what they are, and only by their first bytes; all else is data.
"""

from __future__ import annotations

AS_DATA = {
    "x-content-type-options": "nosniff",
    # Opened as a page of its own it may do nothing at all.
    "content-security-policy": "default-src 'none'; sandbox",
    "content-disposition": "attachment",
}

_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_WEBP_AT = slice(8, 12)


def media_of(content: bytes) -> str:
    """What a file may be shown as; SVG can hold scripts and counts as text."""
    for start, media in _PICTURES:
        if content.startswith(start):
            return media
    if content.startswith(b"RIFF") and content[_WEBP_AT] == b"WEBP":
        return "image/webp"
    return "application/octet-stream"
