"""Keeping a key out of what comes back: an answer may repeat what it was asked with."""

from __future__ import annotations


class Mask:
    """Replaces a secret in a stream by as many stars; its length stays as it was said.

    Bytes at the end that could be the beginning of the secret are held back until it is known.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._stars = b"*" * len(self._secret)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take a piece; gives what can be handed on."""
        if not self._secret:
            return data
        data = (self._held + data).replace(self._secret, self._stars)
        keep = self._beginning_at_the_end(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def finish(self) -> bytes:
        """Give what was held back: it was not the secret."""
        held, self._held = self._held, b""
        return held

    def text(self, text: str) -> str:
        """Mask a text that is whole."""
        secret = self._secret.decode()
        return text.replace(secret, "*" * len(secret)) if secret else text

    def _beginning_at_the_end(self, data: bytes) -> int:
        longest = min(len(self._secret) - 1, len(data))
        return next(n for n in range(longest, -1, -1) if data.endswith(self._secret[:n]))
