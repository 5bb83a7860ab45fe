"""What a browser is given for the token of its link: a pass that outlives a restart of the server.

The token of a server is new at each start; a page that is open would have to be opened anew. A pass
is signed with a secret that stays with the workspace, says when it was issued, and ends after a
while. It opens this server's doors for browsers only: it is not the token, and cannot become one.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from agentcanvas.clock import Clock

LASTS_S = 7 * 24 * 3600
_VERSION = "1"
_FORM = re.compile(r"1\.([0-9]{1,12})\.([0-9a-f]{64})")
_AHEAD_S = 300
"""A clock may be set back a little between two starts."""


class Passes:
    """Issues passes and recognises them."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock

    def issue(self) -> str:
        """A pass from now on."""
        issued = self._now_s()
        return f"{_VERSION}.{issued}.{self._signature(issued)}"

    def accept(self, shown: str) -> bool:
        """Whether this is a pass of this workspace that has not ended."""
        found = _FORM.fullmatch(shown)
        if found is None:
            return False
        issued = int(found[1])
        if not hmac.compare_digest(found[2], self._signature(issued)):
            return False
        return -_AHEAD_S <= self._now_s() - issued <= LASTS_S

    def _now_s(self) -> int:
        return self._clock.now_ms() // 1000

    def _signature(self, issued: int) -> str:
        said = f"agentcanvas browser pass {_VERSION}.{issued}".encode()
        return hmac.new(self._secret, said, hashlib.sha256).hexdigest()
